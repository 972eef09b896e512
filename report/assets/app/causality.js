// Causal past and future: by actor a prefix or a suffix of its events, and the events that stand in no log's order.

class Reach {
  constructor(forward, bounds, loose, size) {
    this.forward = forward;
    this.bounds = bounds;
    this.loose = loose;
    this.size = size;
  }

  has(event) {
    if (event.place < 0) return this.loose.has(event.i);
    const bound = this.bounds[event.actor];
    return this.forward ? event.place >= bound : event.place < bound;
  }
}

// Grows prefixes (or suffixes) until they hold the causes (or effects) of everything in them.
function reachOf(trace, of, forward) {
  const { actor, mate, place } = trace.columns;
  const bounds = trace.chain.map((chain) => (forward ? chain.length : 0));
  const loose = new Set();
  const work = [of];
  let size = 0;
  while (work.length) {
    const e = work.pop();
    if (place[e] < 0) {
      if (loose.has(e)) continue;
      loose.add(e);
      size++;
      if (forward && mate[e] > e) work.push(mate[e]);
      continue;
    }
    const a = actor[e], chain = trace.chain[a];
    const from = forward ? place[e] : bounds[a];
    const to = forward ? bounds[a] : place[e] + 1;
    for (let p = from; p < to; p++) {
      const x = chain[p], m = mate[x];
      size++;
      if (m >= 0 && (forward ? m > x : m < x)) work.push(m);
    }
    bounds[a] = forward ? Math.min(bounds[a], from) : Math.max(bounds[a], to);
  }
  return new Reach(forward, bounds, loose, size);
}
