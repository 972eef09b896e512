// The model of `speed.rs` in JavaScript: a lock service with leases, whose storage has no fencing.

import { Model, serve, violation } from "../../../sdk/js/index.js";

const message = (type, token = 0, content = 0) => ({ type, payload: `${type}(${token},${content})`, data: [token, content] });

class Lease extends Model {
  actors = ["lock", "storage", "client-1", "client-2"];

  start() {
    return { token: 0, held: false, queue: [], content: 0, highest: 0, overtaken: false, waiting: 0, busy: false };
  }

  grant(state, ctx) {
    state.held = false;
    ctx.cancelTimer("lease");
    if (state.queue.length > 0) {
      state.held = true;
      state.token += 1;
      ctx.send(state.queue.shift(), message("Granted", state.token));
      ctx.setTimer("lease", message("Expire"));
    }
  }

  acquire(state, ctx) {
    state.busy = state.waiting > 0;
    if (state.busy) {
      state.waiting -= 1;
      ctx.send("lock", message("Acquire"));
    }
  }

  deliver(actor, state, msg, ctx) {
    const [token, content] = msg.data;
    switch (msg.type) {
      case "Add":
        state.waiting += 1;
        if (!state.busy) this.acquire(state, ctx);
        break;
      case "Acquire":
        state.queue.push(ctx.sender);
        if (!state.held) this.grant(state, ctx);
        break;
      case "Release":
        if (state.held && token === state.token) this.grant(state, ctx);
        break;
      case "Expire":
        this.grant(state, ctx);
        break;
      case "Granted":
        ctx.send("storage", message("Read", token));
        break;
      case "Read":
        state.highest = Math.max(state.highest, token);
        ctx.send(ctx.sender, message("Content", token, state.content));
        break;
      case "Content":
        ctx.send("storage", message("Write", token, content + 1));
        break;
      case "Write":
        state.overtaken ||= token < state.highest;
        state.highest = Math.max(state.highest, token);
        state.content = content;
        ctx.send(ctx.sender, message("Written", token));
        break;
      case "Written":
        ctx.send("lock", message("Release", token));
        this.acquire(state, ctx);
        break;
    }
  }

  seen(_actor, state) {
    return state.overtaken;
  }

  check(seen) {
    return { violations: seen.storage ? [violation("LateWrite", ["storage"])] : [] };
  }

  external(type) {
    return message(type);
  }
}

serve(new Lease());
