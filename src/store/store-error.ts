/** Why a store cannot be used, and whether asking it again can help. */

/** What is wrong: its `message` says what happened and what to do. */
export class StoreError extends Error {
  /**
   * `refused`: the store is of a newer version, which no second try changes. `gone`: nothing can be asked of it now.
   * `failed`: this one call failed (a full disk), and others may not.
   */
  readonly kind: 'refused' | 'gone' | 'failed';

  constructor(kind: StoreError['kind'], message: string) {
    super(message);
    this.name = 'StoreError';
    this.kind = kind;
  }
}
