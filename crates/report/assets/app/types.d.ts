// Types of the page's data, and of what its modules hand to each other. Only the type checker reads this file.

import type { App } from "./app.js";
import type { Diagram } from "./diagram.js";
import type { LocalTrace } from "./trace.js";
import type { RemoteTrace } from "./remote.js";

declare global {
  interface Window {
    /** The page, once it is ready; for tests and for the console. */
    demi: App | undefined;
  }
}

/** What the page is given: `Page` in `src/data.rs`. */
export interface PageData {
  schema: string;
  system: string;
  violation: string[];
  facts: { name: string; value: string }[];
  kinds: string[];
  joints: string[];
  traces: TraceData[];
  curve: { replays: number; deliveries: number; externals: number; executed: number }[];
  phases: { phase: string; replays: number; seconds: number; deliveries: number; externals: number }[];
  completeness: LogData[];
  differences: { actor: string; first: number; second: number }[];
  invariants: InvariantData[];
  unmatched: [string, string][];
  warnings: string[];
  served: boolean;
}

/** One execution. */
export interface TraceData {
  name: string;
  actors: string[];
  events: number;
  /** How many steps there are, of a served execution. */
  steps: number;
  columns: ColumnData;
  changes: ChangeData;
  notes: [number, string][];
  align: number[];
  violations: number[];
  deviations: number[];
  states_from: string;
}

/** Columns of events. Texts are numbers into `texts`, negative for none; sequence numbers and offsets are texts. */
export interface ColumnData {
  texts: string[];
  actor: Numbers;
  incarnation: number[];
  seq: string[];
  kind: number[];
  flags: number[];
  joint: number[];
  place: Numbers;
  type: Numbers;
  payload: Numbers;
  fields: Numbers;
  msg_id: Numbers;
  from: number[];
  to: number[];
  time: number[];
  source: number[];
  offset: string[];
  edges: EdgeData;
}

export type Numbers = ArrayLike<number>;

export interface EdgeData {
  cause: number[];
  cause_actor: number[];
  effect: number[];
  effect_actor: number[];
  joint: number[];
  certain: number[];
}

export interface ChangeData {
  texts: string[];
  event: number[];
  actor: number[];
  variable: number[];
  value: number[];
}

/** What is complete of one log; positions are texts. */
export interface LogData {
  actor: string;
  incarnation: number;
  events: string;
  first: string;
  last: string;
  missing: string;
  gaps: [string, string][];
}

export interface InvariantData {
  holds: string;
  name: string | null;
  class: string | null;
  bits: number | null;
  episodes: string | null;
  checked: string;
  found: string;
  of: string;
  event: string;
  at: number;
}

/** One event, as the page uses it. */
export interface Event {
  /** Position in the order, from 0. */
  i: number;
  actor: number;
  seq: string;
  incarnation: number;
  id: string;
  kind: string;
  joint: string;
  type: string | null;
  payload: string | null;
  /** Structured content, as JSON. */
  fields: string | null;
  msg_id: string | null;
  from: string | null;
  to: string | null;
  time: string | null;
  source: string | null;
  offset: string;
  /** In the causal past of the violation. */
  kept: boolean;
  external: boolean;
  /** In no log's order. */
  loose: boolean;
  affected: boolean;
  /** Position in the order of its actor, from 0; negative where it has none. */
  place: number;
  causes: End[];
  effects: End[];
}

/** The other end of an edge of happens-before. */
export interface End {
  i: number;
  actor: number;
  joint: string;
  certain: boolean;
}

/** Cause, its actor, effect, its actor. */
export type Edge = [number, number, number, number];

/** A variable of an actor after an event: its value, the event that gave it, the value before. */
export interface Variable {
  actor: number;
  variable: string;
  value: string | null;
  at: number;
  before: string | null;
}

export interface Found {
  events: number[];
  /** How many there are, those behind the last of `events` included. */
  total: number;
  /** Where an order between events was looked for: all events that are in some match, and the match that ends with an event. */
  taking?: number[];
  match?: (event: number) => number[];
}

/** A set of events. */
export interface EventSet {
  has(i: number): boolean;
}

export type AnyTrace = LocalTrace | RemoteTrace;

/** What a diagram reports. */
export interface DiagramListener {
  select(diagram: Diagram, i: number): void;
  hover(event: Event | null, at?: MouseEvent): void;
  /** Other rows are in sight. */
  moved(): void;
  fail(error: unknown): void;
}

/** Shows an event of a diagram. */
export type Go = (diagram: Diagram, i: number) => void;

export type Child = Node | string | number | bigint | null | undefined | false | Child[];
export type Context = CanvasRenderingContext2D;
