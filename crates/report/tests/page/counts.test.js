import assert from "node:assert/strict";
import { test } from "node:test";

import { apartOf } from "../../assets/app/apart.js";
import { groupsOf, quantile, timesOf, whole } from "../../assets/app/counts.js";
import { lineOf } from "../../assets/app/inspector.js";
import { hashOf, linked, notesIn } from "../../assets/app/link.js";
import { queryOf } from "../../assets/app/pattern.js";
import { Track } from "../../assets/app/track.js";
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

const found = async (trace, text) => (await trace.search(queryOf(text, trace.actors), -1)).events;

test("events are counted by what they are, and a search finds each group", async () => {
  const events = [
    { actor: "a", kind: "send", type: "Vote (1)", to: "b", time: "2024-05-01T10:00:00.000Z", fields: '{"term":7}' },
    { actor: "b", kind: "receive", type: "Vote (1)", from: "a", time: "2024-05-01T10:00:00.030Z", fields: '{"term":7}' },
    { actor: "a", kind: "send", type: "Vote (1)", to: "b", time: "2024-05-01T10:00:01.000Z", fields: '{"term":"x y"}' },
    { actor: "b", kind: "receive", type: "Vote (1)", from: "a", time: "2024-05-01T10:00:01.010Z" },
    { actor: "b", kind: "start" },
  ];
  const trace = new LocalTrace(...sample(events, [[0, 1], [2, 3]])), times = timesOf(trace);
  assert.deepEqual([...times.at].map((at) => at / 1e6), [0, 30, 1000, 1010, NaN]);
  for (const [by, expected] of [
    ["type", [["Vote (1)", 4], ["start", 1]]],
    ["actor", [["b", 3], ["a", 2]]],
    ["kind", [["receive", 2], ["send", 2], ["start", 1]]],
    ["type and actor", [["Vote (1) · a", 2], ["Vote (1) · b", 2], ["start · b", 1]]],
    ["from and to", [["a → b", 2]]],
    ["fields.term", [["7", 2], ["x y", 1]]],
  ]) {
    const groups = groupsOf(trace, () => true, by, times.at);
    assert.deepEqual(groups.map(({ name, count }) => [name, count]), expected, by);
    for (const { name, query, count } of groups) assert.equal((await found(trace, query)).length, count, `${by}, ${name}: ${query}`);
  }
  const [votes] = groupsOf(trace, () => true, "type", times.at);
  assert.deepEqual([votes.first, votes.last, votes.waits.map((wait) => wait / 1e6), votes.actors], [0, 3, [10, 30], 2]);
  assert.deepEqual([quantile([1, 2, 3], 0.5), quantile([1, 2, 3], 1), quantile([1], 0.95)], [2, 3, 1]);
  assert.deepEqual(groupsOf(trace, (i) => i > 3, "type", null).map(({ name }) => name), ["start"]);
  assert.equal(whole("type", "a/b.c"), "type:/^a\\/b\\.c$/");
});

test("numbers and times are compared", async () => {
  const at = (ms) => new Date(Date.UTC(2024, 4, 1, 10) + ms).toISOString();
  const events = [
    { actor: "a", kind: "send", time: at(0), fields: '{"term":9}' }, { actor: "b", kind: "receive", time: at(40), fields: '{"term":10}' },
    { actor: "b", kind: "receive", time: at(2000), fields: '{"term":"ten"}' }, { actor: "a", kind: "start" },
  ];
  const trace = new LocalTrace(...sample(events, [[0, 1], [0, 2]]));
  for (const [text, expected] of [
    ["fields.term:>9", [1]], ["fields.term:>=9", [0, 1]], ["fields.term:<10", [0]], ["fields.term:<=1e1", [0, 1]], ["NOT fields.term:>0", [2, 3]],
    ["took:>40ms", [2]], ["took:>=40ms", [1, 2]], ["took:<0.1s", [1]], ["gap:>1s", [2]], ["time:>2024-05-01T10:00:00.040Z", [2]], ["time:<=2024-05-01T10:00:00.040Z", [0, 1]],
    ["type:>x", []], ["took:>1ms -> took:>1s", [2]],
  ]) assert.deepEqual(await found(trace, text), expected, text);
  for (const text of ["took:>soon", "gap:", "took:100ms"]) assert.match(queryOf(text, []).error ?? "", /takes a time/, text);
});

test("times in a unit that nobody told are not mixed with others", () => {
  const trace = new LocalTrace(...sample([{ actor: "a", time: "17" }, { actor: "a", time: "2024-05-01T10:00:00Z" }, { actor: "a", time: "20" }]));
  const { at, unit, some } = timesOf(trace);
  assert.deepEqual([[...at], unit, some], [[0, NaN, 3], "", true]);
});

test("concurrent events are found, all of them, as by comparing all", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const below = numbers(seed), n = 4 + below(26);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(4)}`, loose: below(7) === 0, type: "XY"[below(2)] }));
    const edges = Array.from({ length: below(22) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges));
    const apart = (a, b) => a !== b && !trace.reach(a, false).has(trace.get(b)) && !trace.reach(a, true).has(trace.get(b));
    for (const [x, y] of ["XY", "XX"]) {
      const all = events.map((_, i) => i), partners = (i) => all.filter((k) => apart(i, k) && ((events[i].type === x && events[k].type === y) || (events[i].type === y && events[k].type === x)));
      const truth = all.filter((i) => partners(i).length);
      const { events: hits, match } = await trace.search(queryOf(`type:${x} || type:${y}`, trace.actors), -1);
      assert.deepEqual(hits, truth, `seed ${seed}, ${x}${y}`);
      for (const hit of hits) {
        const pair = match(hit);
        assert.ok(pair.includes(hit) && apart(pair[0], pair[1]) && pair[0] < pair[1], `seed ${seed}: ${pair}`);
      }
    }
  }
  const trace = new LocalTrace(...sample([{ actor: "a" }, { actor: "b" }]));
  assert.deepEqual([...apartOf(trace, [() => true, () => true])], [[0, 1], [1, 0]]);
  for (const [text, says] of [["a || b || c", "between two"], ["a -> b || c", "between two"], ["|| a", "before ||"], ["a ||", "behind ||"]]) assert.ok((queryOf(text, []).error ?? "").includes(says), text);
  assert.equal(queryOf('a "||" b', []).patterns.length, 1);
});

test("events of one actor alone are those that no edge joins with another", async () => {
  const events = [{ actor: "a", kind: "send" }, { actor: "b", kind: "start" }, { actor: "b", kind: "start" }, { actor: "b", kind: "violation" }, { actor: "a", kind: "state" }];
  const [page, data] = sample(events, [[0, 2, "clock"], [1, 3, "clock"]]), trace = new LocalTrace(page, data);
  assert.deepEqual(await found(trace, "is:local"), [1, 3, 4], "a send whose receive is unknown is none, nor is what another actor is known to be before");
  const filter = new Filter();
  filter.local = true;
  const view = new View(trace, filter);
  assert.deepEqual(Array.from({ length: view.count }, (_, row) => view.at(row)), [0, 2]);
});

test("a name alone is any value, and what ends it", async () => {
  const changes = { texts: ["role", "leader", "term", "7"], event: [0, 1, 2], actor: [0, 0, 0], variable: [0, 2, 0], value: [1, 3, -1] };
  const trace = new LocalTrace(...sample(Array.from({ length: 4 }, (_, k) => ({ actor: "a", fields: k === 3 ? '{"term":0}' : undefined })), [], { changes }));
  assert.deepEqual(await found(trace, "state.role:"), [0, 2]);
  assert.deepEqual(await found(trace, "fields.term:"), [3]);
  assert.deepEqual(await trace.changesOf(0, "role"), [0, 2]);
  assert.deepEqual(await trace.changesOf(0, "nothing"), []);
});

test("a variable is drawn where it has a value", () => {
  const texts = ["role", "leader", "follower"];
  const changes = { texts, event: [1, 4, 6], actor: [0, 0, 0], variable: [0, 0, 0], value: [1, 2, -1] };
  const trace = new LocalTrace(...sample(Array.from({ length: 9 }, () => ({ actor: "a" })), [], { changes })), track = new Track(trace, "role");
  assert.deepEqual(track.stretches(0, 0, 9), [{ from: 1, to: 4, value: "leader" }, { from: 4, to: 6, value: "follower" }]);
  assert.deepEqual(track.stretches(0, 2, 4), [{ from: 1, to: 4, value: "leader" }], "what began before is in sight");
  assert.deepEqual([track.stretches(0, 7, 9), track.stretches(1, 0, 9)], [[], []]);
  assert.deepEqual([track.range, track.hue("leader"), track.width("leader")], [null, 1, 8]);
  const many = Array.from({ length: 20 }, (_, k) => String(k * 10));
  const counted = new LocalTrace(...sample(Array.from({ length: 20 }, () => ({ actor: "a" })), [], { changes: { texts: ["term", ...many], event: many.map((_, k) => k), actor: many.map(() => 0), variable: many.map(() => 0), value: many.map((_, k) => k + 1) } }));
  const wide = new Track(counted, "term");
  assert.deepEqual(wide.range, { low: 0, high: 190 });
  assert.ok(wide.width("190") > wide.width("100") && wide.width("100") > wide.width("0"));
});

test("notes go with the address, whatever they say", () => {
  const notes = [{ execution: "my run: 2", id: "a/1", text: "waits = here & there #1" }, { execution: "my run: 2", id: "node:1/7", text: "ü <b>" }];
  const hash = hashOf("x&y/3", "my run: 2", notes);
  assert.deepEqual(linked(hash, ["my run: 2"]), { execution: "my run: 2", id: "x&y/3" });
  assert.deepEqual(notesIn(hash, ["my run: 2"]), notes);
  const plain = [{ execution: null, id: "a/1", text: "" }];
  assert.deepEqual(notesIn(hashOf("a/2", null, plain), []), plain);
  for (const broken of ["#a/1", "#a/1&", "#a/1&=x", "#a/1&b", "#a/1&b/2=%"]) assert.deepEqual(notesIn(broken, []), [], broken);
});

test("the line of an event is printed out of a plain file alone", () => {
  assert.equal(lineOf({ source: "it's.log", offset: "9007199254740993" }), "tail -c +9007199254740994 'it'\\''s.log' | head -n 1");
  for (const event of [{ source: null, offset: "1" }, { source: "a.log", offset: "-1" }, { source: "a.jsonl.zst", offset: "1" }]) assert.equal(lineOf(event), null);
});

test("an event has one name, and a step has its number beside it", () => {
  const trace = new LocalTrace(...sample([{ actor: "a", kind: "start", seq: "4" }, { actor: "a", kind: "send", seq: "5" }, { actor: "b/1", kind: "receive", seq: "2" }]));
  assert.deepEqual([0, 1, 2, 3].map((i) => [trace.idOf(i), trace.stepOf(i)]), [["a/4", 1], ["a/5", null], ["b/1/0/2", 2], [null, null]]);
  assert.equal(trace.position(1), "step 1 of 2");
});
