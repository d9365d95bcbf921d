/** The one error of a configuration. */

/** A mistake in the configuration, to be shown to whoever started the program. Holds no value that could be a secret. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}
