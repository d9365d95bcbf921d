/** The types of check-imports.mjs for the tests. */
export function checkImports(srcDir: string): Promise<string[]>;
