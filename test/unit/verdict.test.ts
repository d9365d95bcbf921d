import { describe, expect, it } from 'vitest';
import type { Fact, Sighting } from '../../src/domain/facts.js';
import { type JudgedOperation, atDeadline, judge } from '../../src/domain/verdict.js';

const node = 'db1:27017';
const process = { id: '65a000010000000000000001', me: node };
const restarted = { id: '65a000990000000000000002', me: node };
const elsewhere = { id: '65a000990000000000000003', me: 'db2:27017' };
const read: JudgedOperation = { writes: false, foreign: false };
const write: JudgedOperation = { writes: true, foreign: false };
const foreignRead: JudgedOperation = { writes: false, foreign: true };

const operation: Sighting = { kind: 'operation', opid: 7, namespace: 'a.b', waitingForLock: false, killPending: false };

// Facts at whole moments: each look takes one, so that `t` alone tells the order.
const sent = (t: number): Fact => ({ kind: 'sent', t, node });
const latched = (t: number): Fact => ({ kind: 'latched', t });
const callOver = (t: number): Fact => ({ kind: 'call_over', t });
const replied = (t: number, code?: number): Fact => ({ kind: 'replied', t, node, code });
const seen = (t: number, sighting: Partial<Sighting> = {}, on = process): Fact => ({ kind: 'seen', startedAt: t, endedAt: t + 0.5, node, process: on, sighting: { ...operation, ...sighting } });
const absent = (t: number, on = process): Fact => ({ kind: 'absent', startedAt: t, endedAt: t + 0.5, node, process: on });
const noAnswer = (t: number): Fact => ({ kind: 'no_answer', startedAt: t, endedAt: t + 0.5, node, reason: 'timed out' });
const killSent = (t: number, on = process): Fact => ({ kind: 'kill_sent', t, node, process: on });
const killRefused = (t: number): Fact => ({ kind: 'kill_refused', t, node, sentAt: t - 1 });
const killFailed = (t: number): Fact => ({ kind: 'kill_failed', t, node, sentAt: t - 1 });

describe('when the reply of the call has come', () => {
  it.each([11601, 237, 43])('an interrupt (%i) after our kill is stopped, killed by us', (code) => {
    expect(judge([sent(1), latched(2), seen(3), killSent(4), replied(5, code)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', server: 'ended' });
  });
  it('an interrupt without a kill of ours is killed by others', () => {
    expect(judge([sent(1), replied(2, 11601)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'others' });
  });
  it('an interrupt that came before our kill was sent is not ours', () => {
    expect(judge([sent(1), replied(2, 11601), killSent(3)], read)).toMatchObject({ outcome: 'killed', by: 'others' });
  });
  it('success after a kill is ended_first, whatever the kill was told', () => {
    expect(judge([sent(1), latched(2), seen(3), killSent(4), absent(5), absent(6), absent(7), replied(8)], read)).toMatchObject({ verdict: 'ended_first', outcome: 'succeeded' });
  });
  it('the time limit of the server is timed_out, and no success of a kill', () => {
    expect(judge([sent(1), latched(2), seen(3), killSent(4), replied(5, 50)], read)).toMatchObject({ verdict: 'ended_first', outcome: 'timed_out' });
  });
  it.each([11600, 11602, 10334, 0])('another error (%i) is ended_first and failed', (code) => {
    expect(judge([sent(1), replied(2, code)], read)).toMatchObject({ verdict: 'ended_first', outcome: 'failed' });
  });
  it('a write that was interrupted is stopped too: the server said so itself', () => {
    expect(judge([sent(1), latched(2), seen(3), killSent(4), replied(5, 11601)], write)).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
  });
});

describe('when nothing was sent', () => {
  it('a call that ended unsent is never_sent', () => {
    expect(judge([latched(1), { kind: 'not_sent', t: 2 }], read)).toMatchObject({ verdict: 'never_sent', outcome: 'never_sent', server: 'not_sent' });
  });
  it('a call that may still be sent is pending, not never_sent', () => {
    expect(judge([latched(1)], read)).toMatchObject({ verdict: 'pending', outcome: null, server: 'not_sent' });
  });
});

describe('when the reply has not come', () => {
  it('sent and never seen stays unknown, however many looks were empty', () => {
    const facts = [sent(1), latched(2), ...Array.from({ length: 50 }, (_, i) => absent(3 + i))];
    expect(judge(facts, read)).toMatchObject({ verdict: 'pending', server: 'not_seen', outcome: null });
    expect(atDeadline(judge(facts, read), facts)).toBe('unknown');
  });
  it('seen, killed, and then absent in enough looks is stopped for a read', () => {
    const facts = [sent(1), latched(2), callOver(2), seen(3), killSent(4), absent(5)];
    expect(judge(facts, read).verdict).toBe('pending');
    expect(judge([...facts, absent(6)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', server: 'not_seen' });
  });
  it('absence is no verdict while the reply can still come: it waits for the reply, or for the end of the call', () => {
    const facts = [sent(1), latched(2), seen(3), killSent(4), absent(5), absent(6)];
    expect(judge(facts, read).awaitsReply).toBeUndefined();
    const absentNow = [...facts, absent(7)];
    expect(judge(absentNow, read)).toMatchObject({ verdict: 'pending', server: 'not_seen', outcome: null, awaitsReply: true });
    expect(judge([...absentNow, replied(8, 11601)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(judge([...absentNow, callOver(8)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(judge([...absentNow, callOver(8)], write)).toMatchObject({ verdict: 'gone', outcome: 'lost' });
  });
  it('the same is only gone for a write, since it may have ended by itself', () => {
    expect(judge([sent(1), latched(2), callOver(2), seen(3), killSent(4), absent(5), absent(6)], write)).toMatchObject({ verdict: 'gone', outcome: 'lost' });
  });
  it('seen and then absent without a kill is gone, not stopped', () => {
    expect(judge([sent(1), seen(2), callOver(3), absent(4), absent(5)], read)).toMatchObject({ verdict: 'gone', outcome: 'lost', by: null });
  });
  it('a look that began before the kill was sent does not count', () => {
    expect(judge([sent(1), latched(2), seen(3), absent(5), absent(6), killSent(7), absent(6.9), absent(8), absent(9)], read).verdict).toBe('pending');
  });
  it('looks do not count while a further command could be sent', () => {
    expect(judge([sent(1), seen(3), absent(5), absent(6), absent(7), absent(8)], read).verdict).toBe('pending');
  });
  it('a node that does not answer breaks the row: its silence is never an empty look', () => {
    const facts = [sent(1), latched(2), seen(3), killSent(4), absent(5), absent(6), noAnswer(7)];
    expect(judge(facts, read)).toMatchObject({ verdict: 'pending', server: 'unreachable' });
    expect(atDeadline(judge(facts, read), facts)).toBe('unknown');
    expect(judge([...facts, absent(8)], read).verdict).toBe('pending');
  });
  it('seen again after empty looks, it starts from the beginning', () => {
    expect(judge([sent(1), latched(2), seen(3), killSent(4), absent(5), absent(6), seen(7), absent(8)], read).verdict).toBe('pending');
  });
  it('empty looks on another process at the same address prove nothing', () => {
    const facts = [sent(1), latched(2), seen(3), killSent(4), ...[5, 6, 7, 8].map((t) => absent(t, elsewhere))];
    expect(judge(facts, read)).toMatchObject({ verdict: 'pending', server: 'not_seen' });
    expect(atDeadline(judge(facts, read), facts)).toBe('unknown');
  });
  it('a process that does not name itself proves nothing by not showing it', () => {
    const nameless = { id: null, me: null };
    const facts: Fact[] = [sent(1), latched(2), seen(3, {}, nameless as never), killSent(4, nameless as never), ...[5, 6, 7, 8].map((t) => absent(t, nameless as never))];
    expect(judge(facts, read).verdict).toBe('pending');
  });
  it('a member that was started again since takes what ran on it along: gone, and nobody knows how', () => {
    expect(judge([sent(1), latched(2), callOver(3), seen(3), absent(5, restarted)], read)).toMatchObject({ verdict: 'gone', outcome: 'lost' });
  });
  it('told to stop and still seen is kill_pending, and still_running at the deadline', () => {
    const facts = [sent(1), latched(2), seen(3), killSent(4), seen(5, { killPending: true })];
    expect(judge(facts, read)).toMatchObject({ verdict: 'pending', server: 'kill_pending' });
    expect(atDeadline(judge(facts, read), facts)).toBe('still_running');
  });
  it('seen only before a kill was sent is unknown at the deadline, not still_running', () => {
    const facts = [sent(1), latched(2), seen(3), killSent(4)];
    expect(atDeadline(judge(facts, read), facts)).toBe('unknown');
    expect(atDeadline(judge([...facts, seen(5)], read), [...facts, seen(5)])).toBe('still_running');
  });
  it('a refused kill is refused only when a later look still sees the operation', () => {
    const facts = [sent(1), latched(2), callOver(2), seen(3), killSent(4), killRefused(5)];
    expect(judge(facts, read).verdict).toBe('pending');
    expect(judge([...facts, seen(6)], read)).toMatchObject({ verdict: 'refused', server: 'running', outcome: null });
  });
  it('what is absent after a refused kill has not been stopped by it: it is gone', () => {
    const facts = [sent(1), latched(2), callOver(2), seen(3), killSent(4), killRefused(5)];
    expect(judge([...facts, absent(6), absent(7)], read)).toMatchObject({ verdict: 'gone', outcome: 'lost', by: null });
    expect(judge([...facts, seen(6), killSent(7), absent(8), absent(9)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
  });
  it('a kill that nobody knows to have come through stops nothing, unless a look shows it as pending', () => {
    const facts = [sent(1), latched(2), callOver(2), seen(3), killSent(4), killFailed(5)];
    expect(judge([...facts, absent(6), absent(7)], read)).toMatchObject({ verdict: 'gone', outcome: 'lost', by: null });
    expect(judge([...facts, seen(6, { killPending: true }), absent(8), absent(9)], read)).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
  });
  it.each([
    [{ waitingForLock: true }, 'waiting_for_lock'],
    [{ kind: 'idle_cursor' as const }, 'idle_cursor'],
    [{}, 'running'],
  ])('a sighting with %o is %s', (sighting, server) => {
    expect(judge([sent(1), seen(2, sighting)], read).server).toBe(server);
  });
});

describe('when another process runs it', () => {
  it('a read that was seen, killed and then absent is stopped after more looks than for one of our own', () => {
    const facts = [seen(3), killSent(4), absent(5), absent(6), absent(7), absent(8)];
    expect(judge(facts, foreignRead).verdict).toBe('pending');
    expect(judge([...facts, absent(9)], foreignRead).verdict).toBe('stopped');
  });
  it('a write is gone at most', () => {
    expect(judge([seen(3), killSent(4), ...[5, 6, 7, 8, 9].map((t) => absent(t))], { writes: true, foreign: true })).toMatchObject({ verdict: 'gone', outcome: 'lost' });
  });
});
