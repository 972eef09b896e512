// A small execution as a page has it, for tests.

/** The order of events is that of `events`; an edge is `[cause, effect, joint]`. */
export function sample(events, edges = [], more = {}) {
  const kinds = ["start", "send", "receive", "state", "violation"], joints = ["local", "message_id", "clock"];
  const actors = [...new Set(events.map((e) => e.actor))];
  const texts = [], seen = actors.map(() => 0);
  const text = (t) => (t === undefined ? -1 : texts.push(t) - 1);
  const columns = { texts, actor: [], incarnation: [], seq: [], kind: [], flags: [], joint: [], place: [], type: [], payload: [], fields: [], msg_id: [], from: [], to: [], time: [], source: [], offset: [], edges: { cause: [], cause_actor: [], effect: [], effect_actor: [], joint: [], certain: [] } };
  for (const event of events) {
    const actor = actors.indexOf(event.actor), place = event.loose ? -1 : seen[actor]++;
    const row = { actor, incarnation: event.incarnation ?? 0, seq: event.seq ?? String(place + 1), kind: kinds.indexOf(event.kind ?? "receive"), flags: (event.flags ?? 1) | (event.loose ? 4 : 0), joint: 0, place, type: text(event.type), payload: text(event.payload), fields: text(event.fields), msg_id: text(event.msg_id), from: text(event.from), to: text(event.to), time: text(event.time), source: text(event.source), offset: event.offset ?? "-1" };
    for (const [name, value] of Object.entries(row)) columns[name].push(value);
  }
  for (const [cause, effect, joint = "message_id"] of edges) {
    const row = { cause, effect, cause_actor: columns.actor[cause], effect_actor: columns.actor[effect], joint: joints.indexOf(joint), certain: joint === "clock" ? 0 : 1 };
    for (const [name, value] of Object.entries(row)) columns.edges[name].push(value);
  }
  const trace = { name: "recorded", actors, events: events.length, columns, changes: { texts: [], event: [], actor: [], variable: [], value: [] }, notes: [], align: [], violations: [], deviations: [], states_from: "", ...more };
  return [{ schema: "demi-page/2", system: "s", violation: [], facts: [], kinds, joints, traces: [trace], curve: [], phases: [], completeness: [], differences: [], invariants: [], unmatched: [], warnings: [], served: false }, trace];
}
