/** The types of mongod-download.mjs for the tests. */
export function checkSha256(path: string, expected: string): Promise<void>;
