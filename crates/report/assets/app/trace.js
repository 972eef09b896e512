// An execution that is in the page. Events are known by their position in the order, from 0.

import { apartOf } from "./apart.js";
import { firstOf, longestOf, reachOf } from "./causality.js";
import { timesOf } from "./counts.js";
import { Edges } from "./edges.js";
import { chainsOf, finder } from "./pattern.js";
import { natural, number, plural } from "./text.js";

/** @import { Query, Term } from "./pattern.js" */
/** @import { AnyTrace, ChangeData, ColumnData, Edge, Event, Found, PageData, TraceData, Variable } from "./types.js" */

const KEPT = 1, EXTERNAL = 2, LOOSE = 4, AFFECTED = 8;

/** Kinds at which a walk through the schedule does not stop: what a step does, and what is only noted. */
export const WITHIN = new Set(["send", "timer_set", "timer_cancel", "state", "block_begin", "block_end"]);

/**
 * The name of an event. The first incarnation is named where the actor's name could be read as that of an actor and an incarnation.
 *
 * @param {string} actor
 * @param {number} incarnation
 * @param {string} seq
 */
export function nameOf(actor, incarnation, seq) {
  return `${actor}/${incarnation || /\/[0-9]+$/.test(actor) ? `${incarnation}/` : ""}${seq}`;
}

/**
 * Where an event stands among the steps.
 *
 * @param {number} at how many steps are at or before it
 * @param {number} all
 */
export const placeOf = (at, all) => (at ? `step ${number(at)} of ${number(all)}` : `before the first of ${plural(all, "step")}`);

/**
 * One event, out of columns that begin at event `base`. Sequence numbers and places in files are texts: JavaScript would round large ones.
 *
 * @param {Pick<PageData, "kinds" | "joints">} page
 * @param {string[]} actors
 * @param {ColumnData} columns
 * @param {Edges} edges
 * @param {number} base
 * @param {number} i
 * @returns {Event}
 */
export function eventOf(page, actors, columns, edges, base, i) {
  const k = i - base;
  const text = (/** @type {number} */ n) => (n < 0 ? null : columns.texts[n]);
  const actor = columns.actor[k], incarnation = columns.incarnation[k], flags = columns.flags[k];
  return {
    i, actor, seq: columns.seq[k], incarnation,
    id: nameOf(actors[actor], incarnation, columns.seq[k]),
    kind: page.kinds[columns.kind[k]], joint: page.joints[columns.joint[k]],
    type: text(columns.type[k]), payload: text(columns.payload[k]), fields: text(columns.fields[k]), msg_id: text(columns.msg_id[k]), from: text(columns.from[k]), to: text(columns.to[k]),
    time: text(columns.time[k]), source: text(columns.source[k]), offset: columns.offset[k],
    kept: (flags & KEPT) !== 0, external: (flags & EXTERNAL) !== 0, loose: (flags & LOOSE) !== 0,
    affected: (flags & AFFECTED) !== 0, place: columns.place[k],
    causes: edges.ends(i, false), effects: edges.ends(i, true),
  };
}

/** What is known of an execution wherever its events are. */
export class Trace {
  /**
   * @param {PageData} page
   * @param {TraceData} data
   */
  constructor(page, data) {
    this.page = page;
    this.name = data.name;
    this.actors = data.actors;
    this.n = data.events;
    this.violations = data.violations;
    this.deviations = data.deviations;
    this.statesFrom = data.states_from;
    this.align = data.align;
    /** @type {(i: number) => boolean} whether the execution beside it has no event like this */
    this.only = () => false;
    /** Actors from left to right. */
    this.order = data.actors.map((_, i) => i).sort((a, b) => this.rank(a) - this.rank(b) || natural(data.actors[a], data.actors[b]));
    /** @type {number[]} by actor its place from the left */
    this.lane = [];
    this.order.forEach((actor, lane) => { this.lane[actor] = lane; });
  }

  /**
   * The environment stands left of the actors, the monitor right of them.
   *
   * @param {number} actor
   */
  rank(actor) {
    const name = this.actors[actor];
    return name === "_environment" ? 0 : name === "_monitor" ? 2 : 1;
  }
}

export class LocalTrace extends Trace {
  /**
   * @param {PageData} page
   * @param {TraceData} data
   */
  constructor(page, data) {
    super(page, data);
    const c = data.columns;
    this.columns = { ...c, actor: Int32Array.from(c.actor), place: Int32Array.from(c.place), payload: Int32Array.from(c.payload), type: Int32Array.from(c.type) };
    this.edges = new Edges(page.joints, c, this.n);
    /** @type {Map<number, Event>} */
    this.cache = new Map();
    const within = new Set(page.kinds.map((k, i) => (WITHIN.has(k) ? i : -1)));
    /** @type {number[]} */
    this.steps = [];
    /** @type {number[][]} by actor its events, in the order of its log */
    this.chain = this.actors.map(() => []);
    for (let i = 0; i < this.n; i++) {
      if (!within.has(c.kind[i])) this.steps.push(i);
      if (c.place[i] >= 0) this.chain[c.actor[i]][c.place[i]] = i;
    }
    /** @type {Uint8Array | null} */
    this.apart = null;
    /** @type {ReturnType<typeof timesOf> | null} */
    this.clock = null;
    this.changes = data.changes;
    this.spans = spansOf(data.changes);
    /** @type {Map<number, string[]>} */
    this.noted = new Map();
    for (const [event, text] of data.notes) {
      const notes = this.noted.get(event);
      if (notes) notes.push(text); else this.noted.set(event, [text]);
    }
    /** For arrows that pass over the window: the latest effect of each block of events. */
    this.latest = new Int32Array((this.n >> 8) + 1).fill(-1);
    this.edges.cause.forEach((cause, k) => {
      this.latest[cause >> 8] = Math.max(this.latest[cause >> 8], this.edges.effect[k]);
    });
  }

  /**
   * @param {number} i
   * @returns {Event | null}
   */
  get(i) {
    if (i < 0 || i >= this.n) return null;
    let event = this.cache.get(i);
    if (!event) {
      if (this.cache.size > 20000) this.cache.clear();
      event = eventOf(this.page, this.actors, this.columns, this.edges, 0, i);
      this.cache.set(i, event);
    }
    return event;
  }

  /**
   * @param {number} _from
   * @param {number} _to
   * @returns {Promise<unknown> | null}
   */
  load(_from, _to) { return null; }

  /**
   * The actor of an event; null where it is not known yet.
   *
   * @param {number} i
   * @returns {number | null}
   */
  actorOf(i) { return this.columns.actor[i] ?? null; }

  /**
   * The name of an event; null where it is not known yet.
   *
   * @param {number} i
   * @returns {string | null}
   */
  idOf(i) {
    const { actor, incarnation, seq } = this.columns;
    return i < 0 || i >= this.n ? null : nameOf(this.actors[actor[i]], incarnation[i], seq[i]);
  }

  /**
   * The number of an event among the steps, from 1; null where it is none, or is not known yet.
   *
   * @param {number} i
   * @returns {number | null}
   */
  stepOf(i) {
    const at = this.stepIndex(i);
    return this.steps[at] === i ? at + 1 : null;
  }

  /** @param {number} i */
  notes(i) { return this.noted.get(i) || []; }

  /**
   * The position in `steps` of the last step at or before `i`; -1 where there is none.
   *
   * @param {number} i
   */
  stepIndex(i) { return firstOf(this.steps.length, (k) => this.steps[k] > i) - 1; }

  /**
   * The next step after an event, or the one before it; null where there is none.
   *
   * @param {number} i
   * @param {boolean} forward
   * @returns {Promise<number | null>}
   */
  async nextStep(i, forward) {
    const at = this.stepIndex(i);
    const next = forward ? at + 1 : this.steps[at] === i ? at - 1 : at;
    return this.steps[next] ?? null;
  }

  /** @param {number} i */
  position(i) {
    return placeOf(this.stepIndex(i) + 1, this.steps.length);
  }

  /**
   * All variables of all actors after an event.
   *
   * @param {number} i
   * @returns {Variable[]}
   */
  state(i) {
    const rows = /** @type {Variable[]} */ ([]);
    for (const { actor, variable, events, values } of this.spans) {
      const known = firstOf(events.length, (k) => events[k] > i);
      if (known > 0) rows.push({ actor, variable, value: values[known - 1], at: events[known - 1], before: known > 1 ? values[known - 2] : null });
    }
    return rows;
  }

  /**
   * What happens before an event, or after it.
   *
   * @param {number} i
   * @param {boolean} forward
   */
  reach(i, forward) { return reachOf(this, i, forward); }

  /**
   * The longest chain of events to one, from another or from a beginning.
   *
   * @param {number | null} from
   * @param {number} to
   * @returns {Promise<number[]>}
   */
  async longest(from, to) { return longestOf(this, from, to); }

  /**
   * The next event of the same actor, or the one before it; null where there is none.
   *
   * @param {number} i
   * @param {boolean} forward
   * @returns {Promise<number | null>}
   */
  async nextOfActor(i, forward) {
    const { actor } = this.columns, by = forward ? 1 : -1;
    for (let other = i + by; other >= 0 && other < this.n; other += by) if (actor[other] === actor[i]) return other;
    return null;
  }

  /**
   * The events at which a variable of an actor changes.
   *
   * @param {number} actor
   * @param {string} variable
   * @returns {Promise<number[]>}
   */
  async changesOf(actor, variable) { return this.spans.find((span) => span.actor === actor && span.variable === variable)?.events ?? []; }

  /** By event 1 where it is neither an end of a message nor in an order with an event of another actor. */
  get alone() {
    if (this.apart) return this.apart;
    const { kind } = this.columns, between = this.page.kinds.map((name) => name === "send" || name === "receive"), { cause, cause_actor, effect, effect_actor } = this.edges;
    const apart = Uint8Array.from(kind, (one) => (between[one] ? 0 : 1));
    for (let k = 0; k < cause.length; k++) if (cause_actor[k] !== effect_actor[k]) apart[cause[k]] = apart[effect[k]] = 0;
    this.apart = apart;
    return apart;
  }

  /** By event its time in nanoseconds since the first that has one. */
  get times() { return (this.clock = this.clock ?? timesOf(this)); }

  /**
   * How long it is from the send of a message to an event (`took`), or from the event before it of its actor (`gap`); NaN where that is
   * not known.
   *
   * @param {string} key
   * @param {number} i
   */
  span(key, i) {
    const { at } = this.times, { actor, place } = this.columns;
    if (key === "gap") return place[i] > 0 ? at[i] - at[this.chain[actor[i]][place[i] - 1]] : NaN;
    let longest = NaN;
    this.edges.each(i, false, (cause, edge) => {
      const wait = at[i] - at[cause];
      if (actor[cause] !== actor[i] && this.edges.isMessage(edge) && !(wait <= longest)) longest = wait;
    });
    return longest;
  }

  /**
   * What patterns of events are looked for in.
   *
   * @param {Term[]} terms
   */
  finder(terms) {
    const { flags } = this.columns;
    const idOf = (/** @type {number} */ k) => this.idOf(k) ?? "";
    const violations = new Set(this.violations);
    /** @type {Record<string, (k: number) => boolean>} */
    const marks = {
      violation: (k) => violations.has(k), kept: (k) => (flags[k] & KEPT) !== 0, pruned: (k) => (flags[k] & KEPT) === 0,
      outside: (k) => (flags[k] & EXTERNAL) !== 0, affected: (k) => (flags[k] & AFFECTED) !== 0, only: (k) => this.only(k),
      local: (k) => this.alone[k] === 1,
    };
    return finder(terms, { columns: this.columns, actors: this.actors, kinds: this.page.kinds, changes: this.changes, idOf, span: (key, k) => this.span(key, k), marked: (mark, k) => marks[mark](k) });
  }

  /**
   * Events after `after` that a query finds. Of several events with an order between them the last is found.
   *
   * @param {Query} query
   * @param {number} after
   * @returns {Promise<Found>}
   */
  async search({ patterns, apart }, after) {
    const finders = patterns.map((terms) => this.finder(terms));
    if (apart) {
      const pairs = apartOf(this, [finders[0], finders[1]]), events = [...pairs.keys()].filter((i) => i > after);
      return { events, total: events.length, match: (event) => [event, pairs.get(event) ?? event].sort((a, b) => a - b) };
    }
    if (finders.length > 1) {
      const chains = chainsOf(this, finders), events = chains.events.filter((i) => i > after);
      return { events, total: events.length, taking: chains.taking, match: chains.before };
    }
    const [holds] = finders, events = [];
    for (let i = after + 1; i < this.n; i++) if (holds(i)) events.push(i);
    return { events, total: events.length };
  }

  /**
   * Edges that pass over a window without an end in it.
   *
   * @param {number} from
   * @param {number} to
   */
  crossing(from, to) {
    const { actor } = this.columns, found = /** @type {Edge[]} */ ([]);
    for (let block = Math.min(from >> 8, this.latest.length - 1); block >= 0 && found.length < 300; block--) {
      if (this.latest[block] < to) continue;
      for (let i = Math.min(from, (block + 1) << 8) - 1; i >= block << 8; i--) {
        this.edges.each(i, true, (effect) => { if (effect >= to) found.push([i, actor[i], effect, actor[effect]]); });
      }
    }
    return found;
  }

  /**
   * The event of that name; null where there is none.
   *
   * @param {string} name
   * @returns {Promise<number | null>}
   */
  async named(name) {
    const { seq } = this.columns;
    for (let i = 0; i < this.n; i++) if (name.endsWith(seq[i]) && this.idOf(i) === name) return i;
    return null;
  }

  /**
   * By part of the order, how many events each actor has there.
   *
   * @param {Int32Array | null} [events] those that count; all where there are none
   */
  async overview(events) {
    const n = events ? events.length : this.n, rows = Math.min(600, Math.max(1, n));
    const counts = Array.from({ length: rows }, () => /** @type {number[]} */ (new Array(this.actors.length).fill(0)));
    for (let k = 0; k < n; k++) counts[Math.floor((k * rows) / n)][this.columns.actor[events ? events[k] : k]]++;
    return counts;
  }

  /** Types by how often they occur. */
  types() {
    const counts = /** @type {Map<number, number>} */ (new Map());
    for (let i = 0; i < this.n; i++) {
      const type = this.columns.type[i];
      if (type >= 0) counts.set(type, (counts.get(type) || 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]).map(([type]) => this.columns.texts[type]);
  }
}

/**
 * By actor and variable: the events of its changes, and the values.
 *
 * @param {ChangeData} changes
 */
function spansOf(changes) {
  const spans = /** @type {Map<string, { actor: number, variable: string, events: number[], values: (string | null)[] }>} */ (new Map());
  for (let k = 0; k < changes.event.length; k++) {
    const actor = changes.actor[k], variable = changes.texts[changes.variable[k]];
    const key = `${actor}\u0000${variable}`;
    let span = spans.get(key);
    if (!span) spans.set(key, (span = { actor, variable, events: [], values: [] }));
    span.events.push(changes.event[k]);
    span.values.push(changes.value[k] < 0 ? null : changes.texts[changes.value[k]]);
  }
  return [...spans.values()];
}

/**
 * Whether all events of a trace are in the page.
 *
 * @param {AnyTrace} trace
 * @returns {trace is LocalTrace}
 */
export const isLocal = (trace) => trace instanceof LocalTrace;
