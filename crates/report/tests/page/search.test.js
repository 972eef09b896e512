import assert from "node:assert/strict";
import { test } from "node:test";

import { LocalTrace } from "../../assets/app/trace.js";
import { matches, wordsOf } from "../../assets/app/words.js";
import { sample } from "./sample.js";

const EVENT = { kind: "receive", type: "RequestVote", payload: "Term(2) from:elsewhere", from: "raft-1", to: "raft-2", id: "raft-2/7" };
const holds = (query) => matches(EVENT, "raft-2", wordsOf(query));

test("words match any text, whatever the case", () => {
  for (const query of ["vote", "VOTE term(2)", "raft-1", "raft-2/7", "receive", ""]) assert.ok(holds(query), query);
  for (const query of ["vote nowhere", "raft-3"]) assert.ok(!holds(query), query);
});

test("a word with the name of a field looks at that field alone", () => {
  for (const query of ["type:vote", "actor:raft-2", "from:raft-1", "to:raft-2", "kind:rec", "payload:term", "id:/7"]) assert.ok(holds(query), query);
  for (const query of ["type:term", "actor:raft-1", "from:elsewhere", "kind:send"]) assert.ok(!holds(query), query);
});

test("a word with another colon is looked for as it stands", () => {
  assert.ok(!holds("http://x"));
  assert.ok(!holds("constructor:x"), "only fields of an event are fields");
  assert.ok(matches({ ...EVENT, payload: "http://x:1" }, "a", wordsOf("http://x:1")));
});

test("a search goes on behind its last result", async () => {
  const trace = new LocalTrace(...sample(Array.from({ length: 1203 }, (_, i) => ({ actor: "a", type: i % 2 ? "Odd" : "Even" }))));
  const all = [];
  for (let found, after = -1; ; after = all[all.length - 1]) {
    found = await trace.search(["odd"], after);
    all.push(...found.events);
    assert.ok(found.events.length <= 500);
    if (!found.more) break;
  }
  assert.deepEqual(all, Array.from({ length: 601 }, (_, k) => 2 * k + 1));
  assert.deepEqual(await trace.search(["nothing"], -1), { events: [], more: false });
});
