import assert from "node:assert/strict";
import { test } from "node:test";

import { LocalTrace } from "../../assets/app/trace.js";
import { Filter, View } from "../../assets/app/view.js";
import { sample } from "./sample.js";

/** Numbers that look random and are the same in each run. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What a view shows of an execution: by shown event the shown events right before it. */
function drawn(trace, view, without = null) {
  const last = new Map(), before = new Map();
  for (let row = 0; row < view.count; row++) {
    const i = view.at(row), { actor, place, causes } = trace.get(i), list = [];
    if (place >= 0) {
      if (last.has(actor)) list.push(last.get(actor));
      last.set(actor, i);
    }
    for (const { i: cause, actor: of } of causes) if (view.has(cause, of)) list.push(cause);
    for (const cause of view.through(i)) if (!without || without[0] !== cause || without[1] !== i) list.push(cause);
    before.set(i, list);
  }
  return before;
}

function closed(before) {
  const past = new Map();
  for (const [i, list] of before) past.set(i, new Set(list.flatMap((cause) => [cause, ...past.get(cause)])));
  return past;
}

test("the order that runs through hidden events is kept, and no arrow is needless", () => {
  for (let seed = 1; seed <= 80; seed++) {
    const below = numbers(seed), n = 4 + below(36);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(5)}`, loose: below(8) === 0, type: "XYZ"[below(3)] }));
    const edges = Array.from({ length: below(40) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges)), filter = new Filter();
    if (below(2)) filter.actors.add("a1").add("a3");
    if (below(2)) filter.types.add("Y");
    if (below(2)) filter.text = "id:/[02468]$/";
    const view = new View(trace, filter), past = closed(drawn(trace, view));
    for (let row = 0; row < view.count; row++) {
      const i = view.at(row), reach = trace.reach(i, false);
      const truth = events.map((_, k) => k).filter((k) => k !== i && view.has(k, trace.get(k).actor) && reach.has(trace.get(k)));
      assert.deepEqual([...past.get(i)].sort((a, b) => a - b), truth, `seed ${seed}, event ${i}`);
    }
    for (let row = 0; row < view.count; row++) {
      const i = view.at(row);
      for (const cause of view.through(i)) {
        if (trace.get(cause).place < 0) continue;
        assert.ok(!closed(drawn(trace, view, [cause, i])).get(i).has(cause), `seed ${seed}: ${cause} before ${i} is told anyway`);
      }
    }
  }
});

test("rows, events and lanes are those that are not hidden", () => {
  const events = ["raft-10", "raft-2", "_monitor", "raft-2", "db", "raft-10"].map((actor, k) => ({ actor, type: k === 3 ? undefined : "T" }));
  const [page, data] = sample(events, [], { violations: [4] });
  const trace = new LocalTrace(page, data), filter = new Filter();
  const labels = () => new View(trace, filter).lanes.map((lane) => lane.label);
  const shown = () => { const view = new View(trace, filter); return Array.from({ length: view.count }, (_, row) => view.at(row)); };
  assert.deepEqual(labels(), ["db", "raft-2", "raft-10", "_monitor"]);
  filter.groups = ["raft-*"];
  assert.deepEqual(labels(), ["db", "raft-* (2)", "_monitor"]);
  filter.order = ["_monitor", "raft-10"];
  assert.deepEqual(labels(), ["_monitor", "raft-* (2)", "db"]);
  assert.deepEqual(shown(), [0, 1, 2, 3, 4, 5], "lanes hide nothing");
  filter.actors.add("raft-2");
  assert.deepEqual(labels(), ["_monitor", "raft-10", "db"], "a lane of one has the name of its actor");
  assert.deepEqual(shown(), [0, 2, 4, 5]);
  const view = new View(trace, filter);
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((i) => view.row(i)), [0, 1, 1, 2, 2, 3]);
  filter.types.add("T");
  assert.deepEqual(shown(), [4], "the violation stays");
  filter.actors.clear();
  assert.deepEqual(shown(), [3, 4]);
  filter.types = new Set([""]);
  filter.text = "raft-10";
  assert.deepEqual(shown(), [1, 2, 4]);
  filter.text = "/(/";
  assert.deepEqual(shown(), [0, 1, 2, 4, 5], "what cannot be understood hides nothing");
});
