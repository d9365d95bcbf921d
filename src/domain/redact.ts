/** Keeps secrets of connection strings out of every text that leaves the program. */

/** Everything in a connection string that must not be shown. */
export function secretsOf(uri: string): string[] {
  const secrets = new Set<string>();
  const add = (text: string | undefined) => {
    if (text === undefined || text === '') return;
    secrets.add(text);
    try {
      secrets.add(decodeURIComponent(text));
    } catch {
      // Not percent-encoded: the text itself is what there is.
    }
  };
  // Read by hand as well, since a string that does not parse holds a secret all the same.
  const userInfo = /^mongodb(?:\+srv)?:\/\/(.*)@/s.exec(uri)?.[1];
  if (userInfo?.includes(':') === true) add(userInfo.slice(userInfo.indexOf(':') + 1));
  for (const [, value] of uri.matchAll(/[?&](?:tlsCertificateKeyFilePassword|proxyPassword)=([^&]*)/gi)) add(value);
  for (const [, value] of uri.matchAll(/AWS_SESSION_TOKEN:([^,&]*)/gi)) add(value);
  // A secret of one or two characters stands in every other word: taking it out would only make texts unreadable.
  return [...secrets].filter((secret) => secret.length > 2);
}

/** Takes secrets out of a text: user information in any connection string, and the secrets that are known. */
export interface Redactor {
  (text: string): string;
  /** Knows the secrets of this connection string from now on. */
  learn(uri: string): void;
}

export function createRedactor(uris: readonly string[]): Redactor {
  let secrets: string[] = [];
  const learn = (uri: string) => {
    secrets = [...new Set([...secrets, ...secretsOf(uri)])].sort((a, b) => b.length - a.length);
  };
  uris.forEach(learn);
  const redact = (text: string) => {
    let clean = text;
    for (const secret of secrets) clean = clean.replaceAll(secret, '<secret>');
    // Up to the last @: a password that is not percent-encoded may hold one.
    return !clean.includes('://') ? clean : clean.replace(/(mongodb(?:\+srv)?:\/\/)[^\s"']*@/gi, '$1<credentials>@');
  };
  return Object.assign(redact, { learn });
}
