// Pairs of concurrent events: neither happens before the other.

import { firstOf, reachOf } from "./causality.js";

/** @import { Edges } from "./edges.js" */
/** @import { Numbers } from "./types.js" */

/** @typedef {{ n: number, columns: { actor: Numbers, place: Numbers }, chain: number[][], edges: Edges }} Ordered */

/** More numbers than this are not kept. */
const MOST = 60_000_000;
/** Most events in no log's order that are looked at: each is by itself. */
const LOOSE = 300;

/** @type {WeakMap<Ordered, [Int32Array[], Int32Array[]]>} what was found of an execution */
const KNOWN = new WeakMap();

/**
 * By event and actor: how many events of the actor happen before it (back), or the place of the first that happens after it. Events of one
 * actor that know the same of others share a row; what an event knows of its own actor is not in it.
 *
 * @param {Ordered} trace
 * @param {boolean} forward
 */
function knowledge({ n, columns: { actor, place }, chain, edges }, forward) {
  const width = chain.length, nothing = Int32Array.from(chain, (one) => (forward ? one.length : 0));
  const better = (/** @type {number} */ a, /** @type {number} */ b) => (forward ? a < b : a > b);
  const known = /** @type {Int32Array[]} */ (new Array(n));
  let kept = 0;
  for (let k = 0; k < n; k++) {
    const e = forward ? n - 1 - k : k, a = actor[e], next = place[e] < 0 ? undefined : chain[a][place[e] + (forward ? 1 : -1)];
    const base = next === undefined ? nothing : known[next];
    let own = base;
    edges.each(e, forward, (other) => {
      if (own === base) { own = base.slice(); kept += width; }
      const row = known[other], b = actor[other];
      for (let c = 0; c < width; c++) if (better(row[c], own[c])) own[c] = row[c];
      const at = place[other] < 0 ? null : forward ? place[other] : place[other] + 1;
      if (at !== null && better(at, own[b])) own[b] = at;
    });
    if (kept > MOST) throw new Error("there are too many events and actors to look for concurrent events");
    known[e] = own;
  }
  return known;
}

/**
 * Of two sorts of events those that are concurrent with one of the other sort, and for each one of these.
 *
 * @param {Ordered} trace
 * @param {[(i: number) => boolean, (i: number) => boolean]} sorts
 * @returns {Map<number, number>} in order
 */
export function apartOf(trace, sorts) {
  const { n, columns: { actor, place }, chain } = trace;
  let both = KNOWN.get(trace);
  if (!both) KNOWN.set(trace, (both = [knowledge(trace, false), knowledge(trace, true)]));
  const [before, after] = both;
  const found = /** @type {Map<number, number>} */ (new Map());
  const all = sorts.map((holds) => { const some = []; for (let i = 0; i < n; i++) if (holds(i)) some.push(i); return some; });
  const loose = all.map((some) => some.filter((i) => place[i] < 0).slice(0, LOOSE));
  const note = (/** @type {number} */ e, /** @type {number} */ other) => { const known = found.get(e); if (known === undefined || other < known) found.set(e, other); };
  for (const [one, two] of [[0, 1], [1, 0]]) {
    // By actor the places of the other sort.
    const places = chain.map(() => /** @type {number[]} */ ([]));
    for (const i of all[two]) if (place[i] >= 0) places[actor[i]].push(place[i]);
    for (const e of all[one]) {
      for (let a = 0; a < chain.length; a++) {
        if (!places[a].length || (a === actor[e] && place[e] >= 0)) continue;
        const low = before[e][a], k = firstOf(places[a].length, (at) => places[a][at] >= low);
        if (k >= places[a].length || places[a][k] >= after[e][a]) continue;
        note(e, chain[a][places[a][k]]);
        break;
      }
    }
  }
  // What is in no log's order is compared with each of the other sort.
  for (const [one, two] of [[0, 1], [1, 0]]) {
    for (const e of loose[one]) {
      const past = reachOf(trace, e, false), future = reachOf(trace, e, true);
      for (const other of all[two]) {
        if (other === e || past.holds(other, trace.columns) || future.holds(other, trace.columns)) continue;
        note(e, other);
        note(other, e);
      }
    }
  }
  return new Map([...found].sort((a, b) => a[0] - b[0]));
}
