/** What could not be written to the disk, and why: written as soon as it can be, from what this process has in memory. */

import type { InstanceRecord, Store } from '../core/ports.js';

export interface Backlog {
  add(operationId: string, why: string): void;
  addDocuments(operationId: string, why: string): void;
  addInstance(instance: InstanceRecord): void;
  /** The record has come to the disk after all. */
  written(operationId: string): void;
  /** Why this record, or its documents, are not on the disk; null when they are. */
  why(operationId: string): string | null;
  isEmpty(): boolean;
  /** Writes all of it; what is written stays so when a later one fails. Answers how many records. @throws StoreError */
  write(): Promise<number>;
}

export function createBacklog({ local, memory, keepDocuments }: { local: Omit<Store, 'problem'>; memory: Store; keepDocuments: boolean }): Backlog {
  const records = new Map<string, string>();
  const documents = new Map<string, string>();
  let instance: InstanceRecord | null = null;

  async function writeDocuments(operationId: string): Promise<void> {
    const kept = keepDocuments ? await memory.getDocuments(operationId) : null;
    if (kept !== null) await local.putDocuments(operationId, kept);
    documents.delete(operationId);
  }

  return {
    add: (operationId, why) => void records.set(operationId, why),
    addDocuments: (operationId, why) => void documents.set(operationId, why),
    addInstance(missing) {
      instance = missing;
    },
    written: (operationId) => void records.delete(operationId),
    why: (operationId) => records.get(operationId) ?? documents.get(operationId) ?? null,
    isEmpty: () => records.size === 0 && documents.size === 0 && instance === null,
    async write() {
      let count = 0;
      if (instance !== null) await local.putInstance(instance);
      instance = null;
      for (const operationId of [...documents.keys()]) await writeDocuments(operationId);
      for (const operationId of [...records.keys()]) {
        const record = await memory.get(operationId);
        if (record !== null) await local.put(record);
        records.delete(operationId);
        count += 1;
      }
      return count;
    },
  };
}
