/**
 * Models for demi-lineage in JavaScript: what an author writes, and the protocol `demi-model/1` below it.
 */

import { createServer } from "node:net";
import { createInterface } from "node:readline";

const PROTOCOL = "demi-model/1";

/** A message of that type, or what a timer carries. */
export function message(type, data = null, payload = undefined) {
  return payload === undefined ? { type, data } : { type, data, payload };
}

/** A broken invariant. */
export function violation(fingerprint, affected = []) {
  return { fingerprint, affected: [...affected].sort() };
}

/** Random numbers that are the same whenever the same question is asked: a counter through the finalizer of MurmurHash3. */
export class Random {
  #state;

  constructor(seed) {
    this.#state = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
  }

  /** A whole number from 0 to 2^32 - 1. */
  bits() {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  }

  /** A number from 0, and less than 1. */
  next() {
    return this.bits() / 2 ** 32;
  }

  /** A whole number from 0, and less than `n`. */
  below(n) {
    return Math.floor(this.next() * n);
  }

  /** One of the items of a list. */
  choice(items) {
    return items[this.below(items.length)];
  }
}

/** What a handler may do besides changing its state. Everything happens in order when the handler ends. */
export class Ctx {
  constructor(actor, sender, now, random) {
    this.me = actor;
    this.sender = sender ?? null;
    this.now = now ?? null;
    this.random = new Random(random);
    this.effects = [];
  }

  /** Sends a message; to `null` it leaves the system. `as` sends it in another actor's name. */
  send(to, msg, as = undefined) {
    this.effects.push({ send: as === undefined ? { to, message: msg } : { to, as, message: msg } });
  }

  /** Sends a message to the sender. */
  reply(msg) {
    this.send(this.sender, msg);
  }

  /** Puts a message back into the own inbox, under the name of its sender. */
  forward(msg) {
    this.effects.push({ forward: msg });
  }

  /** Arms a timer; a live one of that name and key is cancelled first. */
  setTimer(timer, msg, { key = 0, repeats = false, survives = false } = {}) {
    this.effects.push({ set: { timer, key, repeats, survives, message: msg } });
  }

  /** Cancels a timer, if it is live. */
  cancelTimer(timer, key = 0) {
    this.effects.push({ cancel: { timer, key } });
  }

  /** Brings an actor into existence. */
  startActor(actor) {
    this.effects.push({ start: actor });
  }

  /** Ends an actor for good. */
  stopActor(actor) {
    this.effects.push({ stop: actor });
  }

  /** The handler fails: what it sent so far stays sent, and the actor is gone until it restarts. */
  fail(why) {
    this.effects.push({ fail: why });
  }
}

/**
 * A system of actors. `start` and `deliver` are needed always.
 *
 * A state is any JSON value, or what `dump` makes one of. Nothing may be kept in `this` between calls: the same question must
 * always get the same answer.
 */
export class Model {
  /** The actors, in the order in which they start. `configure` may set it. */
  actors = [];
  /** Messages from outside that every run of `fuzz` begins with: pairs of receiver and message. */
  bootstrap = [];
  /** Rewritings of payloads before they are compared: `type`, `pattern` and `replace`. */
  masks = [];
  /** Types of messages that are delivered once at most, even where the network repeats messages. */
  once = [];
  /**
   * The names of `switches`, `settings` and `invariants` that the model knows, as lists. Others in a scenario are errors; what is not listed
   * here is not looked at.
   */
  knows = {};
  /** Whether `start` gets the state in which the actor failed. */
  disk = false;
  /** Whether a failed actor restarts by itself at once. */
  restarts = false;

  /** Reads the scenario: `members`, `switches`, `settings`, `invariants`, `payload`. */
  configure(_scenario) {}

  /** What an actor does when it starts; returns its state. */
  start(_actor, _ctx, _disk) {
    throw new Error("the model has no method 'start'");
  }

  /** Handles one message or timer to the end; returns the new state, or nothing if `state` was changed in place. */
  deliver(_actor, _state, _msg, _ctx) {
    throw new Error("the model has no method 'deliver'");
  }

  /** What invariants read of a state. The less it is, the fewer questions are asked. By default all of it. */
  seen(_actor, state) {
    return state;
  }

  /** For whom an actor waits in a state before it takes anything else; for scenarios with `deadlock = true`. */
  waitsFor(_actor, _state) {
    return [];
  }

  /**
   * The invariants: `violations`, and `memory` for the next check of the same run. `seen` has what `seen` returned for each actor
   * that answers. `memory` is `null` at first.
   */
  check(_seen, _failed, _memory) {
    return { violations: [], memory: null };
  }

  /** A state as a JSON value. */
  dump(state) {
    return state;
  }

  /** The state behind a JSON value; a value of its own, that a handler may change. */
  load(_actor, value) {
    return value;
  }
}

/** A name that the model does not know is a slip of the pen. */
function known(model, scenario) {
  for (const [what, names] of Object.entries(model.knows)) {
    const given = scenario[what] ?? [];
    const stranger = (Array.isArray(given) ? given : Object.keys(given)).find((name) => !names.includes(name));
    if (stranger !== undefined) {
      throw new Error(`${what}: the model does not know '${stranger}'; there are: ${names.join(", ") || "none"}`);
    }
  }
}

function greeting(model, { scenario }) {
  known(model, scenario);
  model.configure(scenario);
  if (model.actors.length === 0) {
    throw new Error("the model names no actors");
  }
  return {
    protocol: PROTOCOL,
    kind: "pure",
    actors: [...model.actors],
    bootstrap: model.bootstrap.map(([to, msg]) => ({ to, message: msg })),
    clients: typeof model.client === "function",
    external: typeof model.external === "function",
    disk: model.disk,
    restarts: model.restarts,
    masks: model.masks,
    once: model.once,
  };
}

/** The answer where a handler raised: what, and where in the model's own code. */
function raised(error) {
  const isError = error instanceof Error;
  const text = isError ? [error.name, error.message].filter(Boolean).join(": ") : String(error);
  const frames = String(isError ? error.stack : "").split("\n");
  const places = frames.map((frame) => /(?:\(|at )([^()]+):(\d+):\d+\)?$/.exec(frame)).filter(Boolean);
  const own = places.find(([, file]) => !file.startsWith("node:") && file !== import.meta.url);
  return { raised: own ? { text, at: `${own[1].split(/[\\/]/).pop()}:${own[2]}` } : { text } };
}

function handled(model, question) {
  const { actor } = question;
  const ctx = new Ctx(actor, question.from, question.now, question.random);
  if (question.stop) {
    // Step into the handler from here.
    debugger;
  }
  let state;
  const disk = question.disk ?? null;
  const kept = disk === null ? null : model.load(actor, disk);
  const before = question.do === "start" ? null : model.load(actor, question.state);
  try {
    if (question.do === "start") {
      state = model.start(actor, ctx, kept);
    } else {
      const after = model.deliver(actor, before, question.message, ctx);
      state = after === undefined ? before : after;
    }
  } catch (error) {
    return raised(error);
  }
  if (state === undefined) {
    throw new Error(`'${question.do}' of ${actor} gave no state`);
  }
  const told = { state: model.dump(state), seen: model.seen(actor, state), effects: ctx.effects };
  const waits = [...model.waitsFor(actor, state)];
  return waits.length > 0 ? { ...told, waits_for: waits } : told;
}

/** The answer to one question. */
export function answer(model, question) {
  switch (question.do) {
    case "start":
    case "deliver":
      return handled(model, question);
    case "check": {
      const { violations, memory = null } = model.check(question.seen, question.failed, question.memory);
      return { violations, memory };
    }
    case "client": {
      const proposal = model.client(question.n, new Random(question.random));
      return proposal ? { proposal: { to: proposal[0], message: proposal[1] } } : {};
    }
    case "external": {
      const made = model.external(question.type, question.payload, question.fields);
      return made
        ? { message: made }
        : { unknown: `the model does not know the message '${question.payload}'` };
    }
    default:
      throw new Error(`the model knows no request '${question.do}'`);
  }
}

/** Numbers that JSON cannot write would silently become `null`, and two states one. */
function checked(_key, value) {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new Error(`${value} is no JSON value`);
  }
  return value;
}

/** The line that answers a line. */
export function reply(model, line) {
  const request = JSON.parse(line);
  try {
    const said =
      request.hello === undefined
        ? { answers: request.requests.map((question) => answer(model, question)) }
        : { hello: greeting(model, request.hello) };
    return JSON.stringify({ id: request.id, ...said }, checked);
  } catch (error) {
    return JSON.stringify({ id: request.id, error: String(error?.stack ?? error) });
  }
}

/** Runs the model over standard input and output, or on the Unix socket `path`. Notes go to `console.error`. */
export function serve(model, path = "") {
  const talk = (input, output) => {
    createInterface({ input, crlfDelay: Infinity }).on("line", (line) => output.write(`${reply(model, line)}\n`));
  };
  if (path) {
    return createServer((connection) => talk(connection, connection)).listen(path);
  }
  // Standard output belongs to the protocol.
  console.log = console.error;
  console.info = console.error;
  return talk(process.stdin, process.stdout);
}
