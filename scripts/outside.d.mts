/** The types of outside.mjs for the tests. */
export function installOutside(
  packages: string[],
  options?: { env?: Record<string, string | undefined>; withoutOptional?: boolean },
): Promise<{ folder: string; unavailable?: undefined } | { folder?: undefined; unavailable: string }>;
