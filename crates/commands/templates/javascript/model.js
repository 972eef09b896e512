// A model to start from: clients ask a server for a lock, and the server lends it for a time.
//
// The switch `forgetful_lease` is a bug. When a lease ends, the server gives the lock to the next client, and the client that had it
// is not told. With the switch off the server asks for the lock back, and waits.
//
// Replace all of it by your own system.

import { Model, message, serve, violation } from "demi-model";

class Lock extends Model {
  knows = { switches: ["forgetful_lease"], settings: [], invariants: [] };

  configure({ members, switches }) {
    this.forgetfulLease = switches.forgetful_lease ?? false;
    this.actors = ["server"];
    for (let n = 1; n <= (members ?? 2); n += 1) {
      this.actors.push(`client-${n}`);
    }
  }

  start(actor, ctx) {
    if (actor === "server") {
      return { holder: null, waiting: [] };
    }
    ctx.setTimer("want", message("Want"));
    return { works: false };
  }

  deliver(actor, state, msg, ctx) {
    if (actor === "server") {
      this.serveLock(state, msg, ctx);
    } else {
      this.useLock(state, msg, ctx);
    }
  }

  serveLock(state, msg, ctx) {
    if (msg.type === "Acquire") {
      state.waiting.push(ctx.sender);
      if (state.holder === null) {
        this.lend(state, ctx);
      }
    } else if (msg.type === "LeaseEnds") {
      if (this.forgetfulLease) {
        this.lend(state, ctx);
      } else if (state.holder !== null) {
        ctx.send(state.holder, message("Revoke"));
      }
    } else if (msg.type === "Release" && ctx.sender === state.holder) {
      this.lend(state, ctx);
    }
  }

  lend(state, ctx) {
    state.holder = state.waiting.shift() ?? null;
    if (state.holder !== null) {
      ctx.send(state.holder, message("Granted"));
      ctx.setTimer("lease", message("LeaseEnds"));
    }
  }

  useLock(state, msg, ctx) {
    if (msg.type === "Want") {
      ctx.send("server", message("Acquire"));
    } else if (msg.type === "Granted") {
      state.works = true;
      ctx.setTimer("work", message("Done"));
    } else if (["Done", "Revoke"].includes(msg.type) && state.works) {
      state.works = false;
      ctx.cancelTimer("work");
      ctx.send("server", message("Release"));
      ctx.setTimer("want", message("Want"));
    }
  }

  seen(_actor, state) {
    return state.works ?? false;
  }

  check(seen) {
    const working = Object.keys(seen).filter((actor) => seen[actor]);
    return { violations: working.length > 1 ? [violation("MutualExclusion", working)] : [] };
  }
}

serve(new Lock());
