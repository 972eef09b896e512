// An execution that is in the page. Events are known by their position in the order, from 0.

const KEPT = 1, EXTERNAL = 2, LOOSE = 4, AFFECTED = 8;
// Where a walk through the schedule does not stop: what a step does, and what is only noted.
const WITHIN = new Set(["send", "timer_set", "timer_cancel", "state", "block_begin", "block_end"]);

// One event, out of columns that begin at event `base`.
function eventOf(page, actors, columns, base, i) {
  const k = i - base;
  const text = (n) => (n < 0 ? null : columns.texts[n]);
  const actor = columns.actor[k], incarnation = columns.incarnation[k], flags = columns.flags[k];
  return {
    i, actor, seq: columns.seq[k], incarnation,
    id: `${actors[actor]}/${incarnation ? `${incarnation}/` : ""}${columns.seq[k]}`,
    kind: page.kinds[columns.kind[k]], joint: page.joints[columns.joint[k]],
    type: text(columns.type[k]), payload: text(columns.payload[k]), from: text(columns.from[k]), to: text(columns.to[k]),
    time: text(columns.time[k]), source: text(columns.source[k]), offset: columns.offset[k],
    kept: (flags & KEPT) !== 0, external: (flags & EXTERNAL) !== 0, loose: (flags & LOOSE) !== 0,
    affected: (flags & AFFECTED) !== 0,
    mate: columns.mate[k], mateActor: columns.mate_actor[k], place: columns.place[k],
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
    for (const name of ["actor", "mate", "mate_actor", "place", "payload", "type"]) c[name] = Int32Array.from(c[name]);
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
    // For arrows that pass over the window: the latest receive of each block of events.
    this.latest = [];
    for (let i = 0; i < this.n; i++) {
      const block = i >> 8;
      this.latest[block] = Math.max(this.latest[block] ?? -1, c.mate[i]);
    }
  }

  get(i) {
    let event = this.cache.get(i);
    if (!event) {
      if (i < 0 || i >= this.n) return null;
      if (this.cache.size > 20000) this.cache.clear();
      event = eventOf(this.page, this.actors, this.columns, 0, i);
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
    const c = this.columns, found = [];
    for (let block = Math.min(from >> 8, this.latest.length - 1); block >= 0 && found.length < 300; block--) {
      if (this.latest[block] < to) continue;
      for (let i = Math.min(from, (block + 1) << 8) - 1; i >= block << 8; i--) {
        if (c.mate[i] >= to) found.push([i, c.actor[i], c.mate[i], c.mate_actor[i]]);
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
