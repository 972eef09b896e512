// The panel in which actors are hidden, ordered and joined, and events are hidden.

import { $, el, put } from "./dom.js";
import { nameOf, queryOf } from "./pattern.js";
import { number, plural } from "./text.js";
import { isLocal } from "./trace.js";
import { Filter } from "./view.js";

/** @import { Diagram } from "./diagram.js" */
/** @import { Child } from "./types.js" */

/** Most lanes and types that are listed one by one; patterns reach all. */
const LISTED = 80;

export class Filters {
  /**
   * @param {() => Diagram} current
   * @param {(filter: Filter) => void} apply
   */
  constructor(current, apply) {
    this.current = current;
    this.apply = apply;
    this.filter = new Filter();
    this.timer = 0;
    this.pattern = el("input", { type: "text", placeholder: "raft-*", "aria-label": "Actors by name, * for any letters", autocomplete: "off", spellcheck: "false" });
    this.text = el("input", { type: "text", placeholder: "type:Heartbeat, /ping/i, NOT is:kept", "aria-label": "Events to hide, as in a search", autocomplete: "off", spellcheck: "false" });
    this.status = el("output", { role: "status" });
    this.lanes = el("ul", { class: "shown" });
    this.types = el("ul", { class: "shown" });
    this.hidden = el("div", { class: "line" });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => unknown} */ act) => el("button", { type: "button", title, onclick: act }, text);
    put($("filters"),
      el("div", { class: "line" }, el("label", {}, "Actors ", this.pattern), button("hide", "Hide these actors", () => this.named((names) => names.forEach((name) => this.filter.actors.add(name)))),
        button("only", "Hide all other actors", () => this.named((names) => this.others(names))), button("one lane", "Show these actors in one lane", () => this.join()),
        button("show all", "Take back all of this", () => { this.filter = new Filter(); this.pattern.value = this.text.value = ""; this.changed(); }), this.status),
      this.lanes, el("div", { class: "line" }, el("label", {}, "Hide events ", this.text)), this.types, this.hidden);
    this.text.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => { this.filter.text = this.text.value; this.changed(); }, 150);
    });
    for (const input of [this.pattern, this.text]) input.addEventListener("keydown", (e) => { if (e.key === "Escape") { this.toggle(); this.current().box.focus(); } });
  }

  toggle() {
    const panel = $("filters");
    panel.hidden = !panel.hidden;
    $("filter").setAttribute("aria-expanded", String(!panel.hidden));
    if (panel.hidden) return;
    this.show();
    this.pattern.focus();
  }

  /**
   * Does something with the actors that the pattern names.
   *
   * @param {(names: string[]) => unknown} act
   */
  named(act) {
    const pattern = this.pattern.value.trim(), name = new RegExp(nameOf(pattern), "i");
    const names = this.current().trace.actors.filter((actor) => name.test(actor));
    if (!names.length) {
      this.status.textContent = pattern ? `no actor is called ${pattern}` : "a name is wanted";
      return;
    }
    act(names);
    this.changed();
  }

  /** @param {string[]} names */
  others(names) {
    const kept = new Set(names);
    for (const name of this.current().trace.actors) if (kept.has(name)) this.filter.actors.delete(name); else this.filter.actors.add(name);
  }

  join() { this.named(() => { const pattern = this.pattern.value.trim(); if (!this.filter.groups.includes(pattern)) this.filter.groups.push(pattern); }); }

  /** The filter was changed: all is shown anew. */
  changed() {
    this.apply(this.filter);
    this.show();
  }

  /**
   * Puts the lane at `from` to the place `to`.
   *
   * @param {number} from
   * @param {number} to
   */
  move(from, to) {
    const { lanes } = this.current().view, { trace } = this.current();
    if (to < 0 || to >= lanes.length) return;
    const order = [...lanes];
    order.splice(to, 0, ...order.splice(from, 1));
    this.filter.order = order.flatMap((lane) => lane.actors.map((actor) => trace.actors[actor]));
    this.changed();
  }

  /** @param {string[]} names those of a lane */
  pin(names) {
    const { pinned } = this.filter, out = names.every((name) => pinned.has(name));
    for (const name of names) if (out) pinned.delete(name); else pinned.add(name);
    const { trace, view } = this.current();
    const order = view.lanes.flatMap((lane) => lane.actors.map((actor) => trace.actors[actor]));
    this.filter.order = [...order.filter((name) => pinned.has(name)), ...order.filter((name) => !pinned.has(name))];
    this.changed();
  }

  show() {
    const { view, trace } = this.current(), { filter } = this;
    const local = isLocal(trace), names = (/** @type {import("./view.js").Lane} */ lane) => lane.actors.map((actor) => trace.actors[actor]);
    const small = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => unknown} */ act, pressed = false) => el("button", { type: "button", "aria-label": label, title: label, "aria-pressed": pressed, onclick: act }, text);
    const lane = (/** @type {import("./view.js").Lane} */ one, /** @type {number} */ k) => {
      const all = names(one), pinned = all.every((name) => filter.pinned.has(name));
      return el("li", {}, small("◀", `Move ${one.label} to the left`, () => this.move(k, k - 1)), el("span", {}, one.label), small("▶", `Move ${one.label} to the right`, () => this.move(k, k + 1)),
        small("⇤", pinned ? `Unpin ${one.label}` : `Pin ${one.label} on the left`, () => this.pin(all), pinned),
        small("◉", `Let ${one.label} stand out`, () => { this.current().stand(one.actors); this.show(); }, one.actors.every((actor) => this.current().lit.has(actor))),
        one.group !== null ? small("⇿", `Show the actors of ${one.label} apart`, () => { filter.groups = filter.groups.filter((group) => group !== one.group); this.changed(); }) : null,
        small("×", `Hide ${one.label}`, () => { all.forEach((name) => filter.actors.add(name)); this.changed(); }));
    };
    put(this.lanes, view.lanes.slice(0, LISTED).map(lane), view.lanes.length > LISTED ? el("li", {}, `and ${number(view.lanes.length - LISTED)} more`) : null);
    const types = local ? trace.types().slice(0, LISTED) : [];
    const alone = local ? el("li", {}, el("label", {}, el("input", { type: "checkbox", checked: !filter.local, onchange: (/** @type {{ currentTarget: HTMLInputElement }} */ e) => { filter.local = !e.currentTarget.checked; this.changed(); } }), "events of one actor alone")) : null;
    put(this.types, alone, types.map((type) => el("li", {}, el("label", {}, el("input", { type: "checkbox", checked: !filter.types.has(type), onchange: (/** @type {{ currentTarget: HTMLInputElement }} */ e) => { if (e.currentTarget.checked) filter.types.delete(type); else filter.types.add(type); this.changed(); } }), type))));
    const back = [...filter.actors].slice(0, LISTED).map((name) => el("button", { type: "button", title: `Show ${name}`, onclick: () => { filter.actors.delete(name); this.changed(); } }, `+ ${name}`));
    put(this.hidden, back.length ? ["Hidden: ", back] : null);
    this.text.disabled = !local;
    const { error } = queryOf(filter.text, trace.actors);
    /** @type {Child[]} */
    const told = [error ?? `${number(view.count)} of ${plural(trace.n, "event")}, ${plural(view.lanes.length, "lane")}`];
    if (view.loses) told.push("; the order through hidden events is not kept: there are too many events and actors");
    if (!local) told.push("; the rows of hidden actors stay empty on a served page");
    put(this.status, told);
  }
}
