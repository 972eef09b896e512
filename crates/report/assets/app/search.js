// Search: what is found is listed, and stands out in the diagram.

import { titleOf } from "./diagram.js";
import { $, el, put } from "./dom.js";
import { number, plural } from "./text.js";
import { wordsOf } from "./words.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { Found, Go } from "./types.js" */

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
    this.events = /** @type {number[]} */ ([]);
    this.at = -1;
    this.turn = 0;
    this.timer = 0;
    this.input = /** @type {HTMLInputElement} */ ($("search"));
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 120);
    });
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { e.preventDefault(); this.step(e.shiftKey ? -1 : 1); }
      if (e.key === "Escape") { this.input.value = ""; this.run(); this.current().box.focus(); }
    });
  }

  async run() {
    const diagram = this.current(), words = wordsOf(this.input.value), turn = ++this.turn;
    let found = /** @type {Found} */ ({ events: [], more: false });
    try {
      if (words.length) found = await diagram.trace.search(words, -1);
      const loading = found.events.length ? diagram.trace.load(found.events[0], found.events[0]) : null;
      if (loading) await loading;
    } catch (error) {
      this.fail(error);
      return;
    }
    if (turn !== this.turn) return;
    this.events = found.events;
    this.at = -1;
    diagram.found = new Set(found.events);
    diagram.draw();
    this.list(diagram, words.length > 0, found.more);
  }

  /**
   * @param {Diagram} diagram
   * @param {boolean} asked
   * @param {boolean} more
   */
  list(diagram, asked, more) {
    $("results").hidden = !asked;
    if (!asked) return;
    const item = (/** @type {number} */ i, /** @type {number} */ n) => {
      const event = diagram.trace.get(i);
      return el("li", {}, el("button", { type: "button", "data-n": n, onclick: () => { this.at = n; this.choose(diagram); } },
        event ? `${titleOf(event)} · ${event.id}` : `event ${number(i + 1)}`, event && event.payload ? el("small", {}, event.payload) : null));
    };
    const count = more ? `the first ${plural(this.events.length, "event")}` : plural(this.events.length, "event");
    put($("results"), el("h2", { role: "status" }, this.events.length ? `Found ${count}` : "Nothing found"), el("ul", { class: "list" }, this.events.slice(0, 200).map(item)));
  }

  /** @param {number} by */
  step(by) {
    if (!this.events.length) return;
    this.at = (this.at + by + this.events.length) % this.events.length;
    this.choose(this.current());
  }

  /** @param {Diagram} diagram */
  choose(diagram) {
    for (const button of $("results").querySelectorAll("button")) {
      const here = Number(button.dataset.n) === this.at;
      button.setAttribute("aria-current", String(here));
      if (here) button.scrollIntoView({ block: "nearest" });
    }
    this.go(diagram, this.events[this.at]);
  }
}
