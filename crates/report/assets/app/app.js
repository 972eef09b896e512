// The parts of the page put together: what is chosen, what is shown, and what buttons do.

import { Diagram, titleOf } from "./diagram.js";
import { $, el, put } from "./dom.js";
import { mateOf } from "./edges.js";
import { showFacts, showPrinted, showSheets } from "./facts.js";
import { Inspector } from "./inspector.js";
import { listenToKeys, showHelp } from "./keys.js";
import { EventList, allRows } from "./list.js";
import { RemoteTrace } from "./remote.js";
import { Search } from "./search.js";
import { clip } from "./text.js";
import { isDark, nameTypes, setTheme, theme } from "./theme.js";
import { LocalTrace } from "./trace.js";

/** @import { Event, PageData } from "./types.js" */

export class App {
  /** @param {PageData} page */
  constructor(page) {
    this.page = page;
    /** @type {import("./types.js").DiagramListener} */
    const on = { select: (diagram, i) => this.select(diagram, i), hover: (event, e) => this.tip(event, e), fail: (error) => this.fail(error) };
    this.diagrams = page.traces.map((data) => new Diagram(page.served ? new RemoteTrace(page, data) : new LocalTrace(page, data), on));
    /** The diagram that keys and buttons act on. */
    this.current = this.diagrams[this.diagrams.length - 1];
    this.inspector = new Inspector((diagram, i) => this.select(diagram, i));
    this.search = new Search(() => this.current, (diagram, i) => this.select(diagram, i), (error) => this.fail(error));
    this.list = new EventList("Events in order", (diagram, i) => this.select(diagram, i), (error) => this.fail(error));
    this.listed = el("h2", {});
    put($("events"), el("header", {}, this.listed, el("button", { type: "button", class: "link", "aria-label": "Keys of the list", onclick: showHelp }, "keys")), this.list.box, this.list.status);
    this.turn = 0;
    /** Whether it was dark before the page was printed. */
    this.dark = false;
    this.pair();
    put($("kicker"), `demi-lineage · ${page.system || "schedule"} · ${page.traces.map((t) => t.name).join(" and ")} execution`);
    $("heading").textContent = page.violation.length ? page.violation.join(", ") : page.system || "Execution";
    put($("panes"), this.diagrams.map((diagram) => diagram.pane));
    showFacts(page);
    showSheets(page, (i) => this.select(this.diagrams[0], i));
    this.legend();
    this.views();
    this.buttons();
    listenToKeys(this);
    this.inspector.clear();
    this.view(this.diagrams.length < 2 ? 0 : innerWidth < 980 ? 1 : 2);
    for (const diagram of this.diagrams) diagram.overview.load().catch((error) => this.fail(error));
    if (!page.served) showPrinted(this.current.trace, page.violation);
    addEventListener("beforeprint", () => { this.dark = isDark(); setTheme(false); this.paint(); });
    addEventListener("afterprint", () => { setTheme(this.dark); this.paint(); });
  }

  /** Each diagram knows the other and which of its events are alike. */
  pair() {
    const [large, small] = this.diagrams;
    const back = /** @type {Map<number, number>} */ (new Map());
    if (small) small.trace.align.forEach((to, from) => { if (to >= 0) back.set(to, from); });
    for (const diagram of this.diagrams) {
      diagram.other = diagram === large ? small : large;
      diagram.twin = (i) => (!small ? null : diagram === small ? (small.trace.align[i] >= 0 ? small.trace.align[i] : null) : back.get(i) ?? null);
    }
  }

  paint() { for (const diagram of this.diagrams) { diagram.paint(); diagram.overview.paint(); } }

  /** @param {unknown} error */
  fail(error) {
    $("notice").hidden = false;
    $("notice").textContent = `This page cannot go on: ${error instanceof Error ? error.message : error}`;
  }

  /**
   * Chooses an event, and the one of the other execution that is alike.
   *
   * @param {Diagram} diagram
   * @param {number} i
   */
  async select(diagram, i) {
    const turn = ++this.turn, { trace } = diagram;
    try {
      const coming = trace.load(i, i);
      if (coming) await coming;
      const [before, after] = await Promise.all([trace.reach(i, false), trace.reach(i, true)]);
      if (turn !== this.turn) return;
      this.current = diagram;
      diagram.selected = i;
      [diagram.past, diagram.future] = [before, after];
      diagram.show(i);
      const twin = diagram.twin(i), { other } = diagram;
      if (twin !== null && other) {
        other.selected = twin;
        [other.past, other.future] = await Promise.all([other.trace.reach(twin, false), other.trace.reach(twin, true)]);
        other.show(twin);
      }
      $("position").textContent = trace.position(i);
      this.relist();
      this.list.follow(i);
      this.search.list.draw();
      const event = trace.get(i);
      if (event) await this.inspector.show(diagram, event);
    } catch (error) { this.fail(error); }
  }

  /** @param {boolean} forward */
  async step(forward) {
    const from = this.current.selected ?? -1;
    const next = await this.current.trace.nextStep(from, forward);
    if (next !== null) await this.select(this.current, next);
  }

  /** @param {number} by */
  nudge(by) {
    const next = (this.current.selected ?? -1) + by;
    if (next >= 0 && next < this.current.trace.n) this.select(this.current, next);
  }

  /** @param {boolean} last */
  async end(last) {
    const { trace } = this.current;
    const next = await trace.nextStep(last ? trace.n : -1, !last);
    if (next !== null) this.select(this.current, next);
  }

  violation() {
    const [first] = this.current.trace.violations;
    const here = this.current.trace.violations.find((i) => i > (this.current.selected ?? -1));
    if (first !== undefined) this.select(this.current, here ?? first);
  }

  mate() {
    const event = this.current.selected === null ? null : this.current.trace.get(this.current.selected);
    const mate = event && mateOf(event);
    if (mate) this.select(this.current, mate.i);
  }

  clear() {
    this.turn++;
    for (const diagram of this.diagrams) {
      [diagram.selected, diagram.past, diagram.future] = [null, null, null];
      diagram.draw();
    }
    $("position").textContent = "–";
    this.list.draw();
    this.inspector.clear();
  }

  /** @param {number} which 0 the first execution, 1 the second, 2 both */
  view(which) {
    if (which > 0 && this.diagrams.length < 2) return;
    this.diagrams.forEach((diagram, i) => { diagram.pane.hidden = which < 2 && which !== i; });
    if (which < 2) this.current = this.diagrams[which];
    [...$("views").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === which)));
    this.paint();
    this.relist();
  }

  /** The list has the events of the diagram that keys act on. */
  relist() {
    const { trace } = this.current;
    if (this.list.diagram === this.current) return;
    this.listed.textContent = `Events of the ${trace.name} execution`;
    this.list.show(this.current, allRows(trace.n));
    this.list.follow(this.current.selected);
  }

  views() {
    const names = this.diagrams.length > 1 ? [...this.page.traces.map((t) => t.name), "both"] : [];
    put($("views"), names.map((name, i) => el("button", { type: "button", onclick: () => this.view(i) }, name)));
  }

  legend() {
    const traces = this.diagrams.map((d) => d.trace);
    const show = () => {
      nameTypes(traces[0].types());
      const types = [...theme.types.keys()];
      put($("legend"), types.map((type) => this.chip(type)));
      this.paint();
    };
    for (const trace of traces) if (trace instanceof RemoteTrace) trace.onTypes = show;
    show();
  }

  /** @param {string} type */
  chip(type) {
    const dot = el("i", {});
    dot.style.background = `var(--t${theme.types.get(type)})`;
    const chosen = this.diagrams[0].chosen;
    return el("button", { type: "button", "aria-pressed": chosen.has(type), title: "Let this type stand out", onclick: (/** @type {MouseEvent} */ e) => {
      for (const diagram of this.diagrams) if (!diagram.chosen.delete(type)) diagram.chosen.add(type);
      if (e.currentTarget instanceof Element) e.currentTarget.setAttribute("aria-pressed", String(chosen.has(type)));
      this.paint();
    } }, dot, clip(type, 26));
  }

  buttons() {
    const on = { first: () => this.end(false), last: () => this.end(true), back: () => this.step(false), forth: () => this.step(true), violation: () => this.violation(), in: () => this.current.zoom(1.3), out: () => this.current.zoom(1 / 1.3), help: showHelp, theme: () => this.toggleTheme() };
    for (const [id, act] of Object.entries(on)) $(id).addEventListener("click", act);
    $("violation").hidden = this.diagrams.every((d) => !d.trace.violations.length);
  }

  toggleTheme() {
    setTheme(!isDark());
    this.paint();
  }

  /**
   * @param {Event | null} event
   * @param {MouseEvent} [e]
   */
  tip(event, e) {
    const tip = $("tip");
    tip.hidden = !event || !e;
    if (!event || !e) return;
    put(tip, el("b", {}, titleOf(event)), `${event.id} · ${event.kind.replaceAll("_", " ")}`, event.payload ? el("div", {}, clip(event.payload, 220)) : null);
    const x = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8), y = Math.min(e.clientY + 16, innerHeight - tip.offsetHeight - 8);
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }
}
