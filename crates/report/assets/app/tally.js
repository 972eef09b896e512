// The panel in which events are counted: those shown, found, in sight, or in a stretch of the order.

import { duration } from "./clock.js";
import { BY, SERVED, groupsOf, quantile } from "./counts.js";
import { $, el, put } from "./dom.js";
import { named } from "./inspector.js";
import { number, plural } from "./text.js";
import { isLocal } from "./trace.js";

/** @import { Group } from "./counts.js" */
/** @import { Diagram } from "./diagram.js" */
/** @import { RemoteTrace } from "./remote.js" */
/** @import { Child, Go } from "./types.js" */

/** Most groups that are listed. */
const LISTED = 300;

/** Which events are counted. */
const WHERE = /** @type {const} */ (["shown", "found", "in sight", "before the chosen event", "after the chosen event", "concurrent with it", "between the mark and it"]);

/** @typedef {{ head: string, of: (group: Group) => number, cell: (group: Group) => Child }} Column */

export class Tally {
  /**
   * @param {() => Diagram} current
   * @param {Go} go
   * @param {(text: string) => unknown} look searches for something
   */
  constructor(current, go, look) {
    this.current = current;
    this.go = go;
    this.look = look;
    this.timer = 0;
    this.turn = 0;
    /** @type {Map<string, Group[]>} what a server counted */
    this.served = new Map();
    /** The head of the column that the rows are sorted by, and whether the largest comes first. */
    this.sorted = { head: "events", down: true };
    const choice = (/** @type {string} */ label, /** @type {readonly string[]} */ all) => el("select", { "aria-label": label, onchange: () => this.show() }, all.map((one) => el("option", { value: one }, one)));
    this.where = choice("Which events", WHERE);
    this.by = choice("By what", BY);
    this.member = el("input", { type: "text", placeholder: "or fields.NAME", "aria-label": "By a member of the content, as fields.term", autocomplete: "off", spellcheck: "false", oninput: () => this.soon() });
    this.status = el("output", { role: "status" });
    this.table = el("div", { class: "scroll", tabindex: "0" });
    put($("counts"), el("div", { class: "line" }, el("label", {}, "Count what is ", this.where), el("label", {}, "by ", this.by), this.member, this.status), this.table);
    for (const input of [this.where, this.by, this.member]) input.addEventListener("keydown", (e) => { if (/** @type {KeyboardEvent} */ (e).key === "Escape") { this.toggle(); this.current().box.focus(); } });
  }

  toggle() {
    const panel = $("counts");
    panel.hidden = !panel.hidden;
    $("tally").setAttribute("aria-expanded", String(!panel.hidden));
    if (panel.hidden) return;
    this.show();
    this.where.focus();
  }

  /** Something that may be counted changed. */
  soon() {
    if ($("counts").hidden) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(), 150);
  }

  /**
   * Which events are counted; null where that cannot be said.
   *
   * @param {Diagram} diagram
   * @returns {((i: number) => boolean) | null}
   */
  counted(diagram) {
    const { trace, view, past, future, selected, marked } = diagram, where = this.where.value;
    if (!isLocal(trace)) return null;
    const seen = (/** @type {number} */ i) => view.shown === null || view.shown[i] === 1;
    if (where === "found") return (i) => diagram.found.has(i) && seen(i);
    if (where === "in sight") return (i) => seen(i) && view.row(i) >= Math.floor(diagram.top) && view.row(i) < diagram.top + diagram.rows;
    if (where === "shown") return seen;
    if (selected === null || !past || !future) return null;
    const has = (/** @type {import("./causality.js").Reach} */ reach, /** @type {number} */ i) => reach.holds(i, trace.columns);
    if (where === "before the chosen event") return (i) => i !== selected && has(past, i) && seen(i);
    if (where === "after the chosen event") return (i) => i !== selected && has(future, i) && seen(i);
    if (where === "concurrent with it") return (i) => !has(past, i) && !has(future, i) && seen(i);
    if (marked === null) return null;
    const [from, to] = marked < selected ? [trace.reach(marked, true), past] : [future, trace.reach(marked, false)];
    return (i) => has(from, i) && has(to, i) && seen(i);
  }

  async show() {
    const diagram = this.current(), { trace } = diagram;
    if (!isLocal(trace)) {
      await this.ask(diagram, trace);
      return;
    }
    const counted = this.counted(diagram);
    if (!counted) {
      const why = this.where.value.startsWith("between") ? "Mark an event and choose another." : "Choose an event.";
      put(this.status, why);
      put(this.table);
      return;
    }
    const { times } = trace, by = this.member.value.trim() || this.by.value;
    this.rows(diagram, by, groupsOf(trace, counted, by, times.some ? times.at : null), times.unit);
  }

  /**
   * A server counts all events, by what its tables have.
   *
   * @param {Diagram} diagram
   * @param {RemoteTrace} trace
   */
  async ask(diagram, trace) {
    const by = this.by.value, turn = ++this.turn;
    if (this.where.value !== "shown" || this.member.value.trim() || !SERVED.includes(by)) {
      put(this.status, `A server counts all events, by ${SERVED.join(", ")}. demi-lineage query EXECUTION --sql counts the rest.`);
      put(this.table);
      return;
    }
    const known = this.served.get(by);
    if (!known) put(this.status, "The server counts …");
    try {
      const groups = known ?? await trace.groups(by);
      this.served.set(by, groups);
      const ends = groups.slice(0, 20).flatMap(({ first, last }) => [first, last]);
      for (const i of known ? [] : ends) await trace.load(i, i);
      if (turn === this.turn) this.rows(diagram, by, groups, "");
    } catch (error) {
      put(this.status, error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * @param {Diagram} diagram
   * @param {string} by
   * @param {Group[]} groups
   * @param {"ns" | ""} unit of the times that messages took
   */
  rows(diagram, by, groups, unit) {
    const { trace } = diagram;
    const all = groups.reduce((sum, group) => sum + group.count, 0), timed = groups.some((group) => group.waits.length > 0);
    const took = (/** @type {number} */ share) => (/** @type {Group} */ { waits }) => (waits.length ? quantile(waits, share) : -Infinity);
    const span = (/** @type {number} */ value) => (value === -Infinity ? "" : unit === "ns" ? duration(BigInt(Math.round(value))) : number(value));
    const event = (/** @type {number} */ i) => el("button", { type: "button", class: "link", title: named(trace, i), onclick: () => this.go(diagram, i) }, named(trace, i) || "show");
    /** @type {Column[]} */
    const columns = [
      { head: "events", of: ({ count }) => count, cell: ({ count }) => number(count) },
      { head: "share", of: ({ count }) => count, cell: ({ count }) => `${((100 * count) / Math.max(1, all)).toFixed(1)} %` },
      { head: "actors", of: ({ actors }) => actors, cell: ({ actors }) => number(actors) },
      ...(timed ? [["median", 0.5], ["p95", 0.95], ["longest", 1]].map(([head, share]) => ({ head: `took (${head})`, of: took(Number(share)), cell: (/** @type {Group} */ group) => span(took(Number(share))(group)) })) : []),
      { head: "first", of: ({ first }) => first, cell: ({ first }) => event(first) },
      { head: "last", of: ({ last }) => last, cell: ({ last }) => event(last) },
    ];
    const column = columns.find(({ head }) => head === this.sorted.head) ?? columns[0], sign = this.sorted.down ? -1 : 1;
    groups.sort((a, b) => { const [x, y] = [column.of(a), column.of(b)]; return x === y ? 0 : x < y ? -sign : sign; });
    put(this.status, `${plural(all, "event")} in ${plural(groups.length, "group")}${groups.length > LISTED ? `, ${LISTED} of them here` : ""}`);
    const order = ({ head = "" }) => (head === column.head ? (this.sorted.down ? "descending" : "ascending") : "none");
    const press = ({ head = "" }) => { this.sorted = { head, down: head === column.head ? !this.sorted.down : true }; this.show(); };
    put(this.table, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, by), columns.map((one) => el("th", { scope: "col", class: "n", "aria-sort": order(one) }, el("button", { type: "button", class: "link", title: one.head.startsWith("took") ? "How long messages took from their send, by two clocks: sort by it" : `Sort by ${one.head}`, onclick: () => press(one) }, one.head, order(one) === "none" ? "" : order(one) === "descending" ? " ↓" : " ↑"))))),
      el("tbody", {}, groups.slice(0, LISTED).map((group) => el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", class: "link", title: "Search for these", onclick: () => this.look(group.query) }, group.name || "(empty)")), columns.map((one) => el("td", { class: "n" }, one.cell(group))))))));
  }
}
