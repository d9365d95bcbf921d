/** Records of operations and folders for tests of what survives. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BSON } from 'bson';
import { afterAll } from 'vitest';
import { encodeId, idLengths } from '../../src/domain/ids.js';
import type { OperationRecord } from '../../src/domain/operation.js';

export const newOperationId = () => encodeId(randomBytes(idLengths.operation), idLengths.operation);

/** A record of an operation that runs. */
export function aRecord(changes: Partial<OperationRecord> = {}): OperationRecord {
  return {
    operationId: newOperationId(),
    instance: 'aaaaaaaaaa',
    principal: 'tester@here',
    session: 'ssssss',
    requestId: 1,
    tool: 'run',
    database: 'app',
    collection: 'things',
    digest: 'd',
    tag: 'mongo-leash.1',
    createdAt: new Date().toISOString(),
    sentAt: null,
    endedAt: null,
    elapsedMs: 0,
    maxTimeMS: 60_000,
    deadlineAt: new Date(Date.now() + 62_000).toISOString(),
    node: null,
    whereabouts: { set: 'rs0', nodes: ['a:1'] },
    wait: 'waiting',
    server: 'not_sent',
    outcome: null,
    cause: null,
    by: null,
    reason: 'Nothing has been sent to the database yet.',
    documentsRead: 0,
    more: null,
    error: null,
    writes: null,
    export: null,
    kill: null,
    evidence: [],
    notes: [],
    answerAs: null,
    keepMs: null,
    task: false,
    ...changes,
  };
}

/** The same record with an end. */
export function ended(record: OperationRecord, changes: Partial<OperationRecord> = {}): OperationRecord {
  return { ...record, outcome: 'succeeded', server: 'ended', wait: 'answered', endedAt: new Date().toISOString(), ...changes };
}

export const documentsOf = (...values: object[]): Uint8Array[] => values.map((value) => new Uint8Array(BSON.serialize(value)));

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
});

/** A folder that is removed after the tests of the file. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-test-'));
  folders.push(folder);
  return folder;
}

/** Whether a text stands in any file under the folder. */
export function holdsText(folder: string, text: string): boolean {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).some((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text));
}
