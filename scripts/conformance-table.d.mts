/** The types of conformance-table.mjs for the tests. */
export const scenarios: Record<string, { run: true; except: Record<string, string> } | { run: false; reason: string }>;
export function readList(text: string): Map<string, string[]>;
export function disagreements(listed: Iterable<string>): string[];
export function judge(
  checks: { id: string; status: string; errorMessage?: string; description: string }[],
  except: Record<string, string>,
): { passed: number; failures: string[]; remarks: string[] };
