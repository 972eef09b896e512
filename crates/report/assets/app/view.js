// Which events of an execution are shown, and where: actors and types that are hidden, lanes in an order, lanes that several actors share. The
// order that runs through hidden events is kept.

import { isEmpty, nameOf, queryOf } from "./pattern.js";
import { isLocal } from "./trace.js";

/** @import { AnyTrace } from "./types.js" */
/** @import { LocalTrace } from "./trace.js" */

/** More numbers than this are not kept for the order through hidden events. */
const MOST = 30_000_000;

/** What is hidden and how lanes stand, in names, so that it holds for each execution of a page. */
export class Filter {
  constructor() {
    /** @type {Set<string>} */
    this.actors = new Set();
    /** @type {Set<string>} those of events; "" for events without one */
    this.types = new Set();
    /** A search: what it finds is hidden. */
    this.text = "";
    /** Whether events are hidden that are in no order with those of other actors. */
    this.local = false;
    /** @type {string[]} patterns of names; the actors of each share a lane */
    this.groups = [];
    /** @type {string[]} actors from the left, those pinned first; others follow in their own order */
    this.order = [];
    /** @type {Set<string>} */
    this.pinned = new Set();
  }

  get hides() { return this.actors.size > 0 || this.types.size > 0 || this.local || this.text.trim() !== ""; }
  get isEmpty() { return !this.hides && !this.groups.length && !this.order.length; }
}

/** @typedef {{ label: string, actors: number[], group: string | null }} Lane */

export class View {
  /**
   * @param {AnyTrace} trace
   * @param {Filter} filter
   */
  constructor(trace, filter) {
    this.trace = trace;
    this.lanes = lanesOf(trace, filter);
    /** @type {number[]} by actor its lane; -1 where it is hidden */
    this.lane = trace.actors.map(() => -1);
    this.lanes.forEach((lane, k) => { for (const actor of lane.actors) this.lane[actor] = k; });
    /** @type {Uint8Array | null} by event whether it is shown; all are where this is null */
    this.shown = isLocal(trace) && filter.hides ? shownOf(trace, filter, this.lane) : null;
    /** @type {Int32Array | null} */
    this.events = null;
    /** @type {Int32Array | null} by event how many are shown before it */
    this.rows = null;
    if (this.shown) {
      this.rows = new Int32Array(trace.n);
      let count = 0;
      for (let i = 0; i < trace.n; i++) {
        this.rows[i] = count;
        count += this.shown[i];
      }
      this.events = new Int32Array(count);
      for (let i = 0; i < trace.n; i++) if (this.shown[i]) this.events[this.rows[i]] = i;
    }
    /** By event: events before it, the order to which runs through hidden events alone. */
    this.hidden = isLocal(trace) && this.shown ? hiddenOrder(trace, this.shown) : new Map();
    /** Whether there are too many events and actors to keep that order. */
    this.loses = this.hidden === null;
  }

  get count() { return this.events ? this.events.length : this.trace.n; }

  /**
   * The row of an event; of a hidden one the row before which it would stand.
   *
   * @param {number} i
   */
  row(i) { return this.rows ? this.rows[i] : i; }

  /**
   * The event of a row.
   *
   * @param {number} row
   */
  at(row) { return this.events ? this.events[row] : row; }

  /**
   * Whether an event of an actor is shown.
   *
   * @param {number} i
   * @param {number} actor
   */
  has(i, actor) { return this.shown ? this.shown[i] === 1 : this.lane[actor] >= 0; }

  /**
   * Events before this one, the order to which runs through hidden events alone.
   *
   * @param {number} i
   * @returns {number[]}
   */
  through(i) { return this.hidden?.get(i) ?? []; }
}

/**
 * @param {AnyTrace} trace
 * @param {Filter} filter
 */
function lanesOf(trace, filter) {
  const place = new Map(filter.order.map((name, k) => [name, k]));
  const rank = (/** @type {number} */ actor) => place.get(trace.actors[actor]) ?? filter.order.length;
  // Sorting keeps the order of what it does not tell apart.
  const order = [...trace.order].sort((a, b) => rank(a) - rank(b));
  const patterns = filter.groups.map((group) => ({ group, name: new RegExp(nameOf(group), "i") }));
  const lanes = /** @type {Lane[]} */ ([]), shared = /** @type {Map<string, Lane>} */ (new Map());
  for (const actor of order) {
    const name = trace.actors[actor];
    if (filter.actors.has(name)) continue;
    const group = patterns.find((one) => one.name.test(name))?.group ?? null;
    const lane = group === null ? undefined : shared.get(group);
    if (lane) {
      lane.actors.push(actor);
      lane.label = `${group} (${lane.actors.length})`;
      continue;
    }
    const own = { label: name, actors: [actor], group };
    if (group !== null) shared.set(group, own);
    lanes.push(own);
  }
  return lanes;
}

/**
 * @param {LocalTrace} trace
 * @param {Filter} filter
 * @param {number[]} lane
 */
function shownOf(trace, filter, lane) {
  const { actor, type, texts } = trace.columns, query = queryOf(filter.text, trace.actors);
  const hides = isEmpty(query) || query.error ? () => false : trace.finder(query.patterns[0]);
  const types = Uint8Array.from(texts, (text) => Number(filter.types.has(text))), untyped = filter.types.has("");
  const shown = new Uint8Array(trace.n), alone = filter.local ? trace.alone : null;
  for (let i = 0; i < trace.n; i++) {
    const typed = type[i] < 0 ? untyped : types[type[i]] === 1;
    // Where the violation is seen is never hidden by its type or text.
    shown[i] = Number(lane[actor[i]] >= 0 && ((!typed && !(alone && alone[i]) && !hides(i)) || trace.violations.includes(i)));
  }
  return shown;
}

/**
 * By shown event: the shown events of other actors before it, where only hidden events lead from them to it, and nothing that is shown tells
 * their order already. Null where that would need too much memory.
 *
 * @param {LocalTrace} trace
 * @param {Uint8Array} shown
 * @returns {Map<number, number[]> | null}
 */
export function hiddenOrder(trace, shown) {
  const { columns: { actor, place }, chain, edges, n } = trace, width = trace.actors.length;
  const through = /** @type {Map<number, number[]>} */ (new Map());
  if (n * width > MOST) return null;
  // By event and actor: the latest shown event of the actor at or before the event, in the order of happens-before, from 1.
  const known = /** @type {Int32Array[]} */ (new Array(n));
  // By hidden event: shown events in no log's order that lead to it through hidden events alone.
  const loose = /** @type {Map<number, number[]>} */ (new Map());
  const nothing = new Int32Array(width);
  for (let e = 0; e < n; e++) {
    const before = /** @type {number[]} */ ([]);
    if (place[e] > 0) before.push(chain[actor[e]][place[e] - 1]);
    edges.each(e, false, (cause) => { before.push(cause); });
    let own = before.length ? known[before[0]] : nothing;
    if (before.length > 1 || shown[e]) {
      own = own.slice();
      for (const cause of before) {
        const other = known[cause];
        for (let a = 0; a < width; a++) if (other[a] > own[a]) own[a] = other[a];
      }
    }
    const hidden = before.filter((cause) => !shown[cause]);
    const free = [...new Set(hidden.flatMap((cause) => loose.get(cause) ?? []))];
    if (!shown[e]) {
      known[e] = own;
      const all = [...new Set([...free, ...before.filter((cause) => shown[cause] && place[cause] < 0)])].slice(0, 16);
      if (all.length) loose.set(e, all);
      continue;
    }
    if (hidden.length) {
      const direct = before.filter((cause) => shown[cause]);
      const last = place[e] < 0 ? 0 : own[actor[e]];
      if (last > 0) direct.push(last - 1);
      const told = (/** @type {number} */ a, /** @type {number} */ event) => direct.some((cause) => cause === event || known[cause][a] > event);
      const some = [...free.filter((cause) => !direct.includes(cause))];
      for (let a = 0; a < width; a++) {
        const event = own[a] - 1;
        if (event < 0 || (a === actor[e] && place[e] >= 0) || told(a, event)) continue;
        some.push(event);
      }
      const least = some.filter((event) => !some.some((other) => other !== event && place[event] >= 0 && known[other][actor[event]] > event));
      if (least.length) through.set(e, least);
    }
    if (place[e] >= 0) own[actor[e]] = e + 1;
    known[e] = own;
  }
  return through;
}
