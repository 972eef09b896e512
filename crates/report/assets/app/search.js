// Search: all events that hold the words are listed, one after the other is shown, and they stand out in the diagram.

import { firstOf } from "./causality.js";
import { $, el, put } from "./dom.js";
import { EventList } from "./list.js";
import { number, plural } from "./text.js";
import { wordsOf } from "./words.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { Rows } from "./list.js" */
/** @import { Found, Go } from "./types.js" */

/** What a search finds, loaded as far as it was looked at. */
export class Hits {
  /** @param {{ search: (words: string[], after: number) => Promise<Found> }} trace
   *  @param {string[]} words
   */
  constructor(trace, words) {
    this.trace = trace;
    this.words = words;
    /** @type {number[]} those that are known, in order */
    this.events = [];
    this.total = 0;
  }

  /** Asks for the first of them, or for those behind the last that is known. */
  async more() {
    const found = await this.trace.search(this.words, this.events[this.events.length - 1] ?? -1);
    this.total = this.events.length + found.total;
    for (const event of found.events) this.events.push(event);
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
    this.hits = new Hits({ search: async () => ({ events: [], total: 0 }) }, []);
    this.at = -1;
    this.turn = 0;
    this.timer = 0;
    this.input = /** @type {HTMLInputElement} */ ($("search"));
    this.list = new EventList("Events that were found", (_, i) => this.choose(this.hits.find(i)), fail);
    this.count = el("output", { role: "status" });
    this.back = el("button", { type: "button", title: "Hit before (Shift Enter)", "aria-label": "Hit before", onclick: () => this.step(-1) }, "↑");
    this.forth = el("button", { type: "button", title: "Next hit (Enter)", "aria-label": "Next hit", onclick: () => this.step(1) }, "↓");
    put($("results"), el("header", {}, el("h2", {}, "Found"), this.count, this.back, this.forth), this.list.box, this.list.status);
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

  async run() {
    const diagram = this.current(), words = wordsOf(this.input.value), turn = ++this.turn;
    const hits = new Hits(diagram.trace, words);
    try {
      if (words.length) await hits.more();
    } catch (error) {
      this.fail(error);
      return;
    }
    if (turn !== this.turn) return;
    if (this.diagram && this.diagram !== diagram) this.mark(this.diagram, new Set());
    [this.diagram, this.hits, this.at] = [diagram, hits, -1];
    $("results").hidden = !words.length;
    this.mark(diagram, new Set(hits.events));
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
  }

  /** Says which of how many is shown. */
  report() {
    const { total } = this.hits;
    this.count.textContent = !total ? "nothing" : this.at < 0 ? plural(total, "event") : `${number(this.at + 1)} of ${number(total)}`;
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
      this.mark(this.diagram, new Set(hits.events));
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
    this.go(this.diagram, i);
  }
}
