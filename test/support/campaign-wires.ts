/** Plays the faults of a wave on the proxy: on the connections that carry its lives, and on the control connections. */

import type { ControlFault, WireFault } from './campaign-plan.js';
import type { TcpProxy, Wire } from './tcp-proxy.js';

export interface WirePlayer {
  /** From now on the connection that carries this operation does that. */
  expect(id: string, fault: WireFault): void;
  /** Ends all faults that can end: what is held is released, what is slow is quick. A cut stays a cut. */
  lift(): void;
}

const tagId = /mongo-leash\.1\.[0-9a-z]+\.([0-9a-z]{26})\./;

export function playWires(proxy: TcpProxy, control: readonly ControlFault[]): WirePlayer {
  const faults = new Map<string, WireFault>();
  const timers = new Set<NodeJS.Timeout>();
  let lifted = false;

  function after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (!lifted) act();
    }, ms);
    timers.add(timer);
  }

  proxy.onClientBytes((wire, text) => {
    if (lifted || wire.kind !== 'data') return;
    const id = tagId.exec(text)?.[1];
    const fault = id === undefined ? undefined : faults.get(id);
    if (id === undefined || fault === undefined) return;
    const command = text.includes('getMore') ? 'getMore' : 'aggregate';
    if (fault.kind === 'hold_request' && fault.command !== command) return;
    // Slow for as long as it carries this one; everything else happens once.
    if (fault.kind !== 'slow') faults.delete(id);
    start(wire, fault);
  });

  function start(wire: Wire, fault: WireFault): void {
    switch (fault.kind) {
      case 'none':
        wire.toServer.delay(0);
        wire.toClient.delay(0);
        return;
      case 'slow':
        wire.toServer.delay(fault.upMs);
        wire.toClient.delay(fault.downMs);
        return;
      case 'hold_request':
        wire.toServer.hold();
        after(fault.ms, () => { wire.toServer.release(); });
        return;
      case 'hold_reply':
        wire.toClient.hold();
        after(fault.ms, () => { wire.toClient.release(); });
        return;
      case 'cut':
        after(fault.afterMs, () => { wire.cut(fault.how, fault.side); });
        return;
      case 'silence':
        after(fault.afterMs, () => { wire.cut('silence'); });
    }
  }

  for (const fault of control) {
    after(fault.at, () => {
      const wires = proxy.wires().filter((wire) => wire.kind === 'control' && wire.open);
      for (const wire of wires) {
        if (fault.kind === 'cut') wire.cut('rst');
        if (fault.kind === 'hold') {
          wire.toServer.hold();
          after(fault.forMs, () => { wire.toServer.release(); });
        }
        if (fault.kind === 'slow') {
          wire.toClient.delay(fault.ms);
          after(fault.forMs, () => { wire.toClient.delay(0); });
        }
      }
    });
  }

  return {
    expect: (id, fault) => void faults.set(id, fault),
    lift() {
      lifted = true;
      for (const timer of timers) clearTimeout(timer);
      for (const wire of proxy.wires()) {
        for (const lane of [wire.toServer, wire.toClient]) {
          lane.delay(0);
          lane.release();
        }
      }
    },
  };
}
