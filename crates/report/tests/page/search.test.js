import assert from "node:assert/strict";
import { test } from "node:test";

import { RemoteTrace } from "../../assets/app/remote.js";
import { Hits } from "../../assets/app/search.js";
import { LocalTrace } from "../../assets/app/trace.js";
import { isEmpty, queryOf } from "../../assets/app/pattern.js";
import { sample } from "./sample.js";

const EVENT = { actor: "raft-2", kind: "receive", type: "RequestVote", payload: "Term(2) from:elsewhere", from: "raft-1", to: "raft-2", seq: "7" };

/** A query that has no error. */
function asked(text, trace) {
  const query = queryOf(text, trace.actors);
  assert.equal(query.error, null, text);
  return query;
}

async function holds(query, event = EVENT) {
  const trace = new LocalTrace(...sample([event]));
  return (await trace.search(asked(query, trace), -1)).total === 1;
}

test("words match any text, whatever the case", async () => {
  for (const query of ["vote", "VOTE term(2)", "raft-1", "raft-2/7", "t-2/7", "receive", ""]) assert.ok(await holds(query), query);
  for (const query of ["vote nowhere", "raft-3", "raft-2/8"]) assert.ok(!(await holds(query)), query);
});

test("a word with the name of a field looks at that field alone", async () => {
  for (const query of ["type:vote", "actor:raft-2", "from:raft-1", "to:raft-2", "kind:rec", "payload:term", "id:/7", "type:"]) assert.ok(await holds(query), query);
  for (const query of ["type:term", "actor:raft-1", "from:elsewhere", "kind:send", "id:vote"]) assert.ok(!(await holds(query)), query);
});

test("a search in one field looks at that field's texts, each once", async () => {
  const events = Array.from({ length: 200 }, (_, k) => ({ ...EVENT, payload: `payload ${k}` }));
  const [page, data] = sample(events);
  // One text for all types, as the page has it.
  data.columns.type = data.columns.type.map(() => data.columns.type[0]);
  const looked = [];
  const trace = new LocalTrace(page, data);
  trace.columns.texts = new Proxy(data.columns.texts, { get: (texts, name) => { if (/^\d+$/.test(String(name))) looked.push(Number(name)); return Reflect.get(texts, name); } });
  for (const [query, at_most] of [["type:vote", 1], ["type:/vote/i", 1], ["type:vote -> type:vote", 2], ["from:elsewhere", 200]]) {
    looked.length = 0;
    await trace.search(asked(query, trace), -1);
    const there = query.startsWith("type") ? [data.columns.type[0]] : data.columns.from;
    assert.deepEqual([...new Set(looked)].sort((a, b) => a - b), there, query);
    assert.ok(looked.length <= at_most, `${query}: ${looked.length}`);
  }
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
    const words = query.split(" "), wanted = asked(query, trace);
    const expected = events.map((_, i) => i).filter((i) => matches(trace, i, words));
    assert.deepEqual((await trace.search(wanted, -1)).events, expected, query);
    assert.deepEqual((await trace.search(wanted, 100)).events, expected.filter((i) => i > 100), query);
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
  const hits = new Hits(trace, queryOf("x", []));
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
  const hits = new Hits(paged([], 500), queryOf("x", []));
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
    const hits = new Hits(new RemoteTrace(page, data), queryOf("type:x", []));
    await hits.more();
    assert.equal(await hits.get(2), 9);
    const patterns = [[{ not: false, tests: [{ key: "type", path: [], text: "x", regex: false, flags: "" }] }]];
    assert.deepEqual(questions, [{ ask: "search", patterns, after: null }, { ask: "search", patterns, after: 5 }]);
    assert.equal(hits.total, 3);
  } finally { globalThis.fetch = fetch; }
});

test("every field can be searched, and members of content and state", async () => {
  const event = { ...EVENT, payload: "two words", fields: '{"term":12345678901234567890,"log":{"index":[4,"five"]}}', time: "2024-05-01T10:00:00Z", msg_id: "m-17", source: "raft-2.log" };
  const found = ["fields.term:12345678901234567890", "fields.log.index.1:five", "fields.log:index", "fields:five", "time:T10:00", "msg_id:m-17", "source:raft-2", "m-17", '"two words"', 'payload:"two words"', "raft-*:Request", "RAFT-2:vote", "is:kept"];
  for (const query of found) assert.ok(await holds(query, event), query);
  for (const query of ["fields.term:x", "fields.log.index.0:five", "fields.nothing:5", '"words two"', 'type:"two words"', "raft:vote", "raft-2.log", "is:pruned", "raft-3:vote", "state:two"]) assert.ok(!(await holds(query, event)), query);
});

test("variables are found where they change", async () => {
  const changes = { texts: ["role", "leader", "{\"count\":7}", "tally"], event: [1, 1, 3], actor: [0, 0, 0], variable: [0, 3, 0], value: [1, 2, -1] };
  const trace = new LocalTrace(...sample(Array.from({ length: 4 }, () => ({ actor: "a" })), [], { changes }));
  const found = async (query) => (await trace.search(asked(query, trace), -1)).events;
  assert.deepEqual(await found("state.role:lead"), [1]);
  assert.deepEqual(await found("state:role"), [1, 3], "a variable that goes away changes");
  assert.deepEqual(await found("leader"), [1]);
  assert.deepEqual(await found("state.tally.count:7"), [1]);
  assert.deepEqual(await found("state.tally:lead"), []);
  assert.deepEqual(await found("NOT state:role"), [0, 2]);
});

test("regular expressions and what is not wanted", async () => {
  for (const query of ["/Request(Vote|Ack)/", "type:/^request/i", "payload:/Term\\(\\d\\)/", "/from:else\\S+$/", "NOT type:/^Vote/", "NOT raft-3", "vote NOT kind:send", "id:/2\\/7$/", "/7", "NOT raft-2:Ack"]) assert.ok(await holds(query), query);
  for (const query of ["type:/^vote/", "NOT vote", "NOT raft-2:Vote", "/^Vote/", "type:/term/i"]) assert.ok(!(await holds(query)), query);
  assert.ok(await holds("/a b/", { ...EVENT, payload: "a b" }), "an expression may hold a space");
});

test("what cannot be understood is said", () => {
  for (const [query, says] of [["/(/", "xpression"], ["type:/[/", "xpression"], ["is:nothing", "is: takes"], ["-> a", "before ->"], ["a ->", "behind ->"], ["a NOT", "behind NOT"]]) assert.match(queryOf(query, []).error ?? "", new RegExp(says), query);
  assert.equal(queryOf('"a -> NOT', []).error, null, "quotes that do not end hold all that follows");
  assert.ok(isEmpty(queryOf("  ", [])));
});

/** Numbers that look random and are the same in each run. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("events one after the other are found, all of them, as by trying all", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const below = numbers(seed), n = 4 + below(24);
    const events = Array.from({ length: n }, () => ({ actor: `a${below(3)}`, loose: below(7) === 0, type: "XYZ"[below(3)] }));
    const edges = Array.from({ length: below(16) }, () => [below(n), below(n)]).filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    const trace = new LocalTrace(...sample(events, edges));
    const before = (a, b) => a !== b && trace.reach(b, false).has(trace.get(a));
    for (const types of ["XY", "XX", "XYZ", "XXX"]) {
      const matches = [];
      const grow = (match) => {
        if (match.length === types.length) { matches.push(match); return; }
        for (let i = 0; i < n; i++) if (events[i].type === types[match.length] && (!match.length || before(match[match.length - 1], i))) grow([...match, i]);
      };
      grow([]);
      const { events: found, total, taking, match } = await trace.search(asked([...types].map((type) => `type:${type}`).join(" -> "), trace), -1);
      const sorted = (all) => [...new Set(all)].sort((a, b) => a - b);
      assert.deepEqual(found, sorted(matches.map((one) => one[one.length - 1])), `seed ${seed}, ${types}`);
      assert.equal(total, found.length);
      assert.deepEqual(taking, sorted(matches.flat()), `seed ${seed}, ${types}`);
      for (const event of found) assert.ok(matches.some((one) => String(one) === String(match(event))), `seed ${seed}, ${types}: ${match(event)}`);
    }
  }
});

test("actors and types with an order between them", async () => {
  const events = [{ actor: "a", type: "Vote" }, { actor: "b", type: "Vote" }, { actor: "b", type: "Ack" }, { actor: "a", type: "Vote" }];
  const trace = new LocalTrace(...sample(events, [[0, 1]]));
  assert.deepEqual((await trace.search(asked("a:Vote -> b:Vote", trace), -1)).events, [1]);
  assert.deepEqual((await trace.search(asked("b:Vote -> a:Vote", trace), -1)).events, [], "they are concurrent");
  assert.deepEqual((await trace.search(asked("*:Vote -> NOT a -> /Ack/", trace), -1)).events, [2]);
});
