/** The types of outside-python.mjs for the tests. */
export function installOutsidePython(
  requirements: string[],
  options?: { env?: Record<string, string | undefined>; python?: string },
): Promise<{ python: string; unavailable?: undefined } | { python?: undefined; unavailable: string }>;
