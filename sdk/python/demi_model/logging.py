"""Event records from a running program: what each actor did, in its own order, one JSON object a line."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import os
import threading
import time
from typing import Any, Callable, Collection, Dict, Optional, Sequence, TypeVar


OUTSIDE = "deadLetters"
"""Who sends, in records, what comes from outside the system."""


class EventLog:
    """The log of one actor (a process, usually).

    Call :meth:`start` first, :meth:`send` just before a message leaves, and :meth:`receive` before it is handled. The
    id that :meth:`send` returns travels with the message; it is what joins the two. Safe to use from several threads
    and tasks. Each start of the program is an incarnation of its own, numbered by the clock.
    """

    def __init__(self, path: str, actor: str, incarnation: Optional[int] = None) -> None:
        self.actor = actor
        self.incarnation = int(time.time()) if incarnation is None else incarnation
        self._seq = 0
        self._sent = 0
        self._lock = threading.Lock()
        self._file = open(os.fspath(path), "a", encoding="utf-8")

    def event(self, kind: str, **fields: Any) -> None:
        """Writes a record of that kind; fields that are ``None`` are left out."""
        with self._lock:
            self._seq += 1
            record: Dict[str, Any] = {"actor": self.actor, "seq": self._seq, "kind": kind}
            if self.incarnation:
                record["incarnation"] = self.incarnation
            record.update((key, value) for key, value in fields.items() if value is not None)
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def start(self) -> None:
        """The actor starts."""
        self.event("start")

    def send(self, to: str, type: str, payload: Optional[str] = None, fields: Any = None) -> str:
        """A message leaves; gives the id that must travel with it."""
        with self._lock:
            self._sent += 1
            msg_id = "%s-%d-%d" % (self.actor, self.incarnation, self._sent)
        payload = type if payload is None else payload
        self.event("send", msg_id=msg_id, **{"from": self.actor}, to=to, type=type, payload=payload, fields=fields)
        return msg_id

    def receive(
        self, sender: Optional[str], msg_id: Optional[str], type: str, payload: Optional[str] = None, fields: Any = None
    ) -> None:
        """A message arrived and is about to be handled; ``sender`` is ``None`` for one from outside the logged system."""
        payload = type if payload is None else payload
        came = {"from": OUTSIDE, "external": True} if sender is None else {"from": sender}
        self.event("receive", msg_id=msg_id, **came, to=self.actor, type=type, payload=payload, fields=fields)

    def state(self, state: Any) -> None:
        """The actor's variables after what it just did."""
        self.event("state", state=state)

    def violation(self, fingerprint: str, affected: Sequence[str] = ()) -> None:
        """The program noticed that an invariant is broken, and whose states break it.

        ``build`` keeps what led to the states of ``affected``; without them it must be told.
        """
        fields = {"fingerprints": [fingerprint], "affected": sorted(affected)}
        self.event("violation", type=fingerprint.split(":")[0], fields=fields)

    def close(self) -> None:
        """Ends the log."""
        self._file.close()


Handler = TypeVar("Handler", bound=Callable[..., Any])


def tells_state(
    log: str = "log", only: Optional[Collection[str]] = None, without: Collection[str] = ()
) -> Callable[[Handler], Handler]:
    """Decorates a handler (a method, ``async`` or not): when it ends, the attributes of its object are written as a state record.

    ``log`` names the attribute with the :class:`EventLog`. Attributes whose names begin with ``_`` and those in ``without`` (secrets, for
    instance) are left out; ``only`` names the ones that are meant. What JSON has no form for is left out too; sets are sorted. A state that
    is as the last one is not written again. A handler that raises tells its state as well: what it changed is changed. ::

        class Replica:
            def __init__(self, path: str) -> None:
                self.log = EventLog(path, "replica-1")
                self.term = 0

            @tells_state(without=["password"])
            def on_vote(self, message): ...
    """

    def decorate(handler: Handler) -> Handler:
        def tell(self: Any) -> None:
            names = only if only is not None else [n for n in vars(self) if not n.startswith("_") and n != log]
            found = {n: _plain(getattr(self, n)) for n in names if n not in without and hasattr(self, n)}
            state = {name: value for name, value in found.items() if value is not _NOTHING}
            to: EventLog = getattr(self, log)
            if state != to.__dict__.get("_told"):
                to.__dict__["_told"] = state
                to.state(state)

        if inspect.iscoroutinefunction(handler):

            @functools.wraps(handler)
            async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return await handler(self, *args, **kwargs)
                finally:
                    tell(self)

            return awaited  # type: ignore[return-value]

        @functools.wraps(handler)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return handler(self, *args, **kwargs)
            finally:
                tell(self)

        return called  # type: ignore[return-value]

    return decorate


_NOTHING = object()


def _plain(value: Any) -> Any:
    """The value as JSON has it, or ``_NOTHING``."""
    if value is None or isinstance(value, (bool, int, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else _NOTHING
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        members = {str(_plain(key)): _plain(inner) for key, inner in value.items()}
        return {name: inner for name, inner in members.items() if inner is not _NOTHING}
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    if isinstance(value, (list, tuple)):
        inner = [_plain(element) for element in value]
        return [element for element in inner if element is not _NOTHING]
    return _NOTHING
