// An execution that is in the page. Events are known by their position in the order, from 0.

const KEPT = 1, EXTERNAL = 2, LOOSE = 4, AFFECTED = 8;
// Where a walk through the schedule does not stop: what a step does, and what is only noted.
const WITHIN = new Set(["send", "timer_set", "timer_cancel", "state", "block_begin", "block_end"]);

// The edges of happens-before besides the order of logs, each with both its ends. `size` is how many events there are, where all are here.
class Edges {
  constructor(page, columns, size) {
    this.joints = page.joints;
    this.joint = columns.edges.joint;
    this.certain = columns.edges.certain;
    for (const name of ["cause", "effect"]) {
      this[name] = Int32Array.from(columns.edges[name]);
      this[`${name}_actor`] = Int32Array.from(columns.edges[`${name}_actor`]);
    }
    this.n = this.cause.length;
    this.into = this.chained(this.effect, size);
    this.out = this.chained(this.cause, size);
  }

  // By event the first of its edges, and by edge the next one of the same event.
  chained(ends, size) {
    const first = size === undefined ? new Map() : new Int32Array(size).fill(-1), next = new Int32Array(this.n);
    const get = (i) => (size === undefined ? first.get(i) ?? -1 : first[i]);
    for (let k = this.n - 1; k >= 0; k--) {
      next[k] = get(ends[k]);
      if (size === undefined) first.set(ends[k], k); else first[ends[k]] = k;
    }
    return { get, next };
  }

  // Calls `f` with the event at the other end of each edge into an event, or out of it.
  each(i, forward, f) {
    const { get, next } = forward ? this.out : this.into, other = forward ? this.effect : this.cause;
    for (let k = get(i); k >= 0; k = next[k]) f(other[k], k);
  }

  // The other ends of the edges into an event, or out of it.
  ends(i, forward) {
    const ends = [], actor = forward ? this.effect_actor : this.cause_actor;
    this.each(i, forward, (other, k) => ends.push({ i: other, actor: actor[k], joint: this.joints[this.joint[k]], certain: this.certain[k] === 1 }));
    return ends;
  }

  // Adds those that pass over a window to `found`: what begins before it and ends behind it.
  over(from, to, found) {
    for (let k = 0; k < this.n; k++) {
      if (this.cause[k] < from && this.effect[k] >= to) found.set(`${this.cause[k]} ${this.effect[k]}`, [this.cause[k], this.cause_actor[k], this.effect[k], this.effect_actor[k]]);
    }
  }
}

// Edges that join the ends of a message, or a timer and its setting.
const MESSAGES = new Set(["message_id", "timer", "channel_order", "inferred", "replayed"]);

// The other end of the event's message, else of the first edge it has; null where there is none.
function mateOf(event) {
  const ends = [...event.causes, ...event.effects];
  return ends.find((end) => MESSAGES.has(end.joint)) ?? ends[0] ?? null;
}

// The name of an event. The first incarnation is named where the actor's name could be read as that of an actor and an incarnation.
function nameOf(actor, incarnation, seq) {
  return `${actor}/${incarnation || /\/[0-9]+$/.test(actor) ? `${incarnation}/` : ""}${seq}`;
}

// One event, out of columns that begin at event `base`. Sequence numbers and places in files are texts: JavaScript would round large ones.
function eventOf(page, actors, columns, edges, base, i) {
  const k = i - base;
  const text = (n) => (n < 0 ? null : columns.texts[n]);
  const actor = columns.actor[k], incarnation = columns.incarnation[k], flags = columns.flags[k];
  return {
    i, actor, seq: columns.seq[k], incarnation,
    id: nameOf(actors[actor], incarnation, columns.seq[k]),
    kind: page.kinds[columns.kind[k]], joint: page.joints[columns.joint[k]],
    type: text(columns.type[k]), payload: text(columns.payload[k]), from: text(columns.from[k]), to: text(columns.to[k]),
    time: text(columns.time[k]), source: text(columns.source[k]), offset: columns.offset[k],
    kept: (flags & KEPT) !== 0, external: (flags & EXTERNAL) !== 0, loose: (flags & LOOSE) !== 0,
    affected: (flags & AFFECTED) !== 0, place: columns.place[k],
    causes: edges.ends(i, false), effects: edges.ends(i, true),
  };
}

// Words of a search; `type:`, `actor:`, `kind:`, `payload:` look at one field only.
function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

class Trace {
  constructor(page, data) {
    this.page = page;
    this.name = data.name;
    this.actors = data.actors;
    this.n = data.events;
    this.violations = data.violations;
    this.deviations = data.deviations;
    this.statesFrom = data.states_from;
    this.align = data.align;
    this.order = data.actors.map((_, i) => i).sort((a, b) => this.rank(a) - this.rank(b) || natural(data.actors[a], data.actors[b]));
    this.lane = [];
    this.order.forEach((actor, lane) => { this.lane[actor] = lane; });
  }

  // The environment stands left of the actors, the monitor right of them.
  rank(actor) {
    const name = this.actors[actor];
    return name === "_environment" ? 0 : name === "_monitor" ? 2 : 1;
  }
}

class LocalTrace extends Trace {
  constructor(page, data) {
    super(page, data);
    const c = data.columns;
    this.columns = c;
    for (const name of ["actor", "place", "payload", "type"]) c[name] = Int32Array.from(c[name]);
    this.edges = new Edges(page, c, this.n);
    this.cache = new Map();
    this.within = new Set(page.kinds.map((k, i) => (WITHIN.has(k) ? i : -1)));
    this.steps = [];
    this.chain = this.actors.map(() => []);
    for (let i = 0; i < this.n; i++) {
      if (!this.within.has(c.kind[i])) this.steps.push(i);
      if (c.place[i] >= 0) this.chain[c.actor[i]][c.place[i]] = i;
    }
    this.spans = spansOf(data.changes);
    this.noted = new Map();
    for (const [event, text] of data.notes) {
      if (!this.noted.has(event)) this.noted.set(event, []);
      this.noted.get(event).push(text);
    }
    // For arrows that pass over the window: the latest effect of each block of events.
    this.latest = new Int32Array((this.n >> 8) + 1).fill(-1);
    this.edges.cause.forEach((cause, k) => {
      this.latest[cause >> 8] = Math.max(this.latest[cause >> 8], this.edges.effect[k]);
    });
  }

  get(i) {
    let event = this.cache.get(i);
    if (!event) {
      if (i < 0 || i >= this.n) return null;
      if (this.cache.size > 20000) this.cache.clear();
      event = eventOf(this.page, this.actors, this.columns, this.edges, 0, i);
      this.cache.set(i, event);
    }
    return event;
  }

  load() { return null; }
  notes(i) { return this.noted.get(i) || []; }

  // The position in `steps` of the last step at or before i.
  stepIndex(i) {
    let low = 0, high = this.steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle] <= i) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  async nextStep(i, forward) {
    const at = this.stepIndex(i);
    const next = forward ? at + 1 : this.steps[at] === i ? at - 1 : at;
    return this.steps[next] ?? null;
  }

  position(i) {
    const at = this.stepIndex(i);
    return at < 0 ? `before the first of ${plural(this.steps.length, "step")}` : `step ${number(at + 1)} of ${number(this.steps.length)}`;
  }

  state(i) {
    const rows = [];
    for (const [actor, variable, events, values] of this.spans) {
      let low = 0, high = events.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (events[middle] <= i) low = middle + 1; else high = middle;
      }
      if (low > 0) rows.push({ actor, variable, value: values[low - 1], at: events[low - 1], before: low > 1 ? values[low - 2] : null });
    }
    return rows;
  }

  reach(i, forward) { return reachOf(this, i, forward); }

  holds(i, words) {
    const event = this.get(i);
    const fields = { actor: this.actors[event.actor], kind: event.kind, type: event.type || "", payload: event.payload || "", from: event.from || "", to: event.to || "", id: event.id };
    const has = (text, word) => text.toLowerCase().includes(word);
    return words.every((word) => {
      const at = word.indexOf(":");
      const field = at > 0 ? fields[word.slice(0, at)] : undefined;
      return field !== undefined ? has(field, word.slice(at + 1)) : Object.values(fields).some((text) => has(text, word));
    });
  }

  async search(words) {
    const events = [];
    for (let i = 0; i < this.n && events.length <= 500; i++) if (this.holds(i, words)) events.push(i);
    return { events: events.slice(0, 500), more: events.length > 500 };
  }

  crossing(from, to) {
    const { actor } = this.columns, found = [];
    for (let block = Math.min(from >> 8, this.latest.length - 1); block >= 0 && found.length < 300; block--) {
      if (this.latest[block] < to) continue;
      for (let i = Math.min(from, (block + 1) << 8) - 1; i >= block << 8; i--) {
        this.edges.each(i, true, (effect) => { if (effect >= to) found.push([i, actor[i], effect, actor[effect]]); });
      }
    }
    return found;
  }

  async overview() {
    const rows = Math.min(600, Math.max(1, this.n));
    const counts = Array.from({ length: rows }, () => new Array(this.actors.length).fill(0));
    for (let i = 0; i < this.n; i++) counts[Math.floor((i * rows) / this.n)][this.columns.actor[i]]++;
    return counts;
  }

  // Types by how often they occur.
  types() {
    const counts = new Map();
    for (let i = 0; i < this.n; i++) {
      const type = this.columns.type[i];
      if (type >= 0) counts.set(type, (counts.get(type) || 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]).map(([type]) => this.columns.texts[type]);
  }
}

// By actor and variable: the events of its changes, and the values.
function spansOf(changes) {
  const spans = new Map();
  for (let k = 0; k < changes.event.length; k++) {
    const actor = changes.actor[k], variable = changes.texts[changes.variable[k]];
    const key = `${actor}\u0000${variable}`;
    if (!spans.has(key)) spans.set(key, [actor, variable, [], []]);
    const span = spans.get(key);
    span[2].push(changes.event[k]);
    span[3].push(changes.value[k] < 0 ? null : changes.texts[changes.value[k]]);
  }
  return [...spans.values()];
}
