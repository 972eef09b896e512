// The parts of the page put together: what is chosen, what is shown, and what buttons do.

import { waitedFor } from "./causality.js";
import { duration } from "./clock.js";
import { Diagram, titleOf } from "./diagram.js";
import { $, el, put } from "./dom.js";
import { mateOf } from "./edges.js";
import { showFacts, showPrinted, showSheets } from "./facts.js";
import { Filters } from "./filters.js";
import { Inspector } from "./inspector.js";
import { listenToKeys, showHelp } from "./keys.js";
import { hashOf, linked, notesIn } from "./link.js";
import { EventList, shownRows } from "./list.js";
import { RemoteTrace } from "./remote.js";
import { Search } from "./search.js";
import { Tally } from "./tally.js";
import { clip, number, plural } from "./text.js";
import { isDark, nameTypes, setTheme, theme } from "./theme.js";
import { Track } from "./track.js";
import { LocalTrace, isLocal } from "./trace.js";

/** @import { Event, PageData } from "./types.js" */

export class App {
  /** @param {PageData} page */
  constructor(page) {
    this.page = page;
    /** @type {import("./types.js").DiagramListener} */
    const on = { select: (diagram, i) => this.select(diagram, i), hover: (event, e) => this.tip(event, e), moved: () => { if (this.tally?.where.value === "in sight") this.tally.soon(); }, fail: (error) => this.fail(error) };
    /** @type {Tally | null} */
    this.tally = null;
    this.diagrams = page.traces.map((data) => new Diagram(page.served ? new RemoteTrace(page, data) : new LocalTrace(page, data), on));
    /** The diagram that keys and buttons act on. */
    this.current = this.diagrams[0];
    /** The one that stands beside the first, where there are several. */
    this.second = this.diagrams[Math.min(1, this.diagrams.length - 1)];
    this.current = this.second;
    this.inspector = new Inspector((diagram, i) => this.select(diagram, i), (button) => this.copyLink(button), { mark: () => this.mark(), chain: () => this.chain(), critical: () => this.critical() },
      { note: (diagram, i, text) => this.note(diagram, i, text), history: (diagram, actor, variable) => this.history(diagram, actor, variable) });
    this.search = new Search(() => this.current, (diagram, i) => this.select(diagram, i), (error) => this.fail(error));
    /** @type {import("./view.js").View | null} what the list has the rows of */
    this.shown = null;
    this.filters = new Filters(() => this.current, (filter) => this.apply(filter));
    this.tally = new Tally(() => this.current, (diagram, i) => this.select(diagram, i), (text) => this.search.look(text));
    this.search.changed = () => this.tally?.soon();
    this.list = new EventList("Events in order", (diagram, i) => this.select(diagram, i), (error) => this.fail(error));
    this.listed = el("h2", {});
    put($("events"), el("header", {}, this.listed, el("button", { type: "button", class: "link", "aria-label": "Keys of the list", onclick: showHelp }, "keys")), this.list.box, this.list.status);
    this.turn = 0;
    this.saying = 0;
    /** Whether it was dark before the page was printed. */
    this.dark = false;
    this.pair();
    put($("kicker"), `demi-lineage · ${page.system || "schedule"} · ${page.traces.length > 1 ? `${page.traces[0].name} and ${page.traces[1].name} execution` : `${page.traces[0].name} execution`}`);
    $("heading").textContent = page.violation.length ? page.violation.join(", ") : page.system || "Execution";
    put($("panes"), this.diagrams.map((diagram) => diagram.pane));
    showFacts(page);
    showSheets(page, this.diagrams.map((diagram) => diagram.trace), (i, which = 0) => this.select(this.diagrams[which], i));
    this.legend();
    this.views();
    this.buttons();
    listenToKeys(this);
    this.inspector.clear();
    this.view(this.diagrams.length < 2 ? 0 : innerWidth < 980 ? 1 : this.diagrams.length);
    for (const diagram of this.diagrams) diagram.overview.load().catch((error) => this.fail(error));
    if (!page.served) showPrinted(this.current.trace, page.violation);
    // By now the address may be that of an event that was chosen in between.
    addEventListener("hashchange", (e) => this.open(false, new URL(e.newURL).hash));
    this.open(true, location.hash);
    addEventListener("beforeprint", () => { this.dark = isDark(); setTheme(false); this.paint(); });
    addEventListener("afterprint", () => { setTheme(this.dark); this.paint(); });
  }

  /** The first diagram and the one beside it know each other, and which of their events are alike. */
  pair() {
    const [first] = this.diagrams, { second } = this;
    const back = /** @type {Map<number, number>} */ (new Map());
    if (second !== first) second.trace.align.forEach((to, from) => { if (to >= 0) back.set(to, from); });
    for (const diagram of this.diagrams) {
      diagram.other = second === first ? undefined : diagram === first ? second : first;
      const { align } = diagram.trace;
      diagram.twin = (i) => (diagram === first ? back.get(i) ?? null : align[i] >= 0 ? align[i] : null);
      diagram.trace.only = (i) => diagram.other !== undefined && diagram.twin(i) === null;
    }
  }

  paint() { for (const diagram of this.diagrams) { diagram.paint(); diagram.overview.paint(); } }

  /** @param {unknown} error */
  fail(error) {
    $("notice").hidden = false;
    $("notice").textContent = `This page cannot go on: ${error instanceof Error ? error.message : error}`;
  }

  /**
   * Shows the event that the address names, and at the start, where it names none, the violation.
   *
   * @param {boolean} start
   * @param {string} hash
   */
  async open(start, hash) {
    const names = this.page.traces.map((trace) => trace.name), wanted = linked(hash, names);
    try {
      for (const note of notesIn(hash, names)) await this.noted(note);
      for (const diagram of this.diagrams) {
        if (!wanted || (wanted.execution !== null && wanted.execution !== diagram.trace.name)) continue;
        const i = await diagram.trace.named(wanted.id);
        if (i === null) continue;
        if (diagram !== this.current || diagram.selected !== i) await this.select(diagram, i);
        return;
      }
      if (wanted) this.say(`This page has no event ${wanted.id}.`);
      if (start) this.begin();
    } catch (error) { this.fail(error); }
  }

  /**
   * Takes a note that came with the address.
   *
   * @param {import("./link.js").Note} note
   */
  async noted({ execution, id, text }) {
    for (const diagram of this.diagrams) {
      if (execution !== null && execution !== diagram.trace.name) continue;
      const i = await diagram.trace.named(id);
      if (i === null) continue;
      diagram.notes.set(i, text);
      $("notes").hidden = false;
      diagram.draw();
      return;
    }
  }

  /**
   * Writes a note at an event; nothing takes it back.
   *
   * @param {Diagram} diagram
   * @param {number} i
   * @param {string} text
   */
  note(diagram, i, text) {
    if (text.trim()) diagram.notes.set(i, text); else diagram.notes.delete(i);
    $("notes").hidden = this.diagrams.every(({ notes }) => !notes.size);
    diagram.draw();
    this.address();
  }

  /** Lists the notes of this execution. */
  listNotes() {
    const { notes } = this.current, events = [...notes.keys()].sort((a, b) => a - b);
    if (!events.length) {
      this.say("There is no note in this execution.");
      return;
    }
    this.search.listed(this.current, "Notes", events, (event) => notes.get(event.i) ?? "");
  }

  /**
   * Lists when a variable of an actor changes, and draws it along all lanes.
   *
   * @param {Diagram} diagram
   * @param {number} actor
   * @param {string} variable
   */
  async history(diagram, actor, variable) {
    const { trace } = diagram;
    try {
      const events = await trace.changesOf(actor, variable), local = isLocal(trace);
      const value = (/** @type {Event} */ event) => (local ? trace.state(event.i).filter((row) => row.actor === actor && row.variable === variable).map((row) => (row.value === null ? "is gone" : `= ${row.value}`)).join() : "");
      this.search.listed(diagram, `${variable} of ${trace.actors[actor]}`, events, value);
      if (local) this.follow(variable);
    } catch (error) { this.fail(error); }
  }

  /**
   * Draws a variable of all actors along their lanes, or none.
   *
   * @param {string | null} variable
   */
  follow(variable) {
    const all = this.diagrams.map(({ trace }) => trace).filter(isLocal);
    for (const diagram of this.diagrams) {
      diagram.track = variable !== null && isLocal(diagram.trace) ? new Track(diagram.trace, variable, all) : null;
      diagram.draw();
    }
    const { track } = this.current, box = $("track");
    box.hidden = track === null;
    if (track === null || variable === null) return;
    const dot = (/** @type {string} */ value) => { const mark = el("i", {}), hue = track.hue(value); mark.style.background = hue === null ? "var(--soft)" : `var(--t${hue})`; return el("span", {}, mark, clip(value, 24)); };
    const { range, values } = track;
    put(box, el("b", {}, variable), range ? el("span", {}, `from ${range.low} (thin) to ${range.high} (wide)`) : values.slice(0, 8).map(dot), values.length > 8 && !range ? el("span", {}, `and ${number(values.length - 8)} more`) : null,
      el("button", { type: "button", class: "link", title: `Draw ${variable} no longer`, onclick: () => this.follow(null) }, "take away"));
  }

  /** Tells times in place of steps at the left of the diagrams, or steps again: since the marked event, else since the first with a time. */
  async clocks() {
    const { current } = this;
    try {
      if (current.since === null) {
        const from = current.marked ?? 0, to = Math.min(current.trace.n - 1, from + 500);
        await current.trace.load(from, to);
        for (let i = from; i <= to && current.since === null; i++) current.since = current.trace.get(i)?.time ?? null;
        this.say(current.since === null ? "The events have no times." : `Times since ${current.since}, by the clocks of the actors.`);
      } else current.since = null;
      for (const diagram of this.diagrams) {
        diagram.since = current.since;
        diagram.move(diagram.top, diagram.left);
      }
    } catch (error) { this.fail(error); }
  }

  /** Puts the chosen event and the notes into the address. */
  address() {
    const hash = this.link();
    if (hash !== null) history.replaceState(null, "", hash);
  }

  /** Shows where two executions first differ, or the violation, and in the other execution its own. */
  begin() {
    const [difference] = this.page.differences;
    if (difference) {
      const [i, which] = difference.second >= 0 ? [difference.second, 1] : [difference.first, 0];
      this.select(this.diagrams[which], i);
      return;
    }
    for (const diagram of this.diagrams) {
      const last = diagram.trace.violations.at(-1);
      if (last !== undefined) diagram.show(last);
    }
    this.violation();
  }

  /** Goes to the next event that only this execution has; behind the last comes the first. */
  nextOnly() {
    const { trace, selected } = this.current, from = (selected ?? -1) + 1;
    for (let k = 0; k < trace.n; k++) {
      const i = (from + k) % trace.n;
      if (i !== selected && trace.only(i) && (!this.current.view.shown || this.current.view.shown[i])) {
        this.select(this.current, i);
        return;
      }
    }
    this.say("No event is in this execution alone.");
  }

  /** The address of the chosen event; null where none is chosen. */
  link() {
    const { selected, trace } = this.current, event = selected === null ? null : trace.get(selected);
    if (!event) return null;
    const many = this.diagrams.length > 1;
    const notes = this.diagrams.flatMap((diagram) => [...diagram.notes].flatMap(([i, text]) => {
      const id = diagram.trace.idOf(i);
      return id === null ? [] : [{ execution: many ? diagram.trace.name : null, id, text }];
    }));
    return hashOf(event.id, many ? trace.name : null, notes);
  }

  /**
   * Copies a link to the chosen event.
   *
   * @param {HTMLElement} [button] says that it was done
   */
  async copyLink(button) {
    const hash = this.link();
    if (hash === null) return;
    const address = location.href.split("#")[0] + hash;
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      // A page from a file may not use the clipboard that way.
      const box = el("textarea", { class: "hidden" });
      box.value = address;
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    if (button) button.textContent = "copied";
    this.say(`Copied ${address}`);
  }

  /**
   * Says something to all readers, and for a moment to those who see.
   *
   * @param {string} text
   */
  say(text) {
    $("said").textContent = text;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => { $("said").textContent = ""; }, 6000);
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
      this.use(diagram);
      diagram.selected = i;
      [diagram.past, diagram.future] = [before, after];
      diagram.show(i);
      const twin = diagram.twin(i), { other } = diagram;
      if (twin !== null && other) {
        other.selected = twin;
        [other.past, other.future] = await Promise.all([other.trace.reach(twin, false), other.trace.reach(twin, true)]);
        other.show(twin);
      } else if (other) {
        [other.selected, other.past, other.future] = [null, null, null];
        other.draw();
      }
      $("position").textContent = trace.position(i);
      this.relist();
      this.list.follow(i);
      this.search.list.draw();
      const event = trace.get(i);
      if (event && !diagram.view.has(i, event.actor)) this.say(`${event.id} is hidden by the filter.`);
      if (event) await this.inspector.show(diagram, event);
      if (turn === this.turn) this.address();
      this.tally?.soon();
    } catch (error) { this.fail(error); }
  }

  /**
   * Hides and orders what the reader wants hidden and ordered.
   *
   * @param {import("./view.js").Filter} filter
   */
  apply(filter) {
    for (const diagram of this.diagrams) diagram.apply(filter);
    this.tally?.soon();
    this.relist();
    this.legend();
  }

  /** @param {boolean} forward */
  async step(forward) {
    const next = await this.nextShown(this.current.selected ?? -1, forward);
    if (next !== null) await this.select(this.current, next);
  }

  /**
   * The next step that is shown.
   *
   * @param {number} from
   * @param {boolean} forward
   */
  async nextShown(from, forward) {
    const { trace, view } = this.current;
    let next = await trace.nextStep(from, forward);
    while (next !== null && view.shown && !view.shown[next]) next = await trace.nextStep(next, forward);
    return next;
  }

  /** @param {number} by */
  nudge(by) {
    const { selected, view } = this.current;
    const row = selected === null ? (by > 0 ? -1 : 0) : view.row(selected);
    const next = row + by;
    if (next >= 0 && next < view.count) this.select(this.current, view.at(next));
  }

  /** @param {boolean} last */
  async end(last) {
    const { trace } = this.current;
    const next = await this.nextShown(last ? trace.n : -1, !last);
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

  /** Makes the chosen event the one that the longest chain is counted from. */
  mark() {
    const { current } = this;
    if (current.selected === null) return;
    current.marked = current.marked === current.selected ? null : current.selected;
    const event = current.marked === null ? null : current.trace.get(current.marked);
    this.say(event ? `Marked ${event.id}: the longest chain is now that between it and the chosen event.` : "The mark is gone.");
    current.draw();
    this.select(current, current.selected);
  }

  /** Shows the longest chain of events between the marked event and the chosen one, or from a beginning to the chosen one. */
  async chain() {
    const { current } = this, { selected, marked, trace } = current;
    if (selected === null) return;
    try {
      const [from, to] = marked === null || marked === selected ? [null, selected] : [Math.min(marked, selected), Math.max(marked, selected)];
      const chain = await trace.longest(from, to);
      if (!chain.length) {
        this.say("The marked event and the chosen one are concurrent.");
        return;
      }
      let between = 0;
      for (let k = 1; k < chain.length; k++) {
        await trace.load(chain[k], chain[k]);
        const event = trace.get(chain[k]);
        if (event?.causes.some((end) => end.i === chain[k - 1])) between++;
      }
      current.follow(chain);
      this.search.listed(current, `Longest chain: ${plural(chain.length, "event")}, ${plural(between, "step")} between logs`, chain);
      current.draw();
    } catch (error) { this.fail(error); }
  }

  /** Shows what the chosen event waited for, from the marked event or from a beginning, and where the time went. */
  critical() {
    const { current } = this, { selected, marked, trace } = current;
    if (selected === null) return;
    if (!isLocal(trace) || !trace.times.some) {
      this.say(isLocal(trace) ? "The events have no times." : "A critical path is found on a page in one file; a served page has not all events.");
      return;
    }
    const { times: { at, unit } } = trace, [from, to] = marked === null || marked === selected ? [null, selected] : [Math.min(marked, selected), Math.max(marked, selected)];
    const path = waitedFor(trace, from, to, at);
    if (!path.length) {
      this.say("The marked event and the chosen one are concurrent.");
      return;
    }
    const told = (/** @type {number} */ span) => (Number.isNaN(span) ? "time unknown" : unit === "ns" ? duration(BigInt(Math.round(span))) : number(span));
    const spans = new Map(path.slice(1).map((i, k) => [i, at[i] - at[path[k]]]));
    const { actor } = trace.columns, sum = (/** @type {boolean} */ across) => path.slice(1).reduce((all, i, k) => all + ((actor[i] !== actor[path[k]]) === across ? spans.get(i) || 0 : 0), 0);
    current.follow(path);
    this.search.listed(current, `Critical path: ${told(at[to] - at[path[0]])}, ${told(sum(false))} within actors, ${told(sum(true))} between them`, path, (event) => (spans.has(event.i) ? `+${told(spans.get(event.i) ?? NaN)}`.replace("+−", "−") : "from here"));
    current.draw();
  }

  clear() {
    this.turn++;
    for (const diagram of this.diagrams) {
      [diagram.selected, diagram.past, diagram.future, diagram.path] = [null, null, null, []];
      diagram.draw();
    }
    $("position").textContent = "–";
    this.list.draw();
    this.inspector.clear();
  }

  /**
   * Makes a diagram the one that keys act on, in sight.
   *
   * @param {Diagram} diagram
   */
  use(diagram) {
    if (diagram.pane.hidden) this.view(this.diagrams.indexOf(diagram));
    this.current = diagram;
  }

  /** @param {number} which 0 the first execution, 1 the next and so on, behind the last two side by side */
  view(which) {
    const both = which >= this.diagrams.length;
    if (both && (which > this.diagrams.length || which < 2)) return;
    if (!both && which > 0 && this.second !== this.diagrams[which]) {
      this.second = this.diagrams[which];
      this.pair();
    }
    this.diagrams.forEach((diagram, i) => { diagram.pane.hidden = both ? i > 0 && diagram !== this.second : which !== i; });
    this.current = both ? (this.current === this.diagrams[0] ? this.current : this.second) : this.diagrams[which];
    [...$("views").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === which)));
    $("views").children[which]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.paint();
    this.relist();
  }

  /** The list has the events of the diagram that keys act on. */
  relist() {
    const { trace } = this.current;
    const { view } = this.current;
    if (this.list.diagram === this.current && this.shown === view) return;
    this.shown = view;
    this.listed.textContent = `Events of the ${trace.name} execution`;
    this.list.show(this.current, shownRows(view));
    this.list.follow(this.current.selected);
  }

  views() {
    const names = this.diagrams.length > 1 ? [...this.page.traces.map((t) => t.name), "side by side"] : [];
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
    const on = { first: () => this.end(false), last: () => this.end(true), back: () => this.step(false), forth: () => this.step(true), violation: () => this.violation(), in: () => this.current.zoom(1.3), out: () => this.current.zoom(1 / 1.3), whole: () => this.current.whole(), filter: () => this.filters.toggle(), tally: () => this.tally?.toggle(), notes: () => this.listNotes(), help: showHelp, theme: () => this.toggleTheme() };
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
