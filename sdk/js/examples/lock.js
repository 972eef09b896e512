// A lock service that leases its lock. The bug: the server gives the lock away when the lease ends, and the client that held it does
// not know.
//
// Run it with `demi-lineage fuzz --scenario sdk/js/examples/lock.toml --seed 1 --out found`.

import { Model, message, serve, violation } from "../index.js";

class Lock extends Model {
  actors = ["server", "client-1", "client-2"];

  start(actor, ctx) {
    if (actor === "server") {
      return { holder: null, waiting: [] };
    }
    ctx.setTimer("want", message("Want"));
    return { holds: false };
  }

  deliver(actor, state, msg, ctx) {
    if (actor === "server") {
      this.lend(state, msg, ctx);
    } else if (msg.type === "Want") {
      ctx.send("server", message("Acquire"));
    } else if (msg.type === "Granted") {
      state.holds = true;
      ctx.setTimer("work", message("Done"));
    } else if (msg.type === "Done") {
      state.holds = false;
      ctx.send("server", message("Release"));
    }
  }

  lend(state, msg, ctx) {
    if (msg.type === "Acquire") {
      state.waiting.push(ctx.sender);
    } else if (msg.type === "LeaseEnds" || (msg.type === "Release" && ctx.sender === state.holder)) {
      state.holder = null;
    }
    if (state.holder === null && state.waiting.length > 0) {
      state.holder = state.waiting.shift();
      ctx.send(state.holder, message("Granted"));
      ctx.setTimer("lease", message("LeaseEnds"));
    }
  }

  seen(_actor, state) {
    return state.holds ?? false;
  }

  check(seen) {
    const holders = Object.keys(seen).filter((actor) => seen[actor]);
    return { violations: holders.length > 1 ? [violation("MutualExclusion", holders)] : [] };
  }
}

serve(new Lock());
