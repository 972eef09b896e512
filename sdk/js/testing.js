/**
 * Schedules as tests: a model takes the steps of a schedule, and what breaks on the way is told.
 *
 * `demi-lineage export OUT --format js-test` writes such a test. It fails while the bug is there. Steps that a mended model does not
 * offer any more are passed over.
 *
 * `DEMI_REPLAY=@7` in the environment stops the model in front of the handler of step 7, if its command has `--inspect-brk`;
 * `DEMI_REPLAY=FILE@7` takes the steps of another schedule file, and `DEMI_REPLAY=FILE` does that without stopping.
 */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A model in a process of its own. */
class Child {
  #process;
  #lines;
  #count = 0;
  #failed;

  constructor(command, cwd) {
    this.#process = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", "inherit"] });
    this.#failed = new Promise((_, reject) => this.#process.once("error", reject));
    this.#failed.catch(() => {});
    // What a model that has ended is told goes nowhere; that it gives no answer is what counts.
    this.#process.stdin.on("error", () => {});
    this.#lines = createInterface({ input: this.#process.stdout, crlfDelay: Infinity })[Symbol.asyncIterator]();
  }

  async send(request) {
    this.#count += 1;
    this.#process.stdin.write(`${JSON.stringify({ id: this.#count, ...request })}\n`);
    const { value, done } = await Promise.race([this.#lines.next(), this.#failed]);
    if (done) {
      throw new Error(`the model ended at the request ${JSON.stringify(request)}`);
    }
    const reply = JSON.parse(value);
    if (reply.error !== undefined) {
      throw new Error(`the model says: ${reply.error}`);
    }
    return reply;
  }

  async ask(question) {
    return (await this.send({ requests: [question] })).answers[0];
  }

  close() {
    this.#process.stdin.end();
    this.#process.kill();
  }
}

/** A value as text in which the order of keys does not count. */
function canonical(value) {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join()}]`;
  }
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** A number of 53 bits that is the same for the same question. */
function random(question) {
  const digest = createHash("sha256").update(canonical(question)).digest();
  return Number(digest.readBigUInt64LE() >> 11n);
}

/** The name in schedules of who is no actor. */
const OUTSIDE = "deadLetters";

/** Whether a schedule writes the message so: `TYPE(DATA)`, in whatever order the keys of the data are. */
function isText({ type, data = null, payload = null }, text = null) {
  if (payload !== null) {
    return payload === text;
  }
  if (data === null || text === null) {
    return text === type;
  }
  if (!text.startsWith(`${type}(`) || !text.endsWith(")")) {
    return false;
  }
  try {
    return canonical(JSON.parse(text.slice(type.length + 1, -1))) === canonical(data);
  } catch {
    return false;
  }
}

/** States, and what is pending in the order in which it was sent. */
class World {
  states = new Map();
  seen = new Map();
  status = new Map();
  pending = [];
  memory = null;

  constructor(child, hello, network) {
    Object.assign(this, { child, hello, network });
  }

  is(actor, ...statuses) {
    return statuses.includes(this.status.get(actor));
  }

  async #do(actor, sender, question) {
    const whole = { ...question, actor, now: null };
    const stop = this.stops ? { stop: true } : {};
    const answer = await this.child.ask({ ...whole, random: random(whole), ...stop });
    if (answer.raised) {
      const { text, at } = answer.raised;
      this.crashText = `crash: ${actor}, ${text}${at ? ` (${at})` : ""}`;
      return;
    }
    this.states.set(actor, answer.state);
    this.seen.set(actor, answer.seen === undefined ? answer.state : answer.seen);
    for (const effect of answer.effects ?? []) {
      await this.#effect(actor, sender, effect);
    }
  }

  async #effect(me, sender, effect) {
    if (effect.send) {
      this.#send(effect.send.as ?? me, effect.send.to, effect.send.message);
    } else if (effect.forward) {
      this.#send(sender, me, effect.forward);
    } else if (effect.set || effect.cancel) {
      const { timer, key = 0, repeats, survives, message } = effect.set ?? effect.cancel;
      this.pending = this.pending.filter((p) => !(p.to === me && p.timer === timer && p.key === key));
      if (effect.set) {
        this.pending.push({ from: me, to: me, message, timer, key, repeats, survives });
      }
    } else if (effect.start) {
      await this.start(effect.start);
    } else if (effect.stop) {
      await this.stop(effect.stop);
    } else if (effect.fail !== undefined) {
      await this.crash(me);
    }
  }

  #send(from, to, message) {
    if (this.is(to, "running", "crashed") && !this.is(from, "isolated")) {
      this.pending.push({ from, to, message });
    }
  }

  async start(actor) {
    if (!this.hello.actors.includes(actor) || this.is(actor, "running", "isolated")) {
      return false;
    }
    const kept = this.is(actor, "crashed") && this.hello.disk;
    const disk = kept ? (this.states.get(actor) ?? null) : null;
    this.status.set(actor, "running");
    await this.#do(actor, actor, { do: "start", disk });
    return true;
  }

  async crash(actor) {
    if (!this.is(actor, "running", "isolated")) {
      return false;
    }
    this.status.set(actor, "crashed");
    this.seen.delete(actor);
    if (this.hello.restarts) {
      return this.restart(actor);
    }
    this.pending = this.pending.filter((p) => p.to !== actor || !p.timer || p.survives);
    return true;
  }

  async restart(actor) {
    this.pending = this.pending.filter((p) => p.to !== actor || !p.timer || p.survives);
    if (this.is(actor, "running", "isolated")) {
      this.status.set(actor, "crashed");
    }
    return this.start(actor);
  }

  async stop(actor) {
    this.status.set(actor, "stopped");
    this.seen.delete(actor);
    this.pending = this.pending.filter((p) => p.to !== actor);
    return true;
  }

  async isolate(actor) {
    return this.#change(actor, "running", "isolated");
  }

  async heal(actor) {
    return this.#change(actor, "isolated", "running");
  }

  #change(actor, before, after) {
    const fits = this.is(actor, before);
    if (fits) {
      this.status.set(actor, after);
    }
    return fits;
  }

  async deliver(step) {
    const { to } = step;
    if (!this.is(to, "running", "isolated")) {
      return false;
    }
    const state = this.states.get(to);
    if (step.kind === "deliver" && step.external) {
      const message = await this.#external(step);
      if (!message || this.is(to, "isolated")) {
        return false;
      }
      await this.#do(to, OUTSIDE, { do: "deliver", state, from: null, message });
      return true;
    }
    const entry = this.#find(step);
    if (!entry) {
      return false;
    }
    const from = entry.timer || entry.from === OUTSIDE ? null : entry.from;
    if (!entry.timer && !entry.copy) {
      const before = this.pending.slice(0, this.pending.indexOf(entry));
      // Of what comes from outside nothing is in order.
      const overtaken = before.filter((p) => from !== null && !p.timer && !p.copy && p.from === from && p.to === to);
      if (overtaken.length > 0 && this.network === "fifo") {
        return false;
      }
      if (this.network === "fifo-loss") {
        this.pending = this.pending.filter((p) => !overtaken.includes(p));
      }
    }
    this.pending = this.pending.filter((p) => p !== entry);
    if (entry.repeats) {
      this.pending.push(entry);
    }
    await this.#do(to, entry.from, { do: "deliver", state, from, message: entry.message });
    return true;
  }

  duplicate(step) {
    const entry = this.#find(step);
    if (!entry) {
      return false;
    }
    // A copy has no place in the order of its channel.
    this.pending.push({ ...entry, copy: true });
    return true;
  }

  async #external({ type = "", payload = "", fields = null }) {
    if (!this.hello.external) {
      return { type, payload, data: fields };
    }
    const answer = await this.child.ask({ do: "external", type, payload, fields });
    this.unknown = answer.unknown;
    return answer.message;
  }

  /** What the step means: the oldest of its content, or of its type where a mended model writes it otherwise. */
  #find(step) {
    const timer = step.kind === "timer";
    const alike = this.pending.filter(
      (p) =>
        p.to === step.to &&
        Boolean(p.timer) === timer &&
        (timer || p.from === step.from) &&
        p.message.type === (step.type ?? p.message.type),
    );
    const exact = alike.filter((p) => isText(p.message, step.payload));
    let all = exact.length > 0 ? exact : alike;
    if (step.timer?.name !== undefined) {
      // Which of several timers that carry the same.
      const named = all.filter((p) => (p.key ? `${p.timer}/${p.key}` : p.timer) === step.timer.name);
      all = named.length > 0 ? named : all;
    }
    return all.find((p) => Boolean(p.copy) === Boolean(step.copy)) ?? all[0];
  }

  async check() {
    if (this.crashText) {
      return [this.crashText];
    }
    const seen = {};
    for (const [actor, value] of this.seen) {
      if (this.is(actor, "running", "isolated")) {
        seen[actor] = value;
      }
    }
    const failed = [...this.status].filter(([, status]) => status === "crashed").map(([actor]) => actor);
    const answer = await this.child.ask({ do: "check", seen, failed: failed.sort(), memory: this.memory });
    this.memory = answer.memory ?? null;
    return (answer.violations ?? []).map((v) => v.fingerprint);
  }
}

/** The schedule that `DEMI_REPLAY` asks for, and the step to stop at. */
function replayed(schedule) {
  const wish = process.env.DEMI_REPLAY ?? "";
  const [, file, step] = /^(.*?)(?:@(\d+))?$/s.exec(wish);
  return [file ? readFileSync(file, "utf8") : schedule, step ? Number(step) : null];
}

/**
 * Has the model that `command` starts take the steps of a schedule, until what the schedule breaks is broken, or the end. What else breaks
 * on the way is warned of.
 *
 * `scenario` has the keys of the scenario file, `schedule` the text of a schedule file. Random numbers that a model asks for are others
 * than under demi-lineage.
 */
export async function follow(command, scenario, schedule, cwd = undefined) {
  const [text, stop] = replayed(schedule);
  const child = new Child(command, cwd);
  try {
    const asked = {};
    for (const key of ["members", "invariants"]) {
      if (scenario[key] !== undefined && scenario[key] !== null) {
        asked[key] = scenario[key];
      }
    }
    for (const key of ["switches", "settings", "payload"]) {
      asked[key] = scenario[key] ?? {};
    }
    const { hello } = await child.send({ hello: { protocol: "demi-model/1", scenario: asked } });
    if (hello.kind !== "pure") {
      throw new Error(`only pure models can be followed here; this one is ${hello.kind}`);
    }
    const [header, ...steps] = text.trim().split("\n").map((line) => JSON.parse(line));
    const wanted = header.violation ?? [];
    const others = new Map();
    if (stop !== null && !(stop >= 1 && stop <= steps.length)) {
      throw new Error(`DEMI_REPLAY: the schedule has the steps 1 to ${steps.length}`);
    }
    const world = new World(child, hello, scenario.network ?? "fifo");
    const acts = ["start", "crash", "restart", "stop", "isolate", "heal"];
    const passedOver = [];
    let taken = 0;
    for (const [at, step] of steps.entries()) {
      world.stops = at + 1 === stop;
      let made;
      if (acts.includes(step.kind) && step.external !== false) {
        made = await world[step.kind](step.to);
      } else if (step.kind === "duplicate") {
        made = world.duplicate(step);
      } else if (step.kind === "deliver" || step.kind === "timer") {
        made = await world.deliver(step);
      } else {
        continue;
      }
      if (!made) {
        if (step.external && step.kind === "deliver" && world.unknown) {
          throw new Error(`step ${at + 1}: ${world.unknown}; export the test anew`);
        }
        passedOver.push(at + 1);
        continue;
      }
      taken += Number(step.kind === "deliver" || step.kind === "timer");
      const violations = await world.check();
      const crashes = world.crashText && wanted.some((text) => text.startsWith("crash: "));
      if (crashes || violations.some((violation) => wanted.length === 0 || wanted.includes(violation))) {
        return { violations, step: at + 1, passedOver };
      }
      for (const violation of violations.filter((violation) => !others.has(violation))) {
        others.set(violation, at + 1);
      }
      if (world.crashText) {
        break;
      }
    }
    for (const [violation, step] of others) {
      console.warn(`step ${step} breaks something else: ${violation}`);
    }
    if (taken === 0) {
      throw new Error("the model takes no step of the schedule: its actors and messages have other names");
    }
    if (passedOver.length > 0) {
      const first = steps[passedOver[0] - 1];
      console.warn(
        `${passedOver.length} of ${steps.length} steps could not be taken, first step ${passedOver[0]}, ` +
          `${first.type ?? first.kind} at ${first.to}: that is so once the bug is mended. Where messages or actors only have ` +
          "other names now, the test checks nothing: export it anew",
      );
    }
    return { violations: [], step: steps.length, passedOver };
  } finally {
    child.close();
  }
}
