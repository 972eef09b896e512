// Keys, and the help that lists them.

import { $, el, put } from "./dom.js";

/** @import { App } from "./app.js" */

/** Keys and what they do. */
const KEYS = [
  ["j or ↓, k or ↑", "step forward, step back"],
  ["Shift ↓, Shift ↑", "next event, event before (sends too)"],
  ["Home, End", "first step, last step"],
  ["v", "the violation"],
  ["Enter", "other end of the message"],
  ["/", "search; Enter for the next hit, Shift Enter for the one before, ↓ to their list"],
  ["l", "list of events; there ↓ ↑ move in order, Shift ↓ ↑ along an actor, ← → along a message, Enter chooses"],
  ["n", "next event that only this execution has"],
  ["t", "counts of events by type, actor, message, with the time that messages take; of what is found or between two events too"],
  ["w", "times instead of steps at the left, since the mark or the first"],
  ["b, B", "write a note at the event, which goes with the link; list the notes"],
  ["f", "hide, order, join and light up actors; hide events"],
  ["c, m", "longest chain of events to here; m marks where it is to begin"],
  ["p", "critical path by the clocks: what the event waited for, from the mark or a beginning"],
  ["y", "copy a link to the event"],
  ["1, 2, 3 …", "the first execution, the next, and behind the last two side by side"],
  ["+, −, 0", "zoom, the whole run; Ctrl wheel too"],
  ["← →", "move sideways"],
  ["d", "light or dark"],
  ["Esc", "clear the choice"],
  ["?", "this help"],
];

const READING = "Each column is an actor, time goes down, and each row is one event in an order that keeps happens-before. A filled dot is a receive, a hollow one a send, a diamond a timer, a square a start, a cross a failure. An arrow joins the two ends of a message, or two events whose order is known from vector clocks or spans; a dashed arrow is a guess, a dotted one passes through events that are not shown. A short dashed stroke is a message whose other end is unknown. When you choose an event, those that happen before it get a blue mark on the left and those that happen after it an orange one; concurrent events fade. A dashed ring is a step that deviates from the default order of explore. Grey events were pruned: they do not happen before the violation.";

/** What is typed into the search, and what it finds. */
const SEARCHES = [
  ["vote term", "both words, anywhere"],
  ["type:Vote", "in one field: type, actor, kind, payload, from, to, id, time, fields, state, msg_id, source"],
  ["state.role:leader", "a variable that becomes that; fields.term:3 a member of the content"],
  ["NOT kind:send", "all but these"],
  ["fields.term:>3", "a number above another, also >=, <, <=; took:>100ms a message that was that long under way, gap:>1s so long after the event before of its actor, time:>2024-05-01T10:00:00Z"],
  ["\"two words\"", "with the space"],
  ["/Term\\(\\d+\\)/", "a regular expression; payload:/…/i in one field, whatever the case"],
  ["is:pruned", "also is:kept, is:violation, is:outside, is:affected, is:only (not in the other execution), is:local (in no order with other actors)"],
  ["raft-*:Vote", "a type of events of actors with such a name"],
  ["a:Vote -> b:Vote", "events of which each happens before the next"],
  ["a:Vote || b:Vote", "events of which neither happens before the other"],
];

const searchHelp = () => [el("h2", {}, "Search"), el("table", {}, SEARCHES.map(([text, what]) => el("tr", {}, el("td", {}, el("code", {}, text)), el("td", {}, what))))];

export function showHelp() {
  const dialog = /** @type {HTMLDialogElement} */ ($("about"));
  put(dialog, el("h2", {}, "How to read this page"), el("p", {}, READING), el("table", { class: "keyed" }, KEYS.map(([keys, what]) => el("tr", {}, el("td", {}, el("kbd", {}, keys)), el("td", {}, what)))), searchHelp(), el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.showModal();
}

/** @param {App} app */
export function listenToKeys(app) {
  const search = /** @type {HTMLInputElement} */ ($("search"));
  /** @type {Record<string, (e: KeyboardEvent) => unknown>} */
  const actions = {
    j: () => app.step(true), ArrowDown: (e) => (e.shiftKey ? app.nudge(1) : app.step(true)),
    k: () => app.step(false), ArrowUp: (e) => (e.shiftKey ? app.nudge(-1) : app.step(false)),
    Home: () => app.end(false), End: () => app.end(true),
    v: () => app.violation(), Enter: () => app.mate(),
    "/": () => { search.focus(); search.select(); },
    l: () => app.list.focus(),
    ...Object.fromEntries(Array.from({ length: 9 }, (_, which) => [String(which + 1), () => app.view(which)])),
    0: () => app.current.whole(), y: () => app.copyLink(), n: () => app.nextOnly(), f: () => app.filters.toggle(), t: () => app.tally?.toggle(), w: () => app.clocks(), B: () => app.listNotes(),
    b: () => document.getElementById("note")?.focus(), m: () => app.mark(), c: () => app.chain(), p: () => app.critical(),
    "+": () => app.current.zoom(1.3), "=": () => app.current.zoom(1.3), "-": () => app.current.zoom(1 / 1.3),
    ArrowLeft: () => app.current.move(app.current.top, app.current.left - 80),
    ArrowRight: () => app.current.move(app.current.top, app.current.left + 80),
    d: () => app.toggleTheme(), "?": () => showHelp(), Escape: () => app.clear(),
  };
  document.addEventListener("keydown", (e) => {
    if (!(e.target instanceof Element)) return;
    const typing = e.target.closest("input, textarea, select, dialog");
    const pressing = e.target.closest("button, summary, [role=scrollbar]") && (e.key === "Enter" || e.key === " ");
    if (typing || pressing || e.ctrlKey || e.metaKey || e.altKey || !Object.hasOwn(actions, e.key)) return;
    e.preventDefault();
    actions[e.key](e);
  });
}
