import assert from "node:assert/strict";
import { test } from "node:test";

import { RemoteTrace } from "../../assets/app/remote.js";
import { Hits } from "../../assets/app/search.js";
import { LocalTrace } from "../../assets/app/trace.js";
import { wordsOf } from "../../assets/app/words.js";
import { sample } from "./sample.js";

const EVENT = { actor: "raft-2", kind: "receive", type: "RequestVote", payload: "Term(2) from:elsewhere", from: "raft-1", to: "raft-2", seq: "7" };

async function holds(query, event = EVENT) {
  const trace = new LocalTrace(...sample([event]));
  return (await trace.search(wordsOf(query), -1)).total === 1;
}

test("words match any text, whatever the case", async () => {
  for (const query of ["vote", "VOTE term(2)", "raft-1", "raft-2/7", "t-2/7", "receive", ""]) assert.ok(await holds(query), query);
  for (const query of ["vote nowhere", "raft-3", "raft-2/8"]) assert.ok(!(await holds(query)), query);
});

test("a word with the name of a field looks at that field alone", async () => {
  for (const query of ["type:vote", "actor:raft-2", "from:raft-1", "to:raft-2", "kind:rec", "payload:term", "id:/7", "type:"]) assert.ok(await holds(query), query);
  for (const query of ["type:term", "actor:raft-1", "from:elsewhere", "kind:send", "id:vote"]) assert.ok(!(await holds(query)), query);
});

test("a word with another colon is looked for as it stands", async () => {
  assert.ok(!(await holds("http://x")));
  assert.ok(!(await holds("constructor:x")), "only fields of an event are fields");
  assert.ok(await holds("http://x:1", { ...EVENT, payload: "http://x:1" }));
});

/** The same, event by event. */
function matches(trace, i, words) {
  const event = trace.get(i);
  const fields = { ...event, actor: trace.actors[event.actor] };
  return words.every((word) => {
    const [, field, rest] = /^(actor|kind|id|type|payload|from|to):(.*)$/.exec(word) ?? [null, null, word];
    const names = field ? [field] : ["actor", "kind", "id", "type", "payload", "from", "to"];
    return names.some((name) => (fields[name] ?? "").toLowerCase().includes(rest));
  });
}

test("a search finds what a look at each event finds", async () => {
  const some = (of, k) => of[k % of.length];
  const events = Array.from({ length: 400 }, (_, k) => ({ actor: some(["n-1", "N-12", "b/3"], k * 7), kind: some(["start", "send", "receive"], k * 5), type: some([undefined, "Vote", "Votes"], k * 11), payload: some([undefined, "x:1", "1/2", "Vote"], k * 13), from: some([undefined, "n-1"], k * 3), seq: String(k + 1) }));
  const trace = new LocalTrace(...sample(events));
  for (const query of ["vote", "n-1", "n-12/2", "b/3/0/2", "type:vote", "payload:1", "id:1/2", "from:n vote", "kind:s", "to:x", "1", "/", "actor:n-1 payload:vote", "x:1", "type:"]) {
    const words = wordsOf(query);
    const expected = events.map((_, i) => i).filter((i) => matches(trace, i, words));
    assert.deepEqual((await trace.search(words, -1)).events, expected, query);
    assert.deepEqual((await trace.search(words, 100)).events, expected.filter((i) => i > 100), query);
  }
});

/** A trace that hands out few events at a time, as a server does. */
function paged(all, size) {
  let asked = 0;
  return { asked: () => asked, search: async (_, after) => {
    asked++;
    const behind = all.filter((i) => i > after);
    return { events: behind.slice(0, size), total: behind.length };
  } };
}

test("all hits are gone through, in both directions, and loaded when they are wanted", async () => {
  const all = Array.from({ length: 1203 }, (_, k) => 3 * k), trace = paged(all, 500);
  const hits = new Hits(trace, ["x"]);
  await hits.more();
  assert.equal(hits.total, 1203);
  assert.equal(await hits.get(499), all[499]);
  assert.equal(trace.asked(), 1, "what is known is not asked for again");
  assert.equal(await hits.get(500), all[500]);
  assert.equal(await hits.get(1202), all[1202]);
  assert.equal(trace.asked(), 3);
  assert.equal(await hits.get(1203), null);
  assert.equal(hits.find(300), 100);
  assert.equal(hits.find(301), -1);
});

test("nothing is found where nothing is", async () => {
  const hits = new Hits(paged([], 500), ["x"]);
  await hits.more();
  assert.deepEqual([hits.total, await hits.get(0), hits.find(0)], [0, null, -1]);
});

test("a server is asked for the hits behind the last", async () => {
  const questions = [];
  const { fetch } = globalThis;
  globalThis.fetch = async (_, { body }) => {
    questions.push(JSON.parse(body));
    const answers = [{ events: [2, 5], total: 3 }, { events: [9], total: 1 }];
    return { ok: true, json: async () => answers[questions.length - 1] };
  };
  try {
    const [page, data] = sample([{ actor: "a" }]);
    const hits = new Hits(new RemoteTrace(page, data), ["x"]);
    await hits.more();
    assert.equal(await hits.get(2), 9);
    assert.deepEqual(questions, [{ ask: "search", words: ["x"], after: null }, { ask: "search", words: ["x"], after: 5 }]);
    assert.equal(hits.total, 3);
  } finally { globalThis.fetch = fetch; }
});
