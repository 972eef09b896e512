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

// A set of events as stretches, both ends included, in order.
class Stretches {
  constructor(stretches) { this.stretches = stretches; }

  has(i) {
    let low = 0, high = this.stretches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.stretches[middle][1] < i) low = middle + 1; else high = middle;
    }
    return low < this.stretches.length && this.stretches[low][0] <= i;
  }
}

// Grows prefixes (or suffixes) until they hold the causes (or effects) of everything in them.
function reachOf(trace, of, forward) {
  const { actor, place } = trace.columns, { edges } = trace;
  const bounds = trace.chain.map((chain) => (forward ? chain.length : 0));
  const loose = new Set();
  const work = [of];
  const follow = (other) => work.push(other);
  let size = 0;
  while (work.length) {
    const e = work.pop();
    if (place[e] < 0) {
      if (loose.has(e)) continue;
      loose.add(e);
      size++;
      edges.each(e, forward, follow);
      continue;
    }
    const a = actor[e], chain = trace.chain[a];
    const from = forward ? place[e] : bounds[a];
    const to = forward ? bounds[a] : place[e] + 1;
    for (let p = from; p < to; p++) {
      size++;
      edges.each(chain[p], forward, follow);
    }
    bounds[a] = forward ? Math.min(bounds[a], from) : Math.max(bounds[a], to);
  }
  return new Reach(forward, bounds, loose, size);
}
