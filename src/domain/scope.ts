/** What a bearer of a token may do over HTTP. */

/** From the least to the most: each holds those before it. */
export const scopes = ['leash:read', 'leash:kill', 'leash:admin'] as const;
export type Scope = (typeof scopes)[number];

export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text);
}

/** Whether what was given covers what is needed: leash:kill holds leash:read, and leash:admin holds both. */
export function hasScope(given: ReadonlySet<Scope>, needed: Scope): boolean {
  return scopes.slice(scopes.indexOf(needed)).some((scope) => given.has(scope));
}
