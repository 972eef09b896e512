"""Models for demi-lineage in Python.

A model says what each actor of a system does with one message. Write a class, and run it::

    from demi_model import Model, message, serve

    class Lock(Model):
        actors = ["server", "client-1", "client-2"]

        def start(self, actor, ctx):
            ctx.send("server", message("Acquire", actor))
            return {"holds": False}
        ...

    if __name__ == "__main__":
        serve(Lock())

A scenario names the program: ``model = { command = ["python3", "lock.py"] }``.
"""

from .logging import EventLog, tells_state
from .model import Ctx, Message, Model, Violation, message
from .protocol import PROTOCOL, serve

__all__ = ["PROTOCOL", "Ctx", "EventLog", "Message", "Model", "Violation", "message", "serve", "tells_state"]
