/** A tool's answer as MCP writes it. */

import type { CallToolResult } from '@modelcontextprotocol/server';
import type { ToolAnswer } from './tool.js';

/** The text holds the same JSON as `structuredContent`: documents stand in it as values and cannot break out. */
export function toResult({ body, isError, content }: ToolAnswer): CallToolResult {
  return { content: content ?? [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body, isError };
}
