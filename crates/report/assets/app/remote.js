// An execution on a server: events come in blocks as they are looked at.

import { Reach, Stretches } from "./causality.js";
import { groupOf } from "./counts.js";
import { Edges } from "./edges.js";
import { SPANS, nameOf } from "./pattern.js";
import { Trace, WITHIN, eventOf, placeOf } from "./trace.js";

/** @import { Query } from "./pattern.js" */
/** @import { Edge, Event, Found, PageData, TraceData, Variable } from "./types.js" */

const BLOCK = 1024;
const KEPT_BLOCKS = 64;

/**
 * @param {object} question as `Ask` in `src/serve/answer.rs`
 * @returns {Promise<any>}
 */
async function ask(question) {
  const answer = await fetch("/ask", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question) });
  if (!answer.ok) throw new Error(`the server answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/** @typedef {{ events: Event[], edges: Edges, passing: Edge[], before: number, steps: (number | null)[] }} Block its events, their edges, the edges that pass over all of it, how many steps are before it, and by event its number among the steps */

export class RemoteTrace extends Trace {
  /**
   * @param {PageData} page
   * @param {TraceData} data
   */
  constructor(page, data) {
    super(page, data);
    /** @type {Map<number, Block | Promise<void>>} */
    this.blocks = new Map();
    /** How many steps there are. */
    this.count = data.steps;
    /** @type {Map<string, number>} */
    this.seen = new Map();
    /** @type {(() => void) | null} called when there is a new type */
    this.onTypes = null;
  }

  /** @param {number} b */
  block(b) {
    const block = this.blocks.get(b);
    return block === undefined || block instanceof Promise ? null : block;
  }

  /**
   * @param {number} i
   * @returns {Event | null}
   */
  get(i) { return this.block(Math.floor(i / BLOCK))?.events[i % BLOCK] ?? null; }

  /**
   * Loads what is missing of a range; null where nothing is.
   *
   * @param {number} from
   * @param {number} to
   * @returns {Promise<unknown> | null}
   */
  load(from, to) {
    const waiting = [];
    for (let b = Math.floor(Math.max(0, from) / BLOCK); b <= Math.floor(Math.min(this.n - 1, to) / BLOCK); b++) {
      const block = this.blocks.get(b);
      if (!block) waiting.push(this.fetch(b));
      else if (block instanceof Promise) waiting.push(block);
    }
    return waiting.length ? Promise.all(waiting) : null;
  }

  /** @param {number} b */
  fetch(b) {
    const base = b * BLOCK;
    const coming = ask({ ask: "events", from: base, to: Math.min(this.n, base + BLOCK) }).then((answer) => {
      const edges = new Edges(this.page.joints, answer.columns);
      let step = answer.steps;
      const events = /** @type {Event[]} */ (answer.columns.actor.map((/** @type {number} */ _, /** @type {number} */ k) => eventOf(this.page, this.actors, answer.columns, edges, base, base + k)));
      const steps = events.map(({ kind }) => (WITHIN.has(kind) ? null : ++step));
      this.blocks.set(b, { events, edges, passing: answer.crossing, before: answer.steps, steps });
      while (this.blocks.size > KEPT_BLOCKS) this.drop();
      this.note(events);
    }, (error) => { this.blocks.delete(b); throw error; });
    this.blocks.set(b, coming);
    return coming;
  }

  drop() {
    const [oldest] = this.blocks.keys();
    this.blocks.delete(oldest);
  }

  /** @param {Event[]} events */
  note(events) {
    const before = this.seen.size;
    for (const event of events) if (event.type) this.seen.set(event.type, (this.seen.get(event.type) || 0) + 1);
    if (this.seen.size > before && this.onTypes) this.onTypes();
  }

  types() { return [...this.seen].sort((a, b) => b[1] - a[1]).map(([type]) => type); }

  /** @param {number} i */
  actorOf(i) { return this.get(i)?.actor ?? null; }

  /**
   * @param {number} _i
   * @returns {string[]}
   */
  notes(_i) { return []; }

  /** @param {number} i */
  position(i) {
    const block = this.block(Math.floor(i / BLOCK)), steps = (block?.steps ?? []).slice(0, (i % BLOCK) + 1).filter((step) => step !== null);
    return placeOf(steps[steps.length - 1] ?? block?.before ?? 0, this.count);
  }

  /**
   * @param {number} i
   * @returns {string | null}
   */
  idOf(i) { return this.get(i)?.id ?? null; }

  /**
   * @param {number} i
   * @returns {number | null}
   */
  stepOf(i) { return this.block(Math.floor(i / BLOCK))?.steps[i % BLOCK] ?? null; }

  /**
   * Edges that pass over a window: they have an end in one of its blocks, or pass over these too.
   *
   * @param {number} from
   * @param {number} to
   */
  crossing(from, to) {
    const found = /** @type {Map<string, Edge>} */ (new Map());
    for (let b = Math.floor(from / BLOCK); b <= Math.floor(Math.max(from, to - 1) / BLOCK); b++) {
      const block = this.block(b);
      if (!block) continue;
      block.edges.over(from, to, found);
      for (const edge of block.passing) if (edge[0] < from && edge[2] >= to) found.set(`${edge[0]} ${edge[2]}`, edge);
    }
    return [...found.values()].slice(0, 300);
  }

  /**
   * @param {number} i
   * @param {boolean} forward
   * @returns {Promise<number | null>}
   */
  async nextStep(i, forward) {
    if (i < 0 && forward) {
      // The server counts from an event; before the first there is none.
      await this.load(0, 0);
      const first = this.get(0);
      if (first && !WITHIN.has(first.kind)) return 0;
    }
    return (await ask({ ask: "step", from: Math.max(0, i), forward })).event;
  }

  /**
   * @param {number | null} from
   * @param {number} to
   * @returns {Promise<number[]>}
   */
  async longest(from, to) { return (await ask({ ask: "chain", from, to })).chain; }

  /**
   * @param {number} i
   * @param {boolean} forward
   * @returns {Promise<number | null>}
   */
  async nextOfActor(i, forward) { return (await ask({ ask: "actor", of: i, forward })).event; }

  /**
   * @param {string} name
   * @returns {Promise<number | null>}
   */
  async named(name) { return (await ask({ ask: "named", name })).event; }

  /**
   * @param {Int32Array | null} [_events]
   * @returns {Promise<number[][]>}
   */
  async overview(_events) { return (await ask({ ask: "overview" })).counts; }

  /**
   * @param {Query} query
   * @param {number} after
   * @returns {Promise<Found>}
   */
  async search({ patterns, apart }, after) {
    if (patterns.flat().some((term) => term.tests.some(({ key, compare }) => compare && (key === "time" || SPANS.includes(key ?? ""))))) throw new Error("times are compared on a page in one file; a served page has not all events");
    if (apart) throw new Error("concurrent events are found on a page in one file; a served page has not all events");
    const { events, total, matches } = await ask({ ask: "search", patterns, after: after < 0 ? null : after });
    if (patterns.length < 2) return { events, total };
    const by = new Map(matches.map((/** @type {number[]} */ match) => [match[match.length - 1], match]));
    return { events, total, taking: [...new Set(matches.flat())].sort((a, b) => a - b), match: (event) => by.get(event) ?? [event] };
  }

  /**
   * All events, counted by one of `SERVED`.
   *
   * @param {string} by
   * @returns {Promise<import("./counts.js").Group[]>}
   */
  async groups(by) { return (await ask({ ask: "counts", by })).groups.map((/** @type {any} */ told) => groupOf(this.actors, told)); }

  /**
   * @param {number} actor
   * @param {string} variable
   * @returns {Promise<number[]>}
   */
  async changesOf(actor, variable) {
    const test = (/** @type {string} */ key, /** @type {string[]} */ path, /** @type {string} */ text, regex = false) => ({ key, path, text, regex, flags: "" });
    const tests = [test("actor", [], nameOf(this.actors[actor]), true), test("state", [variable], "")];
    return (await ask({ ask: "search", patterns: [[{ not: false, tests }]], after: null })).events;
  }

  /**
   * @param {number} i
   * @returns {Promise<Variable[]>}
   */
  async state(i) {
    const { state } = await ask({ ask: "state", at: i });
    return state.map((/** @type {[number, string, string | null, number, string | null]} */ [actor, variable, value, at, before]) => ({ actor, variable, value, at, before }));
  }

  /**
   * @param {number} i
   * @param {boolean} forward
   */
  async reach(i, forward) {
    const answer = await ask({ ask: forward ? "future" : "past", of: i });
    return new Reach(forward, answer.bounds, new Stretches(answer.loose), answer.size);
  }
}
