"""What a model's author writes."""

from __future__ import annotations

import random as _random
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple


class Message(NamedTuple):
    """A message, or what a timer carries."""

    type: str
    """Type tag, as the system logs it."""
    data: Any = None
    """Any JSON value."""
    payload: Optional[str] = None
    """Full content, as the system logs it; made of type and data where absent."""


def message(type: str, data: Any = None, payload: Optional[str] = None) -> Message:
    """A message of that type."""
    return Message(type, data, payload)


class Violation(NamedTuple):
    """A broken invariant."""

    fingerprint: str
    """The invariant's name; more after a colon, such as the actors, tells violations apart."""
    affected: Sequence[str] = ()
    """The actors whose state breaks it."""


def _wire(msg: Message) -> Dict[str, Any]:
    out: Dict[str, Any] = {"type": msg.type, "data": msg.data}
    if msg.payload is not None:
        out["payload"] = msg.payload
    return out


class Ctx:
    """What a handler may do besides changing its state. Everything happens in order when the handler ends."""

    def __init__(self, actor: str, sender: Optional[str], now: Optional[float], random: int) -> None:
        self.me = actor
        """The actor that handles."""
        self.sender = sender
        """The sender of the message; ``None`` for timers and messages from outside."""
        self.now = now
        """The present time in seconds; ``None`` where the schedule does not tell it."""
        self.random = _random.Random(random)
        """Random numbers that are the same whenever the same question is asked. Use no others."""
        self.effects: List[Dict[str, Any]] = []

    def send(self, to: Optional[str], msg: Message, name: Optional[str] = None) -> None:
        """Sends a message; ``to=None`` leaves the system. ``name`` sends it in another actor's name."""
        wish: Dict[str, Any] = {"to": to, "message": _wire(msg)}
        if name is not None:
            wish["as"] = name
        self.effects.append({"send": wish})

    def reply(self, msg: Message) -> None:
        """Sends a message to the sender."""
        self.send(self.sender, msg)

    def forward(self, msg: Message) -> None:
        """Puts a message back into the own inbox, under the name of its sender."""
        self.effects.append({"forward": _wire(msg)})

    def set_timer(
        self, timer: str, msg: Message, key: int = 0, repeats: bool = False, survives: bool = False
    ) -> None:
        """Arms a timer; a live one of that name and key is cancelled first."""
        wish = {"timer": timer, "key": key, "repeats": repeats, "survives": survives, "message": _wire(msg)}
        self.effects.append({"set": wish})

    def cancel_timer(self, timer: str, key: int = 0) -> None:
        """Cancels a timer, if it is live."""
        self.effects.append({"cancel": {"timer": timer, "key": key}})

    def start_actor(self, actor: str) -> None:
        """Brings an actor into existence."""
        self.effects.append({"start": actor})

    def stop_actor(self, actor: str) -> None:
        """Ends an actor for good."""
        self.effects.append({"stop": actor})

    def fail(self, why: str) -> None:
        """The handler fails: what it sent so far stays sent, and the actor is gone until it restarts."""
        self.effects.append({"fail": why})


class Model:
    """A system of actors. Override what you need; :meth:`start` and :meth:`deliver` are needed always.

    A state is any JSON value, or what :meth:`dump` makes one of. Nothing may be kept in ``self`` between calls: the
    same question must always get the same answer.
    """

    actors: Sequence[str] = ()
    """The actors, in the order in which they start. :meth:`configure` may set it."""
    bootstrap: Sequence[Tuple[str, Message]] = ()
    """Messages from outside that every run of ``fuzz`` begins with: receiver and message."""
    masks: Sequence[Mapping[str, str]] = ()
    """Rewritings of payloads before they are compared: ``type``, ``pattern`` and ``replace``."""
    once: Sequence[str] = ()
    """Types of messages that are delivered once at most, even where the network repeats messages."""
    knows: Mapping[str, Sequence[str]] = {}
    """The names of ``switches``, ``settings`` and ``invariants`` that the model knows. Others in a scenario are errors; what is not
    listed here is not looked at."""
    disk = False
    """Whether :meth:`start` gets the state in which the actor failed."""
    restarts = False
    """Whether a failed actor restarts by itself at once."""

    def configure(self, scenario: Mapping[str, Any]) -> None:
        """Reads the scenario: ``members``, ``switches``, ``settings``, ``invariants``, ``payload``."""

    def start(self, actor: str, ctx: Ctx, disk: Any = None) -> Any:
        """What an actor does when it starts; returns its state."""
        raise NotImplementedError

    def deliver(self, actor: str, state: Any, msg: Message, ctx: Ctx) -> Any:
        """Handles one message or timer to the end; returns the new state, or ``None`` if ``state`` was changed in place."""
        raise NotImplementedError

    def seen(self, actor: str, state: Any) -> Any:
        """What invariants read of a state. The less it is, the fewer questions are asked. By default all of it."""
        return state

    def waits_for(self, actor: str, state: Any) -> Sequence[str]:
        """For whom an actor waits in a state before it takes anything else; for scenarios with ``deadlock = true``."""
        return ()

    def check(self, seen: Mapping[str, Any], failed: Sequence[str], memory: Any) -> Tuple[Sequence[Violation], Any]:
        """The invariants: what is broken, and what to remember until the next check of the same run.

        ``seen`` has what :meth:`seen` returned for each actor that answers. ``memory`` is ``None`` at first.
        """
        return [], None

    def client(self, n: int, random: _random.Random) -> Optional[Tuple[str, Message]]:
        """The ``n``-th random message from outside, for ``fuzz``: receiver and message."""
        return None

    def external(self, type: str, payload: str, fields: Any) -> Optional[Message]:
        """Makes a message from outside of what a log tells of it. By default with the fields as its data."""
        return Message(type, fields, payload)

    def dump(self, state: Any) -> Any:
        """A state as a JSON value."""
        return state

    def load(self, actor: str, value: Any) -> Any:
        """The state behind a JSON value; a value of its own, that a handler may change."""
        return value
