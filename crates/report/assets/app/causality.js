// Causal past and future: by actor a prefix or a suffix of its events, and the events that stand in no log's order.

/** @import { Edges } from "./edges.js" */
/** @import { Event, EventSet, Numbers } from "./types.js" */

/** The past or the future of an event, which is in it. */
export class Reach {
  /**
   * @param {boolean} forward
   * @param {number[]} bounds by actor how many of its events (past), or from which on (future)
   * @param {EventSet} loose those in no log's order
   * @param {number} size
   */
  constructor(forward, bounds, loose, size) {
    this.forward = forward;
    this.bounds = bounds;
    this.loose = loose;
    this.size = size;
  }

  /** @param {Event} event */
  has(event) { return this.within(event.i, event.actor, event.place); }

  /**
   * @param {number} i
   * @param {{ actor: Numbers, place: Numbers }} columns of all events
   */
  holds(i, { actor, place }) { return this.within(i, actor[i], place[i]); }

  /**
   * @param {number} i
   * @param {number} actor
   * @param {number} place
   */
  within(i, actor, place) {
    if (place < 0) return this.loose.has(i);
    const bound = this.bounds[actor];
    return this.forward ? place >= bound : place < bound;
  }
}

/** A set of events as stretches, both ends included, in order. */
export class Stretches {
  /** @param {[number, number][]} stretches */
  constructor(stretches) { this.stretches = stretches; }

  /** @param {number} i */
  has(i) {
    const at = firstOf(this.stretches.length, (k) => this.stretches[k][1] >= i);
    return at < this.stretches.length && this.stretches[at][0] <= i;
  }
}

/**
 * The first of `n` positions at which something holds that holds from there on; `n` where it never does.
 *
 * @param {number} n
 * @param {(k: number) => boolean} holds
 */
export function firstOf(n, holds) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

/**
 * The past or the future of an event: prefixes (or suffixes) of logs grow until they hold the causes (or effects) of everything in them.
 *
 * @param {{ columns: { actor: Numbers, place: Numbers }, chain: number[][], edges: Edges }} trace
 * @param {number} of
 * @param {boolean} forward
 */
export function reachOf(trace, of, forward) {
  const { actor, place } = trace.columns, { edges } = trace;
  const bounds = trace.chain.map((chain) => (forward ? chain.length : 0));
  const loose = /** @type {Set<number>} */ (new Set());
  const work = [of];
  const follow = (/** @type {number} */ other) => { work.push(other); };
  let size = 0;
  for (let e = work.pop(); e !== undefined; e = work.pop()) {
    if (place[e] < 0) {
      if (loose.has(e)) continue;
      loose.add(e);
      size++;
      edges.each(e, forward, follow);
      continue;
    }
    const a = actor[e], chain = trace.chain[a];
    const from = forward ? place[e] : bounds[a];
    const to = forward ? bounds[a] : place[e] + 1;
    for (let p = from; p < to; p++) {
      size++;
      edges.each(chain[p], forward, follow);
    }
    bounds[a] = forward ? Math.min(bounds[a], from) : Math.max(bounds[a], to);
  }
  return new Reach(forward, bounds, loose, size);
}

/**
 * The longest chain of events that leads to one, from another or from a beginning; each happens before the next. Empty where none leads there.
 *
 * @param {{ columns: { actor: Numbers, place: Numbers }, chain: number[][], edges: Edges }} trace
 * @param {number | null} from
 * @param {number} to
 */
export function longestOf(trace, from, to) {
  const { actor, place } = trace.columns, low = from ?? 0;
  if (low > to) return [];
  // By event: how many stand on the longest chain to it, and the event before it there.
  const depth = new Int32Array(to - low + 1), back = new Int32Array(to - low + 1).fill(-1);
  for (let e = low; e <= to; e++) {
    const look = (/** @type {number} */ cause) => {
      if (cause < low || depth[cause - low] < depth[e - low] || depth[cause - low] === 0) return;
      depth[e - low] = depth[cause - low] + 1;
      back[e - low] = cause;
    };
    if (place[e] > 0) look(trace.chain[actor[e]][place[e] - 1]);
    trace.edges.each(e, false, look);
    if (depth[e - low] === 0 && (from === null || e === from)) depth[e - low] = 1;
  }
  const chain = /** @type {number[]} */ ([]);
  if (depth[to - low] > 0) for (let e = to; e >= 0; e = back[e - low]) chain.push(e);
  return chain.reverse();
}

/**
 * What an event waited for, and what that waited for, and so on, back to another event or to a beginning: of all that is right before an
 * event, what came last. Empty where the other event does not happen before it.
 *
 * @param {{ columns: { actor: Numbers, place: Numbers }, chain: number[][], edges: Edges }} trace
 * @param {number | null} from
 * @param {number} to
 * @param {Numbers} at by event its time; NaN where it has none
 */
export function waitedFor(trace, from, to, at) {
  const { actor, place } = trace.columns, after = from === null ? null : reachOf(trace, from, true);
  if (after && !after.holds(to, trace.columns)) return [];
  const path = [to];
  for (let e = to; e !== from;) {
    let last = -1;
    const look = (/** @type {number} */ cause) => {
      if (after && !after.holds(cause, trace.columns)) return;
      const [one, other] = [at[cause], last < 0 ? NaN : at[last]];
      if (last < 0 || one > other || (!(other > one) && cause > last)) last = cause;
    };
    if (place[e] > 0) look(trace.chain[actor[e]][place[e] - 1]);
    trace.edges.each(e, false, look);
    if (last < 0) break;
    path.push(last);
    e = last;
  }
  return path.reverse();
}
