// A list of events for keyboards and screen readers. Only rows in sight are elements, so it may be as long as it likes.

import { sentenceOf } from "./diagram.js";
import { el, put } from "./dom.js";
import { MESSAGES } from "./edges.js";
import { clamp, number } from "./text.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { View } from "./view.js" */
/** @import { AnyTrace, End, Event, Go } from "./types.js" */

const ROW = 22;
/** Browsers have no taller elements; in a longer list the scroll bar stands for shares of it. */
const TALLEST = 8_000_000;

/** @typedef {{ count: number, at: (k: number) => number | null, find: (i: number) => number }} Rows `at` has the event of a row, `find` the row of an event, or -1 */

/**
 * The rows of a list that has all events.
 *
 * @param {number} n
 * @returns {Rows}
 */
export const allRows = (n) => ({ count: n, at: (k) => k, find: (i) => i });

/**
 * The rows of a list that has what a diagram shows.
 *
 * @param {View} view
 * @returns {Rows}
 */
export const shownRows = (view) => (view.events ? { count: view.count, at: (k) => view.at(k) ?? null, find: (i) => (view.shown?.[i] ? view.row(i) : -1) } : allRows(view.count));

/**
 * The number of an event among the steps, where it is one.
 *
 * @param {AnyTrace} trace
 * @param {Event} event
 */
const stepped = (trace, event) => { const step = trace.stepOf(event.i); return step === null ? "" : number(step); };

export class EventList {
  /**
   * @param {string} label
   * @param {Go} go
   * @param {(error: unknown) => void} fail
   */
  constructor(label, go, fail) {
    this.go = go;
    this.fail = fail;
    this.diagram = /** @type {Diagram | null} */ (null);
    /** @type {Rows} */
    this.rows = allRows(0);
    /** The row that Tab comes to. */
    this.active = 0;
    this.top = 0;
    this.waiting = 0;
    /** @type {Map<number, HTMLElement>} by row */
    this.elements = new Map();
    /** @type {(event: Event) => string} what else a row tells */
    this.detail = () => "";
    this.inner = el("div", { role: "presentation" });
    this.box = el("div", { class: "events", role: "listbox", "aria-label": label }, this.inner);
    this.status = el("p", { class: "hidden", role: "status" });
    this.box.addEventListener("scroll", () => {
      if (Math.abs(this.box.scrollTop - this.offset(this.top)) >= 1) this.top = this.topAt(this.box.scrollTop);
      this.draw();
    });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("click", (e) => {
      const row = e.target instanceof Element ? e.target.closest("[role=option]") : null;
      if (row instanceof HTMLElement) this.choose(Number(row.dataset.row));
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /**
   * Shows other rows.
   *
   * @param {Diagram} diagram
   * @param {Rows} rows
   */
  show(diagram, rows) {
    this.diagram = diagram;
    this.rows = rows;
    this.active = 0;
    this.elements.clear();
    put(this.inner);
    this.inner.style.height = `${Math.min(TALLEST, rows.count * ROW)}px`;
    this.scroll(0);
  }

  get page() { return Math.max(1, Math.floor(this.box.clientHeight / ROW)); }
  get last() { return Math.max(0, this.rows.count - this.page); }

  /**
   * Where a row is in the box; the same as its place in the list while that is not too tall.
   *
   * @param {number} top
   */
  offset(top) {
    const whole = this.rows.count * ROW;
    return whole <= TALLEST ? top * ROW : (top / Math.max(1, this.last)) * (TALLEST - this.box.clientHeight);
  }

  /** @param {number} offset */
  topAt(offset) {
    const whole = this.rows.count * ROW;
    return whole <= TALLEST ? offset / ROW : Math.round((offset / Math.max(1, TALLEST - this.box.clientHeight)) * this.last);
  }

  /** @param {number} top */
  scroll(top) {
    this.top = clamp(top, 0, this.last);
    this.box.scrollTop = this.offset(this.top);
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    const { diagram } = this;
    if (!diagram || !this.box.clientHeight) return;
    const from = Math.floor(this.top), to = Math.min(this.rows.count, from + this.page + 2);
    // The row that Tab comes to is always there.
    const wanted = new Set(this.active < this.rows.count ? [this.active] : []);
    for (let k = from; k < to; k++) wanted.add(k);
    for (const [k, row] of this.elements) {
      if (wanted.has(k)) continue;
      row.remove();
      this.elements.delete(k);
    }
    const events = [...wanted].map((k) => this.rows.at(k)).filter((i) => i !== null);
    for (const i of events) diagram.trace.load(i, i)?.then(() => this.draw(), this.fail);
    for (const k of [...wanted].sort((a, b) => a - b)) this.row(diagram, k);
  }

  /**
   * @param {Diagram} diagram
   * @param {number} k
   */
  row(diagram, k) {
    let row = this.elements.get(k);
    const i = this.rows.at(k), event = i === null ? null : diagram.trace.get(i);
    if (!row) {
      row = el("div", { role: "option", "data-row": k, "aria-setsize": this.rows.count, "aria-posinset": k + 1 });
      this.elements.set(k, row);
      const after = [...this.elements.keys()].filter((other) => other > k).sort((a, b) => a - b)[0];
      this.inner.insertBefore(row, this.elements.get(after) ?? null);
    }
    // A row far from those in sight stands at their edge.
    const place = this.offset(this.top) + (clamp(k, this.top - 2, this.top + this.page + 2) - this.top) * ROW;
    row.style.top = `${place}px`;
    row.tabIndex = k === this.active ? 0 : -1;
    row.setAttribute("aria-selected", String(i !== null && i === diagram.selected));
    const state = event ? String(event.i) : "";
    if (row.dataset.shown === state && row.dataset.shown !== "") return;
    row.dataset.shown = state;
    if (event) put(row, this.content(diagram, event)); else put(row, "…");
    row.title = event ? `${event.id} ${sentenceOf(event)}` : "";
    row.setAttribute("aria-label", event ? this.label(diagram, event) : "not loaded yet");
  }

  /**
   * @param {Diagram} diagram
   * @param {Event} event
   */
  content(diagram, event) {
    const { trace } = diagram, actor = trace.actors[event.actor];
    return [el("span", { class: "n" }, stepped(trace, event)), " ", el("b", {}, actor), "/", el("span", { class: "seq" }, event.id.slice(actor.length + 1)), ` ${this.words(event)}`, trace.violations.includes(event.i) ? el("i", {}, " · violation") : null];
  }

  /**
   * What a screen reader says of a row: what stands there, and then what only the diagram shows.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   */
  label(diagram, event) {
    const { trace } = diagram, notes = /** @type {string[]} */ ([]);
    const [cause] = event.causes.filter((end) => MESSAGES.has(end.joint)), effects = event.effects.filter((end) => MESSAGES.has(end.joint));
    const name = (/** @type {End} */ end) => trace.idOf(end.i) ?? trace.actors[end.actor];
    if (cause) notes.push(`comes from ${name(cause)}`);
    if (effects.length) notes.push(`leads to ${effects.slice(0, 3).map(name).join(", ")}`);
    if (trace.deviations.includes(event.i)) notes.push("deviates from the default order");
    if (!event.kept) notes.push("pruned");
    const shown = `${stepped(trace, event)} ${event.id} ${this.words(event)}${trace.violations.includes(event.i) ? " · violation" : ""}`;
    return [shown.trim(), ...notes].join(", ");
  }

  /**
   * What stands in a row behind the name of the event.
   *
   * @param {Event} event
   */
  words(event) {
    const more = this.detail(event);
    return more ? `${more} · ${sentenceOf(event)}` : sentenceOf(event);
  }

  /** @param {number} k */
  choose(k) {
    const i = this.rows.at(k);
    if (!this.diagram || i === null) return;
    this.activate(k, true);
    this.go(this.diagram, i);
  }

  /**
   * Makes a row the one that Tab comes to, and brings it into sight.
   *
   * @param {number} k
   * @param {boolean} focus
   */
  activate(k, focus) {
    if (!this.rows.count) return;
    this.active = clamp(k, 0, this.rows.count - 1);
    const { top, page } = this, room = Math.min(2, Math.floor((page - 1) / 2));
    const low = this.active - page + 1 + room, high = this.active - room;
    this.scroll(clamp(top, low, high));
    this.paint();
    if (focus) this.elements.get(this.active)?.focus({ preventScroll: true });
  }

  /**
   * The chosen event changed: its row is the one that Tab comes to.
   *
   * @param {number | null} i
   */
  follow(i) {
    const k = i === null ? -1 : this.rows.find(i);
    if (k >= 0) this.activate(k, false);
    else this.draw();
  }

  focus() { this.activate(this.active, true); }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { active } = this;
    /** @type {Record<string, () => unknown>} */
    const actions = {
      ArrowDown: () => (e.shiftKey ? this.along(true) : this.activate(active + 1, true)),
      ArrowUp: () => (e.shiftKey ? this.along(false) : this.activate(active - 1, true)),
      ArrowRight: () => this.across(true), ArrowLeft: () => this.across(false),
      PageDown: () => this.activate(active + this.page, true), PageUp: () => this.activate(active - this.page, true),
      Home: () => this.activate(0, true), End: () => this.activate(this.rows.count - 1, true),
      Enter: () => this.choose(active), " ": () => this.choose(active),
    };
    if (!Object.hasOwn(actions, e.key)) return;
    e.preventDefault();
    e.stopPropagation();
    actions[e.key]();
  }

  /**
   * Goes to the next event of the same actor, or to the one before.
   *
   * @param {boolean} forward
   */
  async along(forward) {
    const i = this.rows.at(this.active), { diagram } = this;
    if (i === null || !diagram) return;
    try {
      for (let other = await diagram.trace.nextOfActor(i, forward); ; other = await diagram.trace.nextOfActor(other, forward)) {
        if (other === null) {
          this.say(forward ? "this is the actor's last event" : "this is the actor's first event");
          return;
        }
        // A list of some events passes over the others.
        const k = this.rows.find(other);
        if (k >= 0) {
          this.activate(k, true);
          return;
        }
      }
    } catch (error) { this.fail(error); }
  }

  /**
   * Goes along a message, or another edge: to its receive, or to its send.
   *
   * @param {boolean} forward
   */
  across(forward) {
    const i = this.rows.at(this.active), event = i === null ? null : this.diagram?.trace.get(i);
    if (!event) return;
    const ends = (forward ? event.effects : event.causes).filter((end) => this.rows.find(end.i) >= 0);
    const end = ends.find((one) => MESSAGES.has(one.joint)) ?? ends[0];
    if (end) this.activate(this.rows.find(end.i), true);
    else this.say(forward ? "no message leads on from here" : "no message leads here");
  }

  /** @param {string} text */
  say(text) { this.status.textContent = text; }
}
