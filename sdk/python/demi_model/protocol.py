"""The protocol ``demi-model/1`` over standard input and output, or a Unix socket."""

from __future__ import annotations

import difflib
import json
import os
import pdb
import random
import socket
import sys
import traceback
from typing import IO, Any, Dict

from .model import Ctx, Message, Model, _wire

PROTOCOL = "demi-model/1"


def _message(wire: Dict[str, Any]) -> Message:
    return Message(wire["type"], wire.get("data"), wire.get("payload"))


def _known(model: Model, scenario: Dict[str, Any]) -> None:
    """A name that the model does not know is a slip of the pen."""
    for what, names in model.knows.items():
        for name in scenario.get(what) or ():
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = "did you mean '%s'?" % near[0] if near else "there are: %s" % (", ".join(names) or "none")
                raise ValueError("%s: the model does not know '%s'; %s" % (what, name, hint))


def hello(model: Model, request: Dict[str, Any]) -> Dict[str, Any]:
    """The answer to ``hello``."""
    _known(model, request["scenario"])
    model.configure(request["scenario"])
    kind = type(model)
    said = {
        "protocol": PROTOCOL,
        "kind": "pure",
        "actors": list(model.actors),
        "bootstrap": [{"to": to, "message": _wire(msg)} for to, msg in model.bootstrap],
        "clients": kind.client is not Model.client,
        "external": kind.external is not Model.external,
        "disk": model.disk,
        "restarts": model.restarts,
        "masks": [dict(mask) for mask in model.masks],
        "once": list(model.once),
    }
    if not said["actors"]:
        raise ValueError("the model names no actors")
    return said


def _go_on() -> None:
    """Does nothing."""


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def _stop() -> None:
    """Stops in a debugger in front of the handler: type ``s`` to go into it.

    Standard input belongs to the protocol, so pdb talks to the terminal. ``PYTHONBREAKPOINT`` names another debugger.
    """
    if os.environ.get("PYTHONBREAKPOINT"):
        breakpoint()
        return
    if not _has_terminal():
        raise RuntimeError("DEMI_REPLAY stops in pdb, which needs a terminal; PYTHONBREAKPOINT names another debugger")
    # They stay open: the debugger goes on with them after this function has returned.
    keyboard, screen = open("/dev/tty", encoding="utf-8"), open("/dev/tty", "w", encoding="utf-8")
    pdb.Pdb(stdin=keyboard, stdout=screen).set_trace(sys._getframe(1))


def _raised(error: Exception) -> Dict[str, Any]:
    """The answer where a handler raised: what, and where in the model's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(os.path.abspath(__file__))
    library = os.path.dirname(os.path.abspath(os.__file__))
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith("<")
        and os.path.dirname(os.path.abspath(frame.filename)) != ours
        and not os.path.abspath(frame.filename).startswith(library + os.sep)
    ]
    last = (own or frames)[-1]
    said = str(error)
    text = "%s: %s" % (type(error).__name__, said) if said else type(error).__name__
    return {"raised": {"text": text, "at": "%s:%s" % (os.path.basename(last.filename), last.lineno)}}


def answer(model: Model, question: Dict[str, Any]) -> Dict[str, Any]:
    """The answer to one question."""
    what = question["do"]
    if what in ("start", "deliver"):
        actor = question["actor"]
        ctx = Ctx(actor, question.get("from"), question.get("now"), question["random"])
        stop = _stop if question.get("stop") else _go_on
        if what == "start":
            disk = question.get("disk")
            disk = None if disk is None else model.load(actor, disk)
            stop()
            try:
                state = model.start(actor, ctx, disk)
            except Exception as error:
                return _raised(error)
            if state is None:
                raise ValueError("start of %s returned no state" % actor)
        else:
            state, msg = model.load(actor, question["state"]), _message(question["message"])
            stop()
            try:
                after = model.deliver(actor, state, msg, ctx)
            except Exception as error:
                return _raised(error)
            state = state if after is None else after
        told: Dict[str, Any] = {"state": model.dump(state), "seen": model.seen(actor, state), "effects": ctx.effects}
        waits_for = list(model.waits_for(actor, state))
        return {**told, "waits_for": waits_for} if waits_for else told
    if what == "check":
        broken, memory = model.check(question["seen"], question["failed"], question["memory"])
        return {
            "violations": [{"fingerprint": v.fingerprint, "affected": sorted(v.affected)} for v in broken],
            "memory": memory,
        }
    if what == "client":
        proposal = model.client(question["n"], random.Random(question["random"]))
        if proposal is None:
            return {}
        return {"proposal": {"to": proposal[0], "message": _wire(proposal[1])}}
    if what == "external":
        made = model.external(question["type"], question["payload"], question["fields"])
        if made is None:
            return {"unknown": "the model does not know the message '%s'" % question["payload"]}
        return {"message": _wire(made)}
    raise ValueError("the model knows no request '%s'" % what)


def run(model: Model, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until their end."""
    for line in requests:
        request = json.loads(line)
        reply: Dict[str, Any] = {"id": request["id"]}
        try:
            if "hello" in request:
                reply["hello"] = hello(model, request["hello"])
            else:
                reply["answers"] = [answer(model, question) for question in request["requests"]]
            text = json.dumps(reply, allow_nan=False)
        except Exception as error:
            hint = ""
            if isinstance(error, TypeError) and "JSON serializable" in str(error):
                hint = "\na state or message has what JSON has not; a set becomes a sorted list, or give the model 'dump' and 'load'"
            text = json.dumps({"id": request["id"], "error": traceback.format_exc(limit=-4).strip() + hint})
        answers.write(text + "\n")
        answers.flush()


def serve(model: Model, path: str = "") -> None:
    """Runs the model: over standard input and output, or on the Unix socket ``path``, one connection at a time.

    What the model prints goes to standard error, because standard output belongs to the protocol.
    """
    if not path:
        answers, sys.stdout = sys.stdout, sys.stderr
        run(model, sys.stdin, answers)
        return
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("r") as requests, connection.makefile("w") as answers:
                run(model, requests, answers)
