// Start: the data is unpacked, the parts are put together.

class App {
  constructor(page) {
    this.page = page;
    const on = { select: (diagram, i) => this.select(diagram, i), hover: (event, e) => this.tip(event, e), fail: (error) => this.fail(error) };
    const kind = page.served ? RemoteTrace : LocalTrace;
    this.diagrams = page.traces.map((data) => new Diagram(new kind(page, data), on));
    this.current = this.diagrams[this.diagrams.length - 1];
    this.inspector = new Inspector((diagram, i) => this.select(diagram, i));
    this.search = new Search(() => this.current, (diagram, i) => this.select(diagram, i), (error) => this.fail(error));
    this.turn = 0;
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
    addEventListener("beforeprint", () => { this.dark = document.documentElement.dataset.theme === "dark"; setTheme(false); this.paint(); });
    addEventListener("afterprint", () => { setTheme(this.dark); this.paint(); });
  }

  // Each diagram knows the other and which of its events are alike.
  pair() {
    const [large, small] = this.diagrams;
    const back = new Map();
    if (small) small.trace.align.forEach((to, from) => { if (to >= 0) back.set(to, from); });
    for (const diagram of this.diagrams) {
      diagram.other = diagram === large ? small : large;
      diagram.twin = (i) => (!small ? null : diagram === small ? (small.trace.align[i] >= 0 ? small.trace.align[i] : null) : back.get(i) ?? null);
    }
  }

  paint() { for (const diagram of this.diagrams) { diagram.paint(); diagram.overview.paint(); } }
  fail(error) { $("notice").hidden = false; $("notice").textContent = `This page cannot go on: ${error.message || error}`; }

  async select(diagram, i, follow = true) {
    const turn = ++this.turn, { trace } = diagram;
    try {
      const coming = trace.load(i, i);
      if (coming) await coming;
      const [past, future] = page_reach(trace, i);
      const [before, after] = past instanceof Promise ? await Promise.all([past, future]) : [past, future];
      if (turn !== this.turn) return;
      this.current = diagram;
      diagram.selected = i;
      [diagram.past, diagram.future] = [before, after];
      diagram.show(i);
      const twin = diagram.twin(i);
      if (follow && twin !== null && diagram.other) {
        const other = diagram.other;
        other.selected = twin;
        [other.past, other.future] = [other.trace.reach(twin, false), other.trace.reach(twin, true)];
        other.show(twin);
      }
      $("position").textContent = trace.position(i);
      await this.inspector.show(diagram, trace.get(i));
    } catch (error) { this.fail(error); }
  }

  async step(forward) {
    const from = this.current.selected ?? -1;
    const next = await this.current.trace.nextStep(from, forward);
    if (next !== null && next !== undefined) await this.select(this.current, next);
  }

  nudge(by) {
    const next = (this.current.selected ?? -1) + by;
    if (next >= 0 && next < this.current.trace.n) this.select(this.current, next);
  }

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
      diagram.selected = diagram.past = diagram.future = null;
      diagram.draw();
    }
    $("position").textContent = "–";
    this.inspector.clear();
  }

  // 0 the first execution, 1 the second, 2 both.
  view(which) {
    if (which > 0 && this.diagrams.length < 2) return;
    this.diagrams.forEach((diagram, i) => { diagram.pane.hidden = which < 2 && which !== i; });
    if (which < 2) this.current = this.diagrams[which];
    [...$("views").children].forEach((button, i) => button.setAttribute("aria-pressed", i === which));
    this.paint();
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
    for (const trace of traces) if (this.page.served) trace.onTypes = show;
    show();
  }

  chip(type) {
    const dot = el("i", {});
    dot.style.background = `var(--t${theme.types.get(type)})`;
    const chosen = this.diagrams[0].chosen;
    return el("button", { type: "button", "aria-pressed": chosen.has(type), title: "Let this type stand out", onclick: (e) => {
      for (const diagram of this.diagrams) if (!diagram.chosen.delete(type)) diagram.chosen.add(type);
      e.currentTarget.setAttribute("aria-pressed", chosen.has(type));
      this.paint();
    } }, dot, clip(type, 26));
  }

  buttons() {
    const on = { first: () => this.end(false), last: () => this.end(true), back: () => this.step(false), forth: () => this.step(true), violation: () => this.violation(), in: () => this.current.zoom(1.3), out: () => this.current.zoom(1 / 1.3), help: showHelp, theme: () => this.toggleTheme() };
    for (const [id, act] of Object.entries(on)) $(id).addEventListener("click", act);
    $("violation").hidden = this.diagrams.every((d) => !d.trace.violations.length);
  }

  toggleTheme() {
    setTheme(document.documentElement.dataset.theme !== "dark");
    this.paint();
  }

  tip(event, e) {
    const tip = $("tip");
    tip.hidden = !event || !e;
    if (tip.hidden) return;
    put(tip, el("b", {}, titleOf(event)), `${event.id} · ${event.kind.replaceAll("_", " ")}`, event.payload ? el("div", {}, clip(event.payload, 220)) : null);
    const x = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8), y = Math.min(e.clientY + 16, innerHeight - tip.offsetHeight - 8);
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }
}

const page_reach = (trace, i) => [trace.reach(i, false), trace.reach(i, true)];

async function unpack() {
  const text = $("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old (it has no DecompressionStream)");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function start() {
  const began = performance.now();
  const wish = matchMedia("(prefers-color-scheme: dark)");
  setTheme(wish.matches);
  wish.addEventListener("change", () => { setTheme(wish.matches); if (window.demi) window.demi.paint(); });
  const page = await unpack();
  if (page.schema !== "demi-page/2") throw new Error(`its data is ${page.schema}`);
  window.demi = new App(page);
  document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
}

start().catch((error) => { $("notice").hidden = false; $("notice").textContent = `This page cannot be shown: ${error.message}`; });
