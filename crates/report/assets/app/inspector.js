// What is to be known of the chosen event: its content, what it changed, and the variables of all actors after it.

import { between } from "./clock.js";
import { titleOf } from "./diagram.js";
import { $, el, put } from "./dom.js";
import { MESSAGES } from "./edges.js";
import { treeOf } from "./json.js";
import { clip, number, plural } from "./text.js";
import { WITHIN, isLocal } from "./trace.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { AnyTrace, Child, End, Event, Go, Variable } from "./types.js" */

/** @type {Record<string, string>} what is known of a message without its other end */
const ALONE = { in_flight: "not received by the end", lost: "lost: overtaken for good", sender_missing: "its sender's log is missing", duplicate: "delivered again", external: "sent from outside, not logged" };

/** @type {Record<string, string>} how an edge is known */
const KNOWN = { message_id: "joined by message id", timer: "joined as a timer", channel_order: "joined by channel order", inferred: "joined by content", replayed: "known from replay", clock: "known from vector clocks", parent: "known from the spans", link: "known from a link of the span", operation: "known from operations of threads", indirect: "through events that are not shown" };

export class Inspector {
  /**
   * @param {Go} go
   * @param {(button: HTMLElement) => unknown} copy copies the link of the chosen event
   * @param {{ mark: () => unknown, chain: () => unknown, critical: () => unknown }} stretch marks where a stretch begins, and shows the longest chain of it, and what took its time
   * @param {{ note: (diagram: Diagram, i: number, text: string) => unknown, history: (diagram: Diagram, actor: number, variable: string) => unknown }} on a note was written; a variable is to be shown over time
   */
  constructor(go, copy, stretch, on) {
    this.on = on;
    this.stretch = stretch;
    this.go = go;
    this.copy = copy;
    /** @type {Set<number>} actors whose variables are open */
    this.opened = new Set();
    this.turn = 0;
  }

  clear() {
    const key = (/** @type {string} */ name, /** @type {string} */ what) => el("tr", {}, el("td", {}, el("kbd", {}, name)), el("td", {}, what));
    put($("event"), el("h2", {}, "Step through it"), el("table", { class: "keyed" }, key("j", "next step"), key("k", "step back"), key("v", "the violation"), key("/", "search"), key("?", "all keys, and how to read this page")),
      el("p", { class: "sub" }, "Choose an event to see its content, what it changed, and what happens before and after it."));
    put($("states"));
  }

  /**
   * @param {Diagram} diagram
   * @param {Event} event
   */
  async show(diagram, event) {
    const { trace } = diagram;
    const turn = ++this.turn;
    // What the links name; of many only the first.
    const ends = [...event.causes.slice(0, 3), ...event.effects.slice(0, 3)];
    const [rows, times] = await Promise.all([trace.state(event.i), this.times(trace, event), ...ends.map((end) => trace.load(end.i, end.i))]);
    if (turn !== this.turn) return;
    put($("event"), this.head(diagram, event), times, this.changes(rows, event), this.sends(diagram, event), this.notes(trace, event), this.note(diagram, event), this.raw(trace, event));
    this.states(diagram, rows, event);
  }

  /**
   * @param {Diagram} diagram
   * @param {Event} event
   */
  head(diagram, event) {
    const { trace } = diagram;
    const words = [];
    if (event.from && event.kind !== "send") words.push(`from ${event.from}`);
    if (event.to && event.kind === "send") words.push(`to ${event.to}`);
    if (event.time) words.push(event.time);
    const chips = event.kind === "violation" ? [] : [["chip", event.kind.replaceAll("_", " ")]];
    if (trace.violations.includes(event.i)) chips.push(["chip alarm", "violation"]);
    if (trace.deviations.includes(event.i)) chips.push(["chip past", "deviates from the default order"]);
    if (event.external) chips.push(["chip", "from outside"]);
    if (event.affected) chips.push(["chip alarm", "affected"]);
    if (!event.kept) chips.push(["chip", "pruned: not before the violation"]);
    if (event.loose) chips.push(["chip", "in no log's order"]);
    if (diagram.past && diagram.future) {
      chips.push(["chip past", `${plural(diagram.past.size - 1, "event")} before`]);
      chips.push(["chip future", `${plural(diagram.future.size - 1, "event")} after`]);
      chips.push(["chip", `${number(trace.n - diagram.past.size - diagram.future.size + 1)} concurrent`]);
    }
    const joint = ALONE[event.joint];
    return [
      el("p", { class: "headline" }, titleOf(event)),
      el("p", { class: "sub" }, el("span", { class: "id" }, event.id), ` · ${trace.position(event.i)}${words.length ? ` · ${words.join(" · ")}` : ""} · `,
        el("button", { class: "link", type: "button", title: "Copy a link to this event (y)", onclick: (/** @type {MouseEvent} */ e) => this.copy(/** @type {HTMLElement} */ (e.currentTarget)) }, "copy link")),
      el("ul", { class: "chips" }, chips.map(([kind, text]) => el("li", { class: kind }, text))),
      event.payload ? el("pre", {}, event.payload) : null,
      event.fields ? [el("h3", {}, "Fields"), treeOf(event.fields)] : null,
      joint ? el("p", { class: "sub" }, joint) : null,
      this.edges(diagram, event),
      this.twin(diagram, event),
      this.chain(diagram, event),
    ];
  }

  /**
   * What to do about the stretch that ends or begins with the event.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   */
  chain(diagram, event) {
    const { marked, trace } = diagram, from = marked === null ? null : trace.get(marked);
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => unknown} */ act) => el("button", { class: "link", type: "button", title, onclick: act }, text);
    const between = from && from.i !== event.i ? `longest chain between here and ${from.id}` : "longest chain to here";
    return el("p", { class: "sub" }, button(between, "The longest chain of events, each of which happens before the next (c)", this.stretch.chain), " · ",
      event.time === null ? null : [button("critical path", "What it waited for, and where the time went (p)", this.stretch.critical), " · "],
      button(marked === event.i ? "unmark" : "mark", "A stretch begins here (m)", this.stretch.mark));
  }

  /**
   * The event of the other execution that is alike.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   */
  twin(diagram, event) {
    const { other } = diagram, twin = diagram.twin(event.i);
    if (!other) return null;
    if (twin === null) return el("p", { class: "sub only" }, `the ${other.trace.name} execution has no event like this`);
    return el("p", { class: "sub" }, el("button", { class: "link", type: "button", onclick: () => this.go(other, twin) }, `the same in the ${other.trace.name} execution: ${named(other.trace, twin)}`));
  }

  /**
   * What comes before the event and after it by an edge between logs, and how that is known.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   * @returns {Child[]}
   */
  edges(diagram, event) {
    const item = (/** @type {End} */ end, /** @type {string} */ words) =>
      el("p", { class: "sub" }, this.link(diagram, end, words), ` · ${KNOWN[end.joint] || end.joint}`, end.certain ? null : " (not certain)");
    const word = (/** @type {End} */ end, /** @type {boolean} */ before) => {
      if (MESSAGES.has(end.joint)) return before ? (end.joint === "timer" ? "its setting" : "its send") : end.joint === "timer" ? "it fires" : "its receive";
      if (end.joint === "parent") return before ? "its parent" : "its child";
      if (end.joint === "link") return before ? "what it links to" : "what links to it";
      return before ? "happens after" : "happens before";
    };
    const list = (/** @type {End[]} */ ends, /** @type {boolean} */ before) => ends.slice(0, 20).map((end) => item(end, word(end, before)));
    const more = event.effects.length > 20 ? el("p", { class: "sub" }, `and ${number(event.effects.length - 20)} more`) : null;
    return [list(event.causes, true), list(event.effects, false), more];
  }

  /**
   * @param {Diagram} diagram
   * @param {End} end
   * @param {string} text
   */
  link(diagram, end, text) {
    return el("button", { class: "link", type: "button", onclick: () => this.go(diagram, end.i) }, `${text}: ${named(diagram.trace, end.i) || diagram.trace.actors[end.actor]}`);
  }

  /**
   * @param {Variable[]} rows
   * @param {Event} event
   * @returns {Child}
   */
  changes(rows, event) {
    const changed = rows.filter((row) => row.at === event.i);
    if (!changed.length) return null;
    return [el("h3", {}, "Changes"), el("table", {}, changed.map((row) => el("tr", { class: "changed" }, el("th", { scope: "row" }, row.variable), el("td", { class: "v" }, row.before === null ? null : [el("del", {}, clip(row.before, 200)), " → "], row.value === null ? "gone" : treeOf(row.value)))))];
  }

  /**
   * What the handler sent, up to the next step of its actor.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   * @returns {Child}
   */
  sends(diagram, event) {
    const { trace } = diagram;
    if (!isLocal(trace) || event.place < 0 || WITHIN.has(event.kind)) return null;
    const sent = /** @type {Event[]} */ ([]);
    for (let p = event.place + 1; p < trace.chain[event.actor].length; p++) {
      const next = trace.get(trace.chain[event.actor][p]);
      if (!next || !WITHIN.has(next.kind)) break;
      if (next.kind === "send" || next.kind === "timer_set") sent.push(next);
    }
    if (!sent.length) return null;
    const item = (/** @type {Event} */ one) => el("button", { type: "button", onclick: () => this.go(diagram, one.i) }, one.kind === "send" ? `${one.type || "message"} to ${one.to}` : `sets timer ${one.type || ""}`, one.payload ? el("small", {}, one.payload) : null);
    return [el("h3", {}, "Sends"), el("ul", { class: "list" }, sent.map((one) => el("li", {}, item(one))))];
  }

  /**
   * @param {AnyTrace} trace
   * @param {Event} event
   * @returns {Child}
   */
  notes(trace, event) {
    const notes = trace.notes(event.i);
    return notes.length ? [el("h3", {}, trace.deviations.includes(event.i) ? "Instead of" : "Why it is needed"), notes.map((text) => el("p", { class: "sub" }, text))] : null;
  }

  /**
   * What the reader wrote at the event.
   *
   * @param {Diagram} diagram
   * @param {Event} event
   */
  note(diagram, event) {
    const input = el("input", { type: "text", id: "note", class: "note", placeholder: "goes with the link", autocomplete: "off", value: diagram.notes.get(event.i) ?? "" });
    input.addEventListener("input", () => this.on.note(diagram, event.i, input.value));
    input.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === "Escape") { e.preventDefault(); diagram.box.focus(); } });
    return el("p", { class: "sub" }, el("label", {}, "Note ", input));
  }

  /**
   * How much time lies between the event and the one before it in its log, and between it and what it came from. Clocks of two machines
   * may differ.
   *
   * @param {AnyTrace} trace
   * @param {Event} event
   * @returns {Promise<Child>}
   */
  async times(trace, event) {
    if (event.time === null) return null;
    const rows = /** @type {Child[]} */ ([]);
    const row = async (/** @type {number | null | undefined} */ i, /** @type {string} */ what) => {
      if (i === null || i === undefined) return;
      await trace.load(i, i);
      const span = between(trace.get(i)?.time ?? null, event.time);
      if (span !== null) rows.push(el("p", { class: "sub time" }, `${span} ${what}`));
    };
    if (!event.loose) await row(await trace.nextOfActor(event.i, false), "since the event before it of this actor");
    const cause = event.causes.find((end) => MESSAGES.has(end.joint));
    await row(cause?.i, cause?.joint === "timer" ? "since the timer was set" : cause && cause.actor !== event.actor ? "since the send, by two clocks" : "since the send");
    return rows;
  }

  /**
   * The record as it was read, and where it stands.
   *
   * @param {AnyTrace} trace
   * @param {Event} event
   */
  raw(trace, event) {
    // What a monitor found stands in no file.
    const found = trace.actors[event.actor] === "_monitor";
    const line = lineOf(event);
    const where = event.source === null || found ? null : el("p", { class: "sub" }, `log line: ${event.source}${!event.offset.startsWith("-") ? `, byte ${number(event.offset)}` : ""}`, line && el("code", { class: "command" }, line));
    return [el("details", { class: "record" }, el("summary", {}, "Record"), el("pre", {}, recordOf(trace.actors[event.actor], event))), where];
  }

  /**
   * @param {Diagram} diagram
   * @param {Variable[]} rows
   * @param {Event} event
   */
  states(diagram, rows, event) {
    const { trace } = diagram;
    const by = /** @type {Map<number, Variable[]>} */ (new Map());
    for (const row of rows) {
      if (row.value === null) continue;
      const own = by.get(row.actor);
      if (own) own.push(row); else by.set(row.actor, [row]);
    }
    if (!by.size) {
      const why = trace.statesFrom ? "No actor runs yet." : "No variables: the logs have no state records. With --scenario they come from a replay on the model.";
      return put($("states"), el("h2", {}, "Variables"), el("p", { class: "sub" }, why));
    }
    const actors = trace.order.filter((actor) => by.has(actor)).sort((a, b) => Number(b === event.actor) - Number(a === event.actor));
    const source = { model: "from a replay on the model", log: "from state records" }[trace.statesFrom];
    put($("states"), el("h2", {}, "Variables after this event ", el("span", { class: "sub" }, source || "")), actors.slice(0, 60).map((actor) => this.actor(diagram, actor, by.get(actor) ?? [], event)));
  }

  /**
   * @param {Diagram} diagram
   * @param {number} actor
   * @param {Variable[]} rows
   * @param {Event} event
   */
  actor(diagram, actor, rows, event) {
    const { trace } = diagram;
    const name = (/** @type {string} */ variable) => el("button", { type: "button", class: "link", title: `When ${variable} changes, and its values along the lanes`, onclick: () => this.on.history(diagram, actor, variable) }, variable);
    const open = actor === event.actor || this.opened.has(actor) || trace.actors.length <= 3;
    const brief = rows.slice(0, 4).map((row) => `${row.variable} ${clip(row.value ?? "gone", 18)}`).join(" · ");
    const details = el("details", { open }, el("summary", {}, trace.actors[actor], el("span", {}, `  ${brief}`)),
      el("table", {}, rows.map((row) => el("tr", { class: row.at === event.i ? "changed" : null }, el("th", { scope: "row" }, name(row.variable)), el("td", { class: "v" }, treeOf(row.value ?? "gone"))))));
    details.addEventListener("toggle", () => { if (details.open) this.opened.add(actor); else this.opened.delete(actor); });
    return details;
  }
}

/**
 * A command that prints the line of an event out of its file, where it is a plain file and a place in it is known.
 *
 * @param {Pick<Event, "source" | "offset">} event
 */
export function lineOf({ source, offset }) {
  if (source === null || !/^\d+$/.test(offset) || /\.(gz|zst|parquet)$/.test(source)) return null;
  return `tail -c +${BigInt(offset) + 1n} '${source.replaceAll("'", "'\\''")}' | head -n 1`;
}

/**
 * The name of an event, and its step; nothing where it is not known yet.
 *
 * @param {AnyTrace} trace
 * @param {number} i
 */
export function named(trace, i) {
  const step = trace.stepOf(i);
  return `${trace.idOf(i) ?? ""}${step === null ? "" : ` (step ${number(step)})`}`;
}

/**
 * An event record with what the page knows of it; fields and sequence numbers as they are written.
 *
 * @param {string} actor
 * @param {Event} event
 */
export function recordOf(actor, event) {
  const members = [`"actor": ${JSON.stringify(actor)}`];
  if (event.incarnation) members.push(`"incarnation": ${event.incarnation}`);
  members.push(`"seq": ${event.seq}`, `"kind": ${JSON.stringify(event.kind)}`);
  for (const name of /** @type {const} */ (["msg_id", "from", "to", "type", "payload", "time"])) if (event[name] !== null) members.push(`"${name}": ${JSON.stringify(event[name])}`);
  if (event.fields !== null) members.push(`"fields": ${event.fields}`);
  return `{\n  ${members.join(",\n  ")}\n}`;
}
