import assert from "node:assert/strict";
import { test } from "node:test";

import { between, momentOf } from "../../assets/app/clock.js";
import { recordOf } from "../../assets/app/inspector.js";
import { isTree, membersOf, plainOf, valueOf } from "../../assets/app/json.js";
import { hashOf, linked } from "../../assets/app/link.js";
import { LocalTrace } from "../../assets/app/trace.js";
import { sample } from "./sample.js";

test("every name of an event has an address that leads back to it", () => {
  for (const id of ["a/1", "a/3/0/2", "node:1/7", "ä b#%/2", "a?b&c/1", "https://x:1/9"]) {
    for (const execution of [null, "recorded", "my run: 2"]) {
      assert.deepEqual(linked(hashOf(id, execution), ["recorded", "my run: 2"]), { execution, id }, `${execution} ${id}`);
    }
  }
  assert.deepEqual(linked("#node:1/7", ["recorded"]), { execution: null, id: "node:1/7" }, "typed by hand");
  assert.equal(linked("", []), null);
  assert.equal(linked("#%", []), null, "no address at all");
});

test("times are read to the nanosecond, and compared only where both are known", () => {
  assert.equal(between("2024-05-01T10:00:00.000000001Z", "2024-05-01T10:00:00.000000003Z"), "2 ns");
  assert.equal(between("2024-05-01T10:00:00Z", "2024-05-01T12:00:00.25+02:00"), "250 ms");
  assert.equal(between("2024-05-01 10:00:00,5", "2024-05-01 10:01:02"), "1 min 1 s");
  assert.equal(between("1714557600", "1714557601.5"), "1.5 s");
  assert.equal(between("1714557600000", "1714557600012"), "12 ms");
  assert.equal(between("1714557600000000000", "1714557600000001500"), "1.5 µs");
  assert.equal(between("2024-05-01T10:00:01Z", "2024-05-01T10:00:00Z"), "−1 s", "clocks may go back");
  assert.equal(between("17", "20"), "3", "in a unit that nobody told");
  for (const [a, b] of [["17", "2024-05-01T10:00:00Z"], [null, "17"], ["noon", "17"], ["2024-13-41T99:00:00Z", "17"]]) assert.equal(between(a, b), null, `${a} ${b}`);
  assert.equal(momentOf("1.5.2"), null);
});

test("content is a tree, and its numbers are those that were logged", () => {
  const value = valueOf('{"term":12345678901234567890,"list":[1,{"x":0.1}],"text":"12345678901234567890"}');
  const [[, term], [, list], [, text]] = membersOf(value);
  assert.equal(plainOf(term), "12345678901234567890");
  assert.equal(plainOf(text), "12345678901234567890");
  assert.equal(plainOf(list), null);
  assert.deepEqual(membersOf(list).map(([name]) => name), ["0", "1"]);
  for (const [text, is] of [["{}", true], [" [1]", true], ["[Leader]", false], ["{x}", false], ["7", false], ["Leader", false]]) assert.equal(isTree(text), is, text);
});

test("the record of an event is what was logged", () => {
  const trace = new LocalTrace(...sample([{ actor: "a\"b", seq: "9007199254740993", type: "Vote", fields: '{"term":9007199254740993}', msg_id: "m" }]));
  const event = trace.get(0);
  const record = recordOf(trace.actors[0], event);
  assert.match(record, /"seq": 9007199254740993,/);
  assert.match(record, /"fields": \{"term":9007199254740993\}/);
  const { actor, msg_id, type } = JSON.parse(record);
  assert.deepEqual({ actor, msg_id, type }, { actor: "a\"b", msg_id: "m", type: "Vote" });
});
