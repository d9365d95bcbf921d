import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Fact, addFact, isLook } from '../../src/domain/facts.js';
import { judge } from '../../src/domain/verdict.js';
import { isFinal } from '../../src/domain/words.js';

const nodes = ['a:1', 'b:1'] as const;
const processes = [{ id: '65a000010000000000000001', me: 'a:1' }, { id: '65a000020000000000000002', me: 'a:1' }, { id: '65a000030000000000000003', me: 'b:1' }, { id: null, me: null }] as const;
const sighting = { kind: 'operation', opid: 1, namespace: 'a.b', waitingForLock: false, killPending: false } as const;

const node = fc.constantFrom(...nodes);
const process = fc.constantFrom(...processes);
type Shape = (t: number) => Fact;
const shape: fc.Arbitrary<Shape> = fc.oneof(
  fc.constant<Shape>((t) => ({ kind: 'latched', t })),
  fc.constant<Shape>((t) => ({ kind: 'call_over', t })),
  node.map((at): Shape => (t) => ({ kind: 'sent', t, node: at })),
  { weight: 4, arbitrary: fc.record({ node, process, killPending: fc.boolean() }).map((of): Shape => (t) => ({ kind: 'seen', startedAt: t, endedAt: t + 0.5, node: of.node, process: of.process, sighting: { ...sighting, killPending: of.killPending } })) },
  { weight: 8, arbitrary: fc.record({ node, process }).map((of): Shape => (t) => ({ kind: 'absent', startedAt: t, endedAt: t + 0.5, ...of })) },
  node.map((at): Shape => (t) => ({ kind: 'no_answer', startedAt: t, endedAt: t + 0.5, node: at, reason: 'x' })),
  { weight: 3, arbitrary: fc.record({ node, process }).map((of): Shape => (t) => ({ kind: 'kill_sent', t, ...of })) },
  node.map((at): Shape => (t) => ({ kind: 'kill_refused', t, node: at, sentAt: t - 1 })),
  node.map((at): Shape => (t) => ({ kind: 'kill_failed', t, node: at, sentAt: t - 1 })),
);
const unanswered = fc.array(shape, { maxLength: 40 }).map((shapes) => shapes.map((make, t) => make(t)));
const kinds = fc.record({ writes: fc.boolean(), foreign: fc.boolean() });
const runs = { numRuns: 20_000 };

it('without a reply, no sequence of evidence gives stopped unless it was seen, killed there, and then missed on the same process', () => {
  fc.assert(
    fc.property(unanswered, kinds, (facts, operation) => {
      if (judge(facts, operation).verdict !== 'stopped') return;
      expect(operation.writes).toBe(false);
      const seen = facts.filter((fact) => fact.kind === 'seen');
      expect(seen.length).toBeGreaterThan(0);
      for (const at of new Set(seen.map((fact) => fact.node))) {
        const last = seen.filter((fact) => fact.node === at).at(-1);
        const kills = facts.filter((fact) => fact.kind === 'kill_sent' && fact.node === at && fact.process.id === last?.process.id);
        expect(kills.length).toBeGreaterThan(0);
        const lastKill = Math.max(...facts.map((fact) => (fact.kind === 'kill_sent' && fact.node === at ? fact.t : 0)));
        const looks = facts.filter((fact) => isLook(fact) && fact.node === at);
        const misses = looks.filter((fact) => fact.kind === 'absent' && fact.process.id !== null && fact.process.id === last?.process.id && fact.startedAt >= lastKill && fact.startedAt > (last?.endedAt ?? 0));
        expect(misses.length).toBeGreaterThanOrEqual(2);
        expect(looks.at(-1)?.kind).toBe('absent');
        if (!operation.foreign) {
          expect(facts.some((fact) => fact.kind === 'call_over')).toBe(true);
        }
      }
    }),
    runs,
  );
});

it('what was sent and never seen and not answered is never final', () => {
  fc.assert(
    fc.property(unanswered, kinds, (facts, operation) => {
      const neverSeen = facts.filter((fact) => fact.kind !== 'seen');
      expect(isFinal(judge(neverSeen, operation).verdict)).toBe(false);
    }),
    runs,
  );
});

it('while the reply of its call can still come, nothing is final but that the server process was replaced', () => {
  fc.assert(
    fc.property(unanswered, fc.boolean(), (facts, writes) => {
      const inFlight = facts.filter((fact) => fact.kind !== 'call_over');
      const { verdict, reason } = judge([{ kind: 'sent', t: -1, node: 'a:1' }, ...inFlight], { writes, foreign: false });
      if (isFinal(verdict)) expect({ verdict, reason }).toEqual({ verdict: 'gone', reason: expect.stringContaining('replaced by another one') as string });
    }),
    runs,
  );
});

it('a kill that was refused or lost is never what stopped an operation', () => {
  fc.assert(
    fc.property(unanswered, kinds, (facts, operation) => {
      const inVain = facts.flatMap((fact): Fact[] => (fact.kind === 'kill_sent' ? [fact, { kind: 'kill_refused', t: fact.t + 0.1, node: fact.node, sentAt: fact.t }] : [fact]));
      expect(judge(inVain, operation).verdict).not.toBe('stopped');
    }),
    runs,
  );
});

it('while the last look at a node sees it, nothing is final and no outcome is given', () => {
  fc.assert(
    fc.property(unanswered, kinds, node, process, (facts, operation, at, on) => {
      const t = facts.length;
      const judgement = judge([...facts, { kind: 'sent', t, node: at }, { kind: 'seen', startedAt: t, endedAt: t + 0.5, node: at, process: on, sighting }], operation);
      expect(isFinal(judgement.verdict)).toBe(false);
      expect(judgement.outcome).toBeNull();
    }),
    runs,
  );
});

it('an outcome is given with a final verdict and with no other', () => {
  fc.assert(
    fc.property(unanswered, kinds, (facts, operation) => {
      const { verdict, outcome } = judge(facts, operation);
      expect(outcome !== null).toBe(isFinal(verdict));
    }),
    runs,
  );
});

it('shortening the list of facts changes no judgement', () => {
  fc.assert(
    fc.property(fc.array(shape, { maxLength: 60 }), kinds, (shapes, operation) => {
      const facts = shapes.map((make, t) => make(t));
      const kept: Fact[] = [];
      for (const fact of facts) addFact(kept, fact);
      expect(judge(kept, operation)).toEqual(judge(facts, operation));
    }),
    runs,
  );
});

it('a list of looks that say the same stays short', () => {
  const kept: Fact[] = [];
  for (let t = 0; t < 10_000; t += 1) for (const at of nodes) addFact(kept, { kind: 'absent', startedAt: t, endedAt: t, node: at, process: processes[0] });
  expect(kept.length).toBeLessThanOrEqual(20);
});
