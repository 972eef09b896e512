import assert from "node:assert/strict";
import { test } from "node:test";

import { Stretches, firstOf, longestOf, waitedFor } from "../../assets/app/causality.js";
import { LocalTrace } from "../../assets/app/trace.js";
import { sample } from "./sample.js";

/** Numbers that look random and are the same in each run. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What an event reaches, by a walk over single edges. */
function walked(trace, edges, of, forward) {
  const seen = new Set([of]), work = [of];
  for (let e = work.pop(); e !== undefined; e = work.pop()) {
    const next = edges.filter(([cause, effect]) => (forward ? cause : effect) === e).map(([cause, effect]) => (forward ? effect : cause));
    const { actor, place } = trace.get(e);
    if (place >= 0) next.push(trace.chain[actor][place + (forward ? 1 : -1)]);
    for (const other of next) {
      if (other === undefined || seen.has(other)) continue;
      seen.add(other);
      work.push(other);
    }
  }
  return seen;
}

test("past and future are those of a walk over all edges", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const below = numbers(seed), n = 2 + below(40);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(4)}`, loose: below(6) === 0 }));
    const edges = Array.from({ length: below(30) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges));
    for (let of = 0; of < n; of++) {
      for (const forward of [false, true]) {
        const reach = trace.reach(of, forward), truth = walked(trace, edges, of, forward);
        const found = events.map((_, i) => i).filter((i) => reach.has(trace.get(i)));
        assert.deepEqual(found, [...truth].sort((a, b) => a - b), `seed ${seed}, event ${of}, ${forward}`);
        assert.equal(reach.size, truth.size);
      }
    }
  }
});

test("stretches hold their ends and nothing between them", () => {
  const set = new Stretches([[2, 2], [5, 9]]);
  assert.deepEqual(Array.from({ length: 12 }, (_, i) => i).filter((i) => set.has(i)), [2, 5, 6, 7, 8, 9]);
  assert.equal(new Stretches([]).has(0), false);
});

test("the first position at which something holds", () => {
  for (let first = 0; first <= 9; first++) assert.equal(firstOf(9, (k) => k >= first), first);
});

test("the longest chain is as long as any, and each of its events happens before the next", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const below = numbers(seed), n = 2 + below(20);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(4)}`, loose: below(6) === 0 }));
    const edges = Array.from({ length: below(20) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges));
    const past = events.map((_, i) => walked(trace, edges, i, false));
    const length = (from, to) => {
      // By event the most events on a chain to it.
      const most = [];
      for (let i = 0; i <= to; i++) {
        let best = from === null || i === from ? 1 : 0;
        for (let k = 0; k < i; k++) if (past[i].has(k) && most[k] > 0) best = Math.max(best, most[k] + 1);
        most[i] = best;
      }
      return most[to];
    };
    for (let to = 0; to < n; to++) {
      for (const from of [null, below(to + 1)]) {
        const chain = longestOf(trace, from, to);
        assert.equal(chain.length, length(from, to), `seed ${seed}, ${from} to ${to}`);
        if (!chain.length) continue;
        assert.equal(chain[chain.length - 1], to);
        if (from !== null) assert.equal(chain[0], from);
        for (let k = 1; k < chain.length; k++) assert.ok(past[chain[k]].has(chain[k - 1]));
      }
    }
  }
});

test("a critical path goes back to what came last of all that is right before an event", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const below = numbers(seed), n = 3 + below(30);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(4)}`, loose: below(7) === 0 }));
    const edges = Array.from({ length: below(24) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges)), at = Float64Array.from(events, () => (below(9) === 0 ? NaN : below(50)));
    const before = (i) => { const { actor, place, causes } = trace.get(i); return [...causes.map((end) => end.i), ...(place > 0 ? [trace.chain[actor][place - 1]] : [])]; };
    for (let to = 0; to < n; to++) {
      for (const from of [null, ...Array.from({ length: to + 1 }, (_, k) => k)]) {
        const path = waitedFor(trace, from, to, at), inside = (i) => from === null || trace.reach(from, true).has(trace.get(i));
        if (!inside(to)) { assert.deepEqual(path, []); continue; }
        assert.equal(path[path.length - 1], to);
        if (from === null) assert.equal(before(path[0]).length, 0); else assert.equal(path[0], from);
        for (let k = 1; k < path.length; k++) {
          const some = before(path[k]).filter(inside);
          assert.ok(some.includes(path[k - 1]));
          assert.ok(!some.every((i) => !Number.isNaN(at[i])) || at[path[k - 1]] === Math.max(...some.map((i) => at[i])), `seed ${seed}: ${path}`);
        }
      }
    }
  }
});
