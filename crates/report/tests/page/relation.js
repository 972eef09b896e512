// Asks the page's own script, without a browser, what happens before what, and compares that with the truth.
//
//     node relation.js CASES.json
//
// A case has the data of a page, the events before each event, and the address of a server for the same execution, if one runs.

import fs from "node:fs";

import { SERVED, groupsOf } from "../../assets/app/counts.js";
import { mateOf } from "../../assets/app/edges.js";
import { queryOf } from "../../assets/app/pattern.js";
import { RemoteTrace } from "../../assets/app/remote.js";
import { LocalTrace } from "../../assets/app/trace.js";

const [file] = process.argv.slice(2);
let server = "";
const fetched = globalThis.fetch;
globalThis.fetch = (where, what) => fetched(server + where, what);

function check(holds, what) {
  if (!holds) throw new Error(what);
}

// Edges that pass over windows, against all edges one by one.
function windows(trace, edges, n, sizes) {
  for (const size of sizes) {
    for (let from = 0; from < n; from += Math.max(1, Math.floor(n / 97))) {
      const to = Math.min(n, from + size);
      const over = new Set(edges.filter(([cause, effect]) => cause < from && effect >= to).map(([cause, effect]) => `${cause} ${effect}`));
      const found = new Set(trace.crossing(from, to).map(([cause, , effect]) => `${cause} ${effect}`));
      check(found.size <= over.size && [...found].every((edge) => over.has(edge)), `what passes over ${from}..${to} is too much`);
      check(found.size >= Math.min(300, over.size), `of ${over.size} edges over ${from}..${to} there are ${found.size}`);
    }
  }
}

// A server finds what the page itself finds, and longest chains that are as long.
async function searches(local, remote) {
  const types = local.types().slice(0, 2).map((type) => JSON.stringify(type)), [a, b] = [types[0], types[types.length - 1]];
  const actor = local.actors[0];
  const queries = ["1", "kind:send", "NOT kind:send", "/^[a-z]/", "is:kept", "is:pruned", "is:violation", "state:1", "id:/[02468]$/", `"${actor}"`, "fields.term:1", "msg_id:1", "time:0", "source:s", "is:local", "fields.term:", "fields.term:>1", "state.role:", "state.n:", "state.n:<=3", "msg_id:>=10", "NOT msg_id:<10", "payload:>1e1"];
  if (a) queries.push(`type:${a}`, `type:${a} -> type:${b}`, `kind:send type:${a} -> kind:receive -> NOT kind:send`, `${actor.replaceAll("/", "*")}: -> kind:receive`);
  for (const text of queries) {
    const query = queryOf(text, local.actors), [here, there] = [await local.search(query, -1), await remote.search(query, -1)];
    check(String(here.events) === String(there.events) && here.total === there.total, `${text}: ${here.total} and ${there.total} events`);
    if (here.match) for (const event of here.events.slice(0, 300)) check(String(here.match(event)) === String(there.match(event)), `${text}: the match of ${event}`);
  }
  for (const by of SERVED) {
    const told = (groups) => JSON.stringify(groups.map(({ name, query, count, actors, first, last }) => [name, query, count, actors, first, last]).sort());
    check(told(groupsOf(local, () => true, by, null)) === told(await remote.groups(by)), `events counted by ${by}`);
  }
  for (let to = 0; to < local.n; to += 97) {
    for (const from of [null, to >> 1]) check((await local.longest(from, to)).length === (await remote.longest(from, to)).length, `longest chain from ${from} to ${to}`);
  }
}

async function compare({ data, past, served }) {
  const local = new LocalTrace(data, data.traces[0]), n = local.n;
  check(past.length === n, `${n} events`);
  const before = past.map((list) => new Set(list));
  const edges = data.traces[0].columns.edges;
  const pairs = edges.cause.map((cause, k) => [cause, edges.effect[k]]);
  windows(local, pairs, n, [1, 7, 40]);
  let remote = null;
  if (served) {
    server = served;
    remote = new RemoteTrace({ ...data, served: true }, data.traces[0]);
    await remote.load(0, n - 1);
    windows(remote, pairs, n, [1, 35, 400, 1024, 1500]);
  }
  if (remote) await searches(local, remote);
  for (let i = 0; i < n; i += remote ? 211 : 1) {
    for (const forward of [false, true]) {
      const inside = (j) => j === i || (forward ? before[j].has(i) : before[i].has(j));
      for (const trace of [local, remote].filter(Boolean)) {
        const reach = await trace.reach(i, forward);
        let size = 0;
        for (let j = 0; j < n; j++) {
          const event = trace.get(j);
          check(reach.has(event) === inside(j), `${forward ? "future" : "past"} of ${i}: ${j} ${event.id}`);
          if (inside(j)) size++;
        }
        check(reach.size === size, `size of the ${forward ? "future" : "past"} of ${i}`);
      }
    }
    const event = local.get(i), mate = mateOf(event);
    if (remote) check(local.stepOf(i) === remote.stepOf(i) && local.idOf(i) === remote.idOf(i), `the step of ${event.id}`);
    check((mate === null) === (event.causes.length + event.effects.length === 0), `the other end of ${event.id}`);
  }
  return data.traces[0].columns.seq.map((_, i) => local.get(i).id);
}

async function main() {
  const names = [];
  for (const one of JSON.parse(fs.readFileSync(file, "utf8"))) names.push(await compare(one));
  console.log(JSON.stringify(names));
}

main().catch((error) => { console.error(error.message); process.exit(1); });
