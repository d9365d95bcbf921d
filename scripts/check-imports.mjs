/** Keeps the parts of src apart: imports go one way, no file imports itself through others, and no file is two things. */
import './node-version.mjs';
import process from 'node:process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';
import { isMain, main, projectDir } from './run.mjs';

const maxLines = 300;

/** Node's modules without I/O or a clock: all that the core may take from the platform (the domain only hashes). */
const pureNodeModules = ['node:crypto', 'node:events', 'node:util'];

const anything = { includes: () => true };

/** What each part (a folder, or a file directly in src) may import: parts, npm packages, Node's modules. */
export const rules = {
  domain: { parts: ['domain'], npm: ['bson'], node: ['node:crypto'] },
  core: { parts: ['domain', 'core'], npm: [], node: pureNodeModules },
  mongo: { parts: ['domain', 'core', 'mongo'], npm: anything, node: anything },
  store: { parts: ['domain', 'core', 'store'], npm: anything, node: anything },
  mcp: { parts: ['domain', 'core', 'mcp'], npm: anything, node: anything },
  http: { parts: ['domain', 'core', 'mcp', 'http', 'config'], npm: anything, node: anything },
  cli: { parts: ['domain', 'core', 'cli', 'config', 'wire.ts', 'wire-http.ts', 'wire-terminal.ts'], npm: anything, node: anything },
  config: { parts: ['config'], npm: ['zod', 'commander'], node: anything },
  'wire.ts': { parts: anything, npm: anything, node: anything },
  'wire-connections.ts': { parts: anything, npm: anything, node: anything },
  // Apart from wire.ts, so that a server over stdio loads no HTTP.
  'wire-http.ts': { parts: anything, npm: anything, node: anything },
  // Apart from wire.ts, so that a command for a terminal loads no MCP.
  'wire-terminal.ts': { parts: ['domain', 'core', 'mongo', 'store', 'cli'], npm: anything, node: anything },
  'main.ts': { parts: ['cli', 'config', 'wire.ts'], npm: anything, node: anything },
};

const partOf = (path) => path.split('/')[0];
const packageOf = (specifier) => specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/');

/** Every module that the text names, with its line, and whether only types are taken (such an import is gone at run time). */
const importsOf = (text) => {
  const source = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true);
  const found = [];
  const add = (literal, typeOnly) => {
    if (!literal || !ts.isStringLiteralLike(literal)) return;
    const line = source.getLineAndCharacterOfPosition(literal.getStart()).line + 1;
    found.push({ specifier: literal.text, line, typeOnly });
  };
  const visit = (node) => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isImportTypeNode(node)) add(node.argument.literal, true);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], false);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
};

/** Why this import may not be, or undefined. `target` is the imported file relative to src, for a relative import. */
const forbidden = (part, specifier, target) => {
  const rule = rules[part];
  if (target?.startsWith('../')) return 'leaves src';
  if (target) return rule.parts.includes(partOf(target)) ? undefined : `${part} may not import ${partOf(target)}`;
  const [kind, name] = specifier.startsWith('node:') ? ['node', specifier] : ['npm', packageOf(specifier)];
  return rule[kind].includes(name) ? undefined : `${part} may not import ${name}`;
};

/** The circles of the graph (file -> files), each as a path that ends where it began; at least one of each knot. */
const circlesIn = (graph) => {
  const circles = [];
  const done = new Set();
  const walk = (file, path) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file]);
    if (path.includes(file) || done.has(file)) return;
    for (const next of graph.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) walk(file, []);
  return circles;
};

/**
 * Checks every .ts file under `srcDir`.
 * @returns {Promise<string[]>} one `src/<file>:<line>: <what is wrong>` for each violation
 */
export const checkImports = async (srcDir) => {
  const violations = [];
  const graph = new Map();
  const names = (await readdir(srcDir, { recursive: true })).map((name) => name.split(sep).join('/'));
  for (const file of names.filter((name) => name.endsWith('.ts')).sort()) {
    const text = await readFile(join(srcDir, file), 'utf8');
    const report = (line, problem) => violations.push(`src/${file}:${line}: ${problem}`);
    const lines = text.replace(/\n$/, '').split('\n').length;
    if (lines > maxLines) report(maxLines + 1, `${lines} lines, and ${maxLines} are allowed`);
    if (!rules[partOf(file)]) {
      report(1, `no rule says what ${partOf(file)} may import (scripts/check-imports.mjs)`);
      continue;
    }
    const importedFiles = new Set();
    for (const { specifier, line, typeOnly } of importsOf(text)) {
      const target = specifier.startsWith('.')
        ? relative(srcDir, resolve(srcDir, dirname(file), specifier)).split(sep).join('/').replace(/\.js$/, '.ts')
        : undefined;
      const problem = forbidden(partOf(file), specifier, target);
      if (problem) report(line, `${problem} ('${specifier}')`);
      if (target && !typeOnly) importedFiles.add(target);
    }
    graph.set(file, importedFiles);
  }
  for (const circle of circlesIn(graph)) violations.push(`src/${circle[0]}:1: circular import: ${circle.join(' -> ')}`);
  return violations;
};

if (isMain(import.meta.url)) {
  await main(async () => {
    const violations = await checkImports(resolve(process.argv[2] ?? join(projectDir, 'src')));
    for (const violation of violations) process.stdout.write(`${violation}\n`);
    return violations.length > 0 ? 1 : 0;
  });
}
