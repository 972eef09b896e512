import assert from "node:assert/strict";
import { test } from "node:test";

import { mateOf } from "../../assets/app/edges.js";
import { number, plural } from "../../assets/app/text.js";
import { LocalTrace, nameOf } from "../../assets/app/trace.js";
import { sample } from "./sample.js";

const EVENTS = [
  { actor: "b", kind: "start" },
  { actor: "a", kind: "start" },
  { actor: "a", kind: "send", type: "Vote", to: "b" },
  { actor: "b", kind: "receive", type: "Vote", from: "a" },
  { actor: "b", kind: "state" },
  { actor: "_monitor", kind: "violation" },
];

test("names keep large numbers and tell incarnations from names", () => {
  assert.equal(nameOf("a", 0, "18446744073709551615"), "a/18446744073709551615");
  assert.equal(nameOf("a", 2, "1"), "a/2/1");
  assert.equal(nameOf("a/7", 0, "1"), "a/7/0/1");
});

test("the environment stands left, the monitor right, names by their numbers", () => {
  const trace = new LocalTrace(...sample(["n-10", "_monitor", "n-9", "_environment"].map((actor) => ({ actor }))));
  assert.deepEqual(trace.order.map((actor) => trace.actors[actor]), ["_environment", "n-9", "n-10", "_monitor"]);
  assert.deepEqual(trace.order.map((actor) => trace.lane[actor]), [0, 1, 2, 3]);
});

test("steps pass over sends and states", async () => {
  const trace = new LocalTrace(...sample(EVENTS, [[2, 3]]));
  assert.deepEqual(trace.steps, [0, 1, 3, 5]);
  const walk = async (from, forward) => {
    const seen = [];
    for (let i = await trace.nextStep(from, forward); i !== null; i = await trace.nextStep(i, forward)) seen.push(i);
    return seen;
  };
  assert.deepEqual(await walk(-1, true), [0, 1, 3, 5]);
  assert.deepEqual(await walk(trace.n, false), [5, 3, 1, 0]);
  assert.deepEqual(await walk(2, false), [1, 0], "from between two steps");
  assert.equal(trace.position(2), "step 2 of 4");
  assert.equal(new LocalTrace(...sample([{ actor: "a", kind: "send" }, ...EVENTS])).position(0), "before the first of 4 steps");
});

test("the next event of an actor is found in both directions", async () => {
  const trace = new LocalTrace(...sample(EVENTS));
  assert.deepEqual([await trace.nextOfActor(0, true), await trace.nextOfActor(3, true), await trace.nextOfActor(4, true)], [3, 4, null]);
  assert.deepEqual([await trace.nextOfActor(4, false), await trace.nextOfActor(3, false), await trace.nextOfActor(0, false)], [3, 0, null]);
});

test("an event has its texts and both directions of its edges", () => {
  const trace = new LocalTrace(...sample(EVENTS, [[2, 3]]));
  const [send, receive] = [trace.get(2), trace.get(3)];
  assert.deepEqual([send.id, send.type, send.payload, send.to], ["a/2", "Vote", null, "b"]);
  assert.deepEqual(receive.causes, [{ i: 2, actor: 1, joint: "message_id", certain: true }]);
  assert.equal(mateOf(send).i, 3);
  assert.equal(mateOf(trace.get(0)), null);
  assert.equal(trace.get(-1), null);
  assert.equal(trace.get(trace.n), null);
});

test("the other end is that of a message before that of a clock", () => {
  const trace = new LocalTrace(...sample([{ actor: "a" }, { actor: "b" }, { actor: "c" }], [[0, 2, "clock"], [1, 2]]));
  assert.equal(mateOf(trace.get(2)).i, 1);
});

test("variables are those after the event, with the value before", () => {
  const changes = { texts: ["term", "1", "2"], event: [1, 3, 4], actor: [0, 0, 0], variable: [0, 0, 0], value: [1, 2, -1] };
  const trace = new LocalTrace(...sample(EVENTS, [], { changes }));
  const at = (i) => trace.state(i).map(({ value, at, before }) => [value, at, before]);
  assert.deepEqual(at(0), []);
  assert.deepEqual(at(2), [["1", 1, null]]);
  assert.deepEqual(at(3), [["2", 3, "1"]]);
  assert.deepEqual(at(5), [[null, 4, "2"]], "it is gone");
});

test("edges that pass over a window are found over blocks", () => {
  const events = Array.from({ length: 1000 }, (_, i) => ({ actor: `a${i % 3}` }));
  const edges = [[0, 999], [10, 500], [255, 256], [256, 700], [600, 601]];
  const trace = new LocalTrace(...sample(events, edges));
  const over = (from, to) => trace.crossing(from, to).map(([cause, , effect]) => [cause, effect]).sort((a, b) => a[0] - b[0]);
  assert.deepEqual(over(300, 400), [[0, 999], [10, 500], [256, 700]]);
  assert.deepEqual(over(256, 257), [[0, 999], [10, 500]], "ends in the window are not over it");
  assert.deepEqual(over(701, 720), [[0, 999]]);
});

test("types come by how often they occur, and the strip counts every event", async () => {
  const types = ["A", "B", "B", undefined, "C", "C", "C"];
  const trace = new LocalTrace(...sample(types.map((type) => ({ actor: "a", type }))));
  // Texts of the sample are not shared, so types are counted by what they say.
  assert.equal(trace.types().length, 6);
  const counts = await trace.overview();
  assert.equal(counts.flat().reduce((sum, n) => sum + n, 0), trace.n);
});

test("numbers are not rounded, and words agree with them", () => {
  assert.equal(number("1152921504606846977"), "1\u202f152\u202f921\u202f504\u202f606\u202f846\u202f977");
  assert.equal(plural("1", "event"), "1 event");
  assert.equal(plural(1234, "event"), "1\u202f234 events");
});
