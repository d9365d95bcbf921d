/** Claude Code in a home of its own, without an account: its settings, its environment, its arguments. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';

export const serverName = 'leash';
/** A tool of the server under test, as Claude Code calls it. */
export const toolName = (tool) => `mcp__${serverName}__${tool}`;
const tools = ['run', 'status', 'kill', 'operations', 'result'];

/** Nobody's: it only has to look approved. */
const dummyKey = 'sk-ant-api03-no-account-is-behind-this-key';

/**
 * Prepares a home and a working folder below `folder`.
 * @param {{ program: string, folder: string, modelUrl: string, server: object, env?: Record<string, string> }} options
 *   `server` is the server's entry in an `.mcp.json`
 * @returns {Promise<{ cwd: string, env: Record<string, string>, interactive: string[], comeBack: string[], print(prompt: string): string[] }>}
 *   commands: to type into, to go on with the last conversation, and to ask one thing
 */
export async function prepareClient({ program, folder, modelUrl, server, env = {} }) {
  const [home, cwd, temporary] = ['home', 'work', 'tmp'].map((name) => join(folder, name));
  for (const each of [home, cwd, temporary]) await mkdir(each, { recursive: true });
  const config = join(folder, 'mcp.json');
  await writeFile(config, JSON.stringify({ mcpServers: { [serverName]: server } }));
  await writeFile(join(home, '.claude.json'), JSON.stringify({
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: [dummyKey.slice(-20)], rejected: [] },
    projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true, allowedTools: [] } },
  }));
  const args = ['--mcp-config', config, '--strict-mcp-config', '--allowedTools', [...tools.map(toolName), 'TaskStop'].join(',')];
  return {
    cwd,
    // Nothing of the caller's environment but where programs are: no key, no proxy, no setting of a Claude Code around this one.
    env: {
      PATH: process.env.PATH,
      HOME: home,
      TMPDIR: temporary,
      CLAUDE_CODE_TMPDIR: temporary,
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: dummyKey,
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ENABLE_TOOL_SEARCH: 'false',
      MCP_CONNECTION_NONBLOCKING: 'false',
      ...env,
    },
    interactive: [program, ...args],
    comeBack: [program, ...args, '--continue'],
    print: (prompt) => [program, '-p', prompt, ...args],
  };
}
