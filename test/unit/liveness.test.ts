import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type Here, type ProbedProcess, createLivenessOf, livenessOf } from '../../src/core/liveness.js';
import type { InstanceRecord, Liveness } from '../../src/core/ports.js';
import { describeInstance, parseStat, probeProcess, readMachine } from '../../src/store/machine.js';
import { eventually } from '../support/mongo.js';

const here: Here = { hostname: 'desk', machineId: 'machine-1', bootId: 'boot-2', pidNamespace: 'pid:[1]' };
const instance: InstanceRecord = { instance: 'aaaaaaaaaa', startedAt: '', pid: 42, processStart: '1000', ...here };
const asStarted: ProbedProcess = { kind: 'started', at: '1000' };
const reused: ProbedProcess = { kind: 'started', at: '2000' };
const none: ProbedProcess = { kind: 'none' };
const unknown: ProbedProcess = { kind: 'unknown' };

describe('a server process', () => {
  it.each<[string, Partial<InstanceRecord>, Partial<Here>, ProbedProcess, Liveness]>([
    ['whose pid has the same start', {}, {}, asStarted, 'alive'],
    ['whose pid has another start', {}, {}, reused, 'dead'],
    ['whose pid is not there', {}, {}, none, 'dead'],
    ['whose pid cannot be asked about', {}, {}, unknown, 'unknown'],
    ['whose own start is not known, with its pid there', { processStart: null }, {}, asStarted, 'unknown'],
    ['whose own start is not known, with its pid gone', { processStart: null }, {}, none, 'dead'],
    ['of an earlier start of this machine', { bootId: 'boot-1' }, {}, asStarted, 'dead'],
    ['of another start and another host name', { bootId: 'boot-1', hostname: 'other' }, {}, none, 'unknown'],
    ['of another start and another machine of the same name', { bootId: 'boot-1', machineId: 'machine-2' }, {}, none, 'unknown'],
    ['of another start, on a machine without an id', { bootId: 'boot-1', machineId: null }, { machineId: null }, none, 'unknown'],
    ['of another pid namespace', { pidNamespace: 'pid:[2]' }, {}, none, 'unknown'],
    ['of an unknown pid namespace', { pidNamespace: null }, {}, none, 'unknown'],
    ['seen from an unknown pid namespace', {}, { pidNamespace: null }, none, 'unknown'],
    ['of both unknown pid namespaces', { pidNamespace: null }, { pidNamespace: null }, none, 'unknown'],
    ['of a system that does not tell its start', { bootId: null }, {}, none, 'unknown'],
    ['seen from a system that does not tell its start', {}, { bootId: null }, none, 'unknown'],
    ['of a machine that was given another name since', { hostname: 'old-name' }, {}, asStarted, 'alive'],
  ])('%s is judged by what is beyond doubt', (_what, ofInstance, ofHere, probed, expected) => {
    expect(livenessOf({ ...instance, ...ofInstance }, { ...here, ...ofHere }, () => probed)).toBe(expected);
  });

  it('is unknown as long as no record names it', async () => {
    const ask = createLivenessOf({ store: { instances: async () => [instance] }, here, probe: () => asStarted });
    expect(await ask('bbbbbbbbbb')).toBe('unknown');
    expect(await ask('aaaaaaaaaa')).toBe('alive');
  });
});

describe('what the system says of a process', () => {
  it('is read behind a program name with spaces and parentheses', () => {
    const rest = ['S', 1, 42, 42, 0, -1, 4194560, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 11, 0, 987654, 1, 2].join(' ');
    expect(parseStat(`42 (a) S (b) ${rest}`)).toEqual({ kind: 'started', at: '987654' });
    expect(parseStat(`42 (x) ${rest.replace('S', 'Z').replace(' 11 0 ', ' 1 0 ')}`)).toEqual({ kind: 'none' });
    expect(parseStat('nonsense')).toEqual({ kind: 'unknown' });
  });

  it.skipIf(process.platform !== 'linux')('is the same for a process as long as it lives, also while it is stopped, and ends with it', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    const pid = child.pid ?? 0;
    const first = probeProcess(pid);
    expect(first.kind).toBe('started');
    child.kill('SIGSTOP');
    await eventually('it is stopped', () => probeProcess(pid).kind === 'started');
    expect(probeProcess(pid)).toEqual(first);
    child.kill('SIGKILL');
    await exited;
    expect(probeProcess(pid)).toEqual({ kind: 'none' });
  });

  it.skipIf(process.platform !== 'linux')('makes this very process alive', () => {
    const self = describeInstance('aaaaaaaaaa', new Date().toISOString());
    expect(self.pid).toBe(process.pid);
    expect(livenessOf(self, readMachine(), probeProcess)).toBe('alive');
    expect(livenessOf({ ...self, processStart: '1' }, readMachine(), probeProcess)).toBe('dead');
  });
});
