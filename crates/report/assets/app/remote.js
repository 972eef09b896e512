// An execution on a server: events come in blocks as they are looked at.

const BLOCK = 1024;
const HELD = 64;

async function ask(question) {
  const answer = await fetch("/ask", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question) });
  if (!answer.ok) throw new Error(`the server answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

class RemoteTrace extends Trace {
  constructor(page, data) {
    super(page, data);
    this.blocks = new Map();
    // By block: its edges, and those that pass over all of it.
    this.edges = new Map();
    this.passing = new Map();
    this.seen = new Map();
    this.onTypes = null;
  }

  get(i) {
    const block = this.blocks.get(Math.floor(i / BLOCK));
    if (!block || block.then) return null;
    return block[i % BLOCK] || null;
  }

  // Loads what is missing of a range; null where nothing is.
  load(from, to) {
    const waiting = [];
    for (let b = Math.floor(Math.max(0, from) / BLOCK); b <= Math.floor(Math.min(this.n - 1, to) / BLOCK); b++) {
      const block = this.blocks.get(b);
      if (!block) waiting.push(this.fetch(b));
      else if (block.then) waiting.push(block);
    }
    return waiting.length ? Promise.all(waiting) : null;
  }

  fetch(b) {
    const base = b * BLOCK;
    const coming = ask({ ask: "events", from: base, to: Math.min(this.n, base + BLOCK) }).then((answer) => {
      const edges = new Edges(this.page, answer.columns);
      const events = answer.columns.actor.map((_, k) => eventOf(this.page, this.actors, answer.columns, edges, base, base + k));
      this.blocks.set(b, events);
      this.edges.set(b, edges);
      this.passing.set(b, answer.crossing);
      while (this.blocks.size > HELD) this.drop();
      this.count(events);
    }, (error) => { this.blocks.delete(b); throw error; });
    this.blocks.set(b, coming);
    return coming;
  }

  drop() {
    const oldest = this.blocks.keys().next().value;
    this.blocks.delete(oldest);
    this.edges.delete(oldest);
    this.passing.delete(oldest);
  }

  count(events) {
    const before = this.seen.size;
    for (const event of events) if (event.type) this.seen.set(event.type, (this.seen.get(event.type) || 0) + 1);
    if (this.seen.size > before && this.onTypes) this.onTypes();
  }

  types() { return [...this.seen].sort((a, b) => b[1] - a[1]).map(([type]) => type); }
  notes() { return []; }
  position(i) { return `event ${number(i + 1)} of ${number(this.n)}`; }

  // Edges that pass over a window: they have an end in one of its blocks, or pass over these too.
  crossing(from, to) {
    const found = new Map();
    for (let b = Math.floor(from / BLOCK); b <= Math.floor(Math.max(from, to - 1) / BLOCK); b++) {
      const edges = this.edges.get(b);
      if (!edges) continue;
      edges.over(from, to, found);
      for (const edge of this.passing.get(b)) if (edge[0] < from && edge[2] >= to) found.set(`${edge[0]} ${edge[2]}`, edge);
    }
    return [...found.values()].slice(0, 300);
  }

  async nextStep(i, forward) { return (await ask({ ask: "step", from: Math.max(0, i), forward })).event; }
  async overview() { return (await ask({ ask: "overview" })).counts; }
  async search(words) { return ask({ ask: "search", words, after: null }); }

  async state(i) {
    const { state } = await ask({ ask: "state", at: i });
    return state.map(([actor, variable, value, at, before]) => ({ actor, variable, value, at, before }));
  }

  async reach(i, forward) {
    const answer = await ask({ ask: forward ? "future" : "past", of: i });
    return new Reach(forward, answer.bounds, new Stretches(answer.loose), answer.size);
  }
}
