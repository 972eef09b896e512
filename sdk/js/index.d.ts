/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A message, or what a timer carries. */
export interface Message {
  /** Type tag, as the system logs it. */
  type: string;
  /** Any JSON value. */
  data?: any;
  /** Full content, as the system logs it; made of type and data where absent. */
  payload?: string;
}

/** A broken invariant. */
export interface Violation {
  /** The invariant's name; more after a colon, such as the actors, tells violations apart. */
  fingerprint: string;
  /** The actors whose state breaks it. */
  affected: string[];
}

/** What a model gets of the scenario file. */
export interface Scenario {
  members?: number;
  invariants?: string[];
  switches: Record<string, boolean>;
  settings: Record<string, any>;
  payload: Record<string, boolean>;
}

/** A rewriting of payloads before they are compared. */
export interface Mask {
  type?: string;
  pattern: string;
  replace: string;
}

/** How a timer behaves. */
export interface TimerOptions {
  /** Tells timers of one name apart. */
  key?: number;
  /** Whether it fires again and again. */
  repeats?: boolean;
  /** Whether it outlives a restart of its actor. */
  survives?: boolean;
}

export function message(type: string, data?: any, payload?: string): Message;
export function violation(fingerprint: string, affected?: Iterable<string>): Violation;

export class Random {
  constructor(seed: number);
  bits(): number;
  next(): number;
  below(n: number): number;
  choice<T>(items: readonly T[]): T;
}

export class Ctx {
  /** The actor that handles. */
  readonly me: string;
  /** The sender of the message; `null` for timers and messages from outside. */
  readonly sender: string | null;
  /** The present time in seconds; `null` where the schedule does not tell it. */
  readonly now: number | null;
  /** Random numbers that are the same whenever the same question is asked. Use no others. */
  readonly random: Random;
  send(to: string | null, msg: Message, as?: string): void;
  reply(msg: Message): void;
  forward(msg: Message): void;
  setTimer(timer: string, msg: Message, options?: TimerOptions): void;
  cancelTimer(timer: string, key?: number): void;
  startActor(actor: string): void;
  stopActor(actor: string): void;
  fail(why: string): void;
}

export class Model<State = any> {
  actors: string[];
  bootstrap: [string, Message][];
  masks: Mask[];
  /** Types of messages that are delivered once at most, even where the network repeats messages. */
  once: string[];
  /** The names of switches, settings and invariants that the model knows; others in a scenario are errors. */
  knows: { switches?: readonly string[]; settings?: readonly string[]; invariants?: readonly string[] };
  disk: boolean;
  restarts: boolean;
  configure(scenario: Scenario): void;
  start(actor: string, ctx: Ctx, disk: State | null): State;
  deliver(actor: string, state: State, msg: Message, ctx: Ctx): State | void;
  seen(actor: string, state: State): Json;
  waitsFor(actor: string, state: State): Iterable<string>;
  check(
    seen: Record<string, any>,
    failed: string[],
    memory: any,
  ): { violations: Violation[]; memory?: Json };
  /** The `n`-th random message from outside, for `fuzz`: receiver and message. */
  client?(n: number, random: Random): [string, Message] | null | undefined;
  /** Makes a message from outside of what a log tells of it. Without it the fields become the data. */
  external?(type: string, payload: string, fields: any): Message | null | undefined;
  dump(state: State): Json;
  load(actor: string, value: any): State;
}

export function answer(model: Model, question: any): any;
export function reply(model: Model, line: string): string;
export function serve(model: Model, path?: string): unknown;
