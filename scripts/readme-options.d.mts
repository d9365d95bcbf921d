/** The types of readme-options.mjs for the tests. */
interface Row {
  flag: string | null;
  value?: string;
  env: string;
  default: string;
  about: string;
}
export function tableOf(rows: readonly Row[]): string;
export function withTable(text: string, table: string): string;
