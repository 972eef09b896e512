// Search: all events that hold the words are listed, one after the other is shown, and they stand out in the diagram.

import { firstOf } from "./causality.js";
import { $, el, put } from "./dom.js";
import { EventList } from "./list.js";
import { isEmpty, queryOf } from "./pattern.js";
import { number, plural } from "./text.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { Rows } from "./list.js" */
/** @import { Query } from "./pattern.js" */
/** @import { Event, Found, Go } from "./types.js" */

/** What a search finds, loaded as far as it was looked at. */
export class Hits {
  /** @param {{ search: (query: Query, after: number) => Promise<Found> }} trace
   *  @param {Query} query
   */
  constructor(trace, query) {
    this.trace = trace;
    this.query = query;
    /** @type {number[]} those that are known, in order */
    this.events = [];
    this.total = 0;
    /** @type {Set<number>} what stands out: the hits, and all events that are in some match */
    this.taking = new Set();
    /** @type {((event: number) => number[]) | null} the match that ends with an event */
    this.match = null;
  }

  /** Asks for the first of them, or for those behind the last that is known. */
  async more() {
    const found = await this.trace.search(this.query, this.events[this.events.length - 1] ?? -1);
    this.total = this.events.length + found.total;
    for (const event of found.events) this.events.push(event);
    for (const event of found.taking ?? found.events) this.taking.add(event);
    const { match } = found, before = this.match;
    if (match) this.match = (event) => (before !== null && !found.events.includes(event) ? before(event) : match(event));
    if (!found.events.length) this.total = this.events.length;
  }

  /**
   * The event of a hit, or null where there is none.
   *
   * @param {number} k from 0
   */
  async get(k) {
    while (k >= this.events.length && this.events.length < this.total) await this.more();
    return this.events[k] ?? null;
  }

  /**
   * The known hit that is an event; -1 where there is none.
   *
   * @param {number} i
   */
  find(i) {
    const k = firstOf(this.events.length, (at) => this.events[at] >= i);
    return this.events[k] === i ? k : -1;
  }
}

export class Search {
  /**
   * @param {() => Diagram} current
   * @param {Go} go
   * @param {(error: unknown) => void} fail
   */
  constructor(current, go, fail) {
    this.current = current;
    this.go = go;
    this.fail = fail;
    /** The diagram that was searched. */
    this.diagram = /** @type {Diagram | null} */ (null);
    this.hits = new Hits({ search: async () => ({ events: [], total: 0 }) }, queryOf("", []));
    this.at = -1;
    /** What was looked for last. */
    this.asked = "";
    this.turn = 0;
    this.timer = 0;
    /** Called when other events are found. */
    this.changed = () => {};
    this.input = /** @type {HTMLInputElement} */ ($("search"));
    this.list = new EventList("Events that were found", (_, i) => this.choose(this.hits.find(i)), fail);
    this.titled = el("h2", {}, "Found");
    this.count = el("output", { role: "status" });
    this.back = el("button", { type: "button", title: "Hit before (Shift Enter)", "aria-label": "Hit before", onclick: () => this.step(-1) }, "↑");
    this.forth = el("button", { type: "button", title: "Next hit (Enter)", "aria-label": "Next hit", onclick: () => this.step(1) }, "↓");
    put($("results"), el("header", {}, this.titled, this.count, this.back, this.forth), this.list.box, this.list.status);
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 120);
    });
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { e.preventDefault(); this.step(e.shiftKey ? -1 : 1); }
      if (e.key === "ArrowDown" && !$("results").hidden) { e.preventDefault(); this.list.focus(); }
      if (e.key === "Escape") { this.input.value = ""; this.run(); this.current().box.focus(); }
    });
  }

  /**
   * Searches for something as if it was typed.
   *
   * @param {string} text
   */
  look(text) {
    this.input.value = text;
    return this.run();
  }

  async run() {
    this.list.detail = () => "";
    const text = this.input.value, diagram = this.current(), query = queryOf(text, diagram.trace.actors), turn = ++this.turn;
    const hits = new Hits(diagram.trace, query);
    try {
      if (!isEmpty(query) && !query.error) await hits.more();
    } catch (error) {
      if (!query.apart && !query.patterns.flat().some((term) => term.tests.some((test) => test.regex || test.compare))) {
        this.fail(error);
        return;
      }
      // A server's regular expressions are not quite those of a browser.
      query.error = error instanceof Error ? error.message : String(error);
    }
    if (turn !== this.turn) return;
    if (this.diagram && this.diagram !== diagram) this.mark(this.diagram, new Set());
    [this.diagram, this.hits, this.at] = [diagram, hits, -1];
    $("results").hidden = isEmpty(query) && !query.error;
    this.titled.textContent = "Found";
    this.asked = text;
    this.input.setAttribute("aria-invalid", String(query.error !== null));
    this.mark(diagram, hits.taking);
    this.list.show(diagram, this.rows());
    this.report();
  }

  /** @returns {Rows} those of the hits that are known */
  rows() { return { count: this.hits.events.length, at: (k) => this.hits.events[k] ?? null, find: (i) => this.hits.find(i) }; }

  /**
   * @param {Diagram} diagram
   * @param {Set<number>} found
   */
  mark(diagram, found) {
    diagram.found = found;
    diagram.draw();
    this.changed();
  }

  /** Says which of how many is shown. */
  report() {
    const { total } = this.hits;
    const { error } = this.hits.query;
    this.count.textContent = error ?? (!total ? "nothing" : this.at < 0 ? plural(total, "event") : `${number(this.at + 1)} of ${number(total)}`);
    this.back.disabled = this.forth.disabled = !total;
  }

  /**
   * Shows the next hit, or the one before; behind the last comes the first.
   *
   * @param {number} by
   */
  async step(by) {
    const { hits } = this;
    if (!hits.total) return;
    const k = this.at < 0 && by < 0 ? hits.total - 1 : (this.at + by + hits.total) % hits.total;
    const known = hits.events.length;
    try {
      await hits.get(k);
    } catch (error) {
      this.fail(error);
      return;
    }
    if (hits !== this.hits || !this.diagram) return;
    if (hits.events.length > known) {
      this.mark(this.diagram, hits.taking);
      this.list.show(this.diagram, this.rows());
    }
    this.choose(Math.min(k, hits.events.length - 1));
  }

  /** @param {number} k */
  choose(k) {
    const i = this.hits.events[k];
    if (i === undefined || !this.diagram) return;
    this.at = k;
    this.list.activate(k, false);
    this.report();
    if (this.hits.match) this.diagram.follow(this.hits.match(i), this.hits.query.apart);
    this.go(this.diagram, i);
  }

  /**
   * Lists events that were not searched for.
   *
   * @param {Diagram} diagram
   * @param {string} title
   * @param {number[]} events in order
   * @param {(event: Event) => string} [detail] what else a row tells
   */
  listed(diagram, title, events, detail = () => "") {
    this.list.detail = detail;
    this.turn++;
    this.input.value = "";
    if (this.diagram && this.diagram !== diagram) this.mark(this.diagram, new Set());
    this.diagram = diagram;
    this.hits = new Hits({ search: async () => ({ events: [], total: 0 }) }, queryOf("", []));
    this.hits.events = events;
    this.hits.total = events.length;
    this.at = -1;
    $("results").hidden = false;
    this.titled.textContent = title;
    this.mark(diagram, new Set(events));
    this.list.show(diagram, this.rows());
    this.report();
  }
}
