/** An opid goes back to killOp exactly as the server gave it, whatever its form (case D05). */
import { EventEmitter } from 'node:events';
import { type Document, type MongoClient, Long, ObjectId } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { createAdmission } from '../../src/core/admission.js';
import { systemClock } from '../../src/core/clock.js';
import { createLeash } from '../../src/core/leash.js';
import type { Deployment, Log } from '../../src/core/ports.js';
import { formatTag, principalHash } from '../../src/domain/tag.js';
import { createControl } from '../../src/mongo/control.js';
import { hitsOf } from '../../src/mongo/look.js';
import { createMemoryStore } from '../../src/store/memory.js';

const principal = 'someone@somewhere';
const operationId = 'a'.repeat(26);
const tag = formatTag({ instance: '0'.repeat(10), operationId, principal: principalHash(principal), session: '0'.repeat(6), kind: 'r', request: 'n:1', own: '' });
const rowOf = (opid: unknown): Document => ({ type: 'op', op: 'getmore', opid, ns: 'app.left', command: { comment: tag }, microsecs_running: Long.fromNumber(2_500_000) });

/** A fake of a mongos's answers, which no mongod gives: rows with such opids, each gone once it was killed. */
function fakeMongos(rows: Document[]) {
  const events = new EventEmitter();
  const killed: unknown[] = [];
  const processId = new ObjectId();
  const client = {
    on: (name: string, listener: (event: object) => void) => events.on(name, listener),
    connect: async () => undefined,
    close: async () => undefined,
    db: () => ({
      command: async (command: Document) => {
        events.emit('commandStarted', { commandName: Object.keys(command)[0], connectionId: 'mongos:27017', serverConnectionId: 1 });
        if ('hello' in command) return { topologyVersion: { processId } };
        if ('killOp' in command) killed.push(command['op']);
        return { cursor: { id: Long.ZERO, firstBatch: rows.filter((row) => !killed.includes(row['opid'])) } };
      },
    }),
  };
  return { client: client as unknown as MongoClient, killed };
}

function leashOn(client: MongoClient) {
  const clock = systemClock();
  const node = 'mongos:27017';
  const control = createControl(client, node, clock);
  const unused = () => { throw new Error('not used here'); };
  const deployment: Deployment = { ready: async () => undefined, nodes: () => [node], look: () => control.look(), survey: unused, hiddenMembers: unused, setName: () => null, kill: (_node, sighting) => control.kill(sighting), killSessions: unused, execute: unused, collectionInfo: unused, close: async () => undefined };
  const log: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  return createLeash({
    deployment,
    store: createMemoryStore({ retentionMs: 1_000, maxResultBytes: 1_000 }, clock),
    clock,
    log,
    instance: '1'.repeat(10),
    newOperationId: unused,
    admission: createAdmission({ maxOperations: 1, maxQueued: 0 }),
    limits: { deadlineGraceMs: 0, keepMs: 3_600_000 },
    checkPolicy: async () => undefined,
    self: { instance: '1'.repeat(10), startedAt: clock.iso(), hostname: 'here', machineId: null, pid: process.pid, bootId: null, pidNamespace: null, processStart: null },
    livenessOf: async () => 'unknown',
    sweepMode: 'off',
  });
}

const caller = { principal, session: '1'.repeat(6), requestId: 1, signal: new AbortController().signal };
const forms: [string, unknown, string][] = [
  ['text of a shard', 'shardA:79014', 'shardA:79014'],
  ['a number', 79_014, '79014'],
  ['a negative number', -5, '-5'],
  ['a 64-bit number', Long.fromString('8589934592123456789'), '8589934592123456789'],
];

describe('an opid', () => {
  it.each(forms)('that is %s keeps its type in a sighting (D05)', (_form, opid) => {
    const [hit] = hitsOf([rowOf(opid)]);
    expect(hit?.sighting.opid).toBe(opid);
    expect(hit?.sighting.secondsRunning).toBe(2.5);
  });

  it.each(forms)('that is %s goes back to killOp as it came, and is shown with every digit (D05)', async (_form, opid, text) => {
    const { client, killed } = fakeMongos([rowOf(opid)]);
    const { record, verdict } = await leashOn(client).kill({ operationId }, caller, 5_000);
    expect(killed).toEqual([opid]);
    expect(killed[0]).toBe(opid);
    expect(record.kill?.sent).toEqual([expect.objectContaining({ method: 'killOp', target: text })]);
    expect(record.kill?.before).toContainEqual(expect.objectContaining({ opid: text }));
    expect(verdict).toBe('stopped');
  });
});

describe('an operation that runs on several shards', () => {
  it('has every one of its rows killed, and no row of another (D05)', async () => {
    const stranger = { ...rowOf('shardA:1'), command: { comment: tag.replace(operationId, 'b'.repeat(26)) } };
    const rows = [rowOf('shardA:79014'), stranger, rowOf('shardB:12'), rowOf('shardC:12')];
    const { client, killed } = fakeMongos(rows);
    const { verdict } = await leashOn(client).kill({ operationId }, caller, 5_000);
    expect(killed).toEqual(['shardA:79014', 'shardB:12', 'shardC:12']);
    expect(verdict).toBe('stopped');
  });
});
