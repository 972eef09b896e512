/** Event records from a running program: what each actor did, in its own order, one JSON object a line. */

import { closeSync, openSync, writeSync } from "node:fs";

/** Who sends, in records, what comes from outside the system. */
const OUTSIDE = "deadLetters";

/**
 * The log of one actor, usually a process.
 *
 * Call `start` first, `send` just before a message leaves, and `receive` before it is handled. The id that `send` returns travels with
 * the message; it is what joins the two. Each start of the program is an incarnation of its own, numbered by the clock.
 */
export class EventLog {
  #file;
  #seq = 0;
  #sent = 0;

  constructor(path, actor, incarnation = Math.floor(Date.now() / 1000)) {
    this.actor = actor;
    this.incarnation = incarnation;
    this.#file = openSync(path, "a");
  }

  /** Writes a record of that kind; fields that are `null` or absent are left out. */
  event(kind, fields = {}) {
    this.#seq += 1;
    const record = { actor: this.actor, seq: this.#seq, kind };
    if (this.incarnation) {
      record.incarnation = this.incarnation;
    }
    for (const [key, value] of Object.entries(fields)) {
      if (value !== undefined && value !== null) {
        record[key] = value;
      }
    }
    writeSync(this.#file, `${JSON.stringify(record)}\n`);
  }

  /** The actor starts. */
  start() {
    this.event("start");
  }

  /** A message leaves; gives the id that must travel with it. */
  send(to, type, payload = type, fields = null) {
    this.#sent += 1;
    const id = `${this.actor}-${this.incarnation}-${this.#sent}`;
    this.event("send", { msg_id: id, from: this.actor, to, type, payload, fields });
    return id;
  }

  /** A message arrived and is about to be handled; `sender` is `null` for one from outside the logged system. */
  receive(sender, id, type, payload = type, fields = null) {
    const came = sender === null ? { from: OUTSIDE, external: true } : { from: sender };
    this.event("receive", { msg_id: id, ...came, to: this.actor, type, payload, fields });
  }

  /** The actor's variables after what it just did. */
  state(state) {
    this.event("state", { state });
  }

  /** The program noticed that an invariant is broken, and whose states break it: `build` keeps what led to these. */
  violation(fingerprint, affected = []) {
    const fields = { fingerprints: [fingerprint], affected: [...affected].sort() };
    this.event("violation", { type: fingerprint.split(":")[0], fields });
  }

  /** Ends the log. */
  close() {
    closeSync(this.#file);
  }
}
