"""Every controller and what is known of it: source, state, parameters, and the verdict on each requirement.

Nothing here is typed by hand: names, sources and parameters come from the engine, the rest from driving the controller.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from millpond import _engine
from millpond.controllers import series
from millpond.controllers.own import OwnControllers, is_own, short, watched
from millpond.controllers.peer import SECOND, Make, Peer
from millpond.controllers.requirements import Judgement, judge
from millpond.engine import presets
from millpond.errors import UsageError, unknown

#: The controller beside which others are drawn.
STANDARD = "rfc7252"
#: The numbers that a controller can show, in words.
_NUMBERS = {
    "rto_us": "timeout",
    "srtt_us": "smoothed RTT",
    "rttvar_us": "RTT variation",
    "weak_srtt_us": "weak smoothed RTT",
    "weak_rttvar_us": "weak RTT variation",
    "carried_us": "persisted backoff",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a controller."""

    name: str
    value: str
    """In force: the default, unless it was set."""
    legal: str


@dataclass(frozen=True)
class Entry:
    """One controller of the catalogue."""

    name: str
    source: str
    summary: str
    readings: tuple[str, ...]
    state_bytes: int | None
    """Bytes for each peer, parameters included; none for a user's controller."""
    keeps: tuple[str, ...]
    """The numbers it shows that change as it learns."""
    naming: str
    """How it wishes copies to be told apart; `none` if it does not."""
    confirmable_every: int
    """Among so many non-confirmable messages it wishes one to be confirmable; 0: no wish."""
    parameters: tuple[Parameter, ...]
    judgements: tuple[Judgement, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry as plain values."""
        return {
            "name": self.name,
            "source": self.source,
            "summary": self.summary,
            "readings": list(self.readings),
            "state_bytes": self.state_bytes,
            "keeps": list(self.keeps),
            "naming": self.naming,
            "confirmable_every": self.confirmable_every,
            "parameters": [{"name": p.name, "value": p.value, "legal": p.legal} for p in self.parameters],
            "requirements": [
                {"id": j.requirement.id, "verdict": j.verdict, "evidence": j.evidence} for j in self.judgements
            ],
        }


def names() -> list[str]:
    """The built-in controllers, in the engine's order."""
    return [preset.name for preset in presets()]


@dataclass(frozen=True)
class Choice:
    """A controller by name, with settings: a built-in one, or a user's as `file.py:Class`."""

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name and what was set."""
        told = ", ".join(f"{name} = {value}" for name, value in self.settings.items())
        return f"{short(self.name)}{f' with {told}' if told else ''}"

    def maker(self) -> Make:
        """What makes it, tried once. Raises `UsageError` with one line: the place and the fix."""
        with in_one_line():
            if is_own(self.name):
                make = watched(self.name, self.settings)
            else:
                known = names()
                if self.name not in known:
                    told = unknown("controller", self.name, known)
                    raise UsageError(f"{told}; one of your own is named mine.py:Mine")
                make = partial(_engine.Controller, self.name, self.settings)
            make()
        return make

    def beside_the_standard(self) -> dict[str, Make]:
        """What a drawing shows: this controller, and that of RFC 7252."""
        return {self.title: self.maker(), STANDARD: Choice(STANDARD).maker()}


@contextmanager
def in_one_line() -> Iterator[None]:
    """A user's controller may fail in any call: that is told like wrong usage."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def waits(makes: Mapping[str, Make]) -> dict[str, Any]:
    """The numbers of the drawings as plain values, by controller."""
    return {
        name: {
            "unanswered": [asdict(one) for one in series.unanswered(make)],
            "after_answers": [asdict(one) for one in series.aftermaths(make)],
            "changing_path": [asdict(one) for one in series.trace(make)],
        }
        for name, make in makes.items()
    }


def entry(choice: Choice) -> Entry:
    """One controller, judged. Raises `UsageError` with one line if a user's fails."""
    make = choice.maker()
    with in_one_line():
        made = make()
        return Entry(
            name=choice.title,
            source=made.source,
            summary=made.summary or _told_by_itself(choice.name),
            readings=tuple(made.readings),
            state_bytes=made.state_bytes,
            keeps=keeps(make),
            naming=made.wishes().naming,
            confirmable_every=made.wishes().confirmable_every,
            parameters=tuple(Parameter(*row) for row in made.settings),
            judgements=judge(make),
        )


def entries() -> list[Entry]:
    """All built-in controllers, judged."""
    return [entry(Choice(name)) for name in names()]


def _told_by_itself(name: str) -> str:
    """The first line of the text of a user's class."""
    text = inspect.getdoc(OwnControllers().find(name).make) or ""
    return text.partition("\n")[0]


def keeps(make: Make) -> tuple[str, ...]:
    """The numbers of its view that change while it is driven through answers of every kind, and a slow timer."""
    peer = Peer(make)
    seen: dict[str, set[int | None]] = {name: set() for name in _NUMBERS}

    slow = False

    def look() -> None:
        view = peer.controller.view()
        for name, values in seen.items():
            values.add(getattr(view, name))

    look()
    for lost in (0, 0, 1, 2, 2, 3, 0):
        peer.ask(SECOND // 2, lost, named=False)
        look()
        slow |= any(wait.reason == "slow" for wait in peer.series(4))
    peer.fail()
    look()
    changing = [words for name, words in _NUMBERS.items() if len(seen[name]) > 1]
    return (*changing, *(["slow timeout"] if slow else []))


# ----------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Family:
    """Controllers with the same parameters."""

    members: tuple[str, ...]
    rows: tuple[tuple[str, str, str, str], ...]
    """Name, what it takes, the usual default, and who has another one."""


def families(found: Sequence[Entry]) -> list[Family]:
    """The controllers grouped by the parameters they have."""
    groups: dict[tuple[tuple[str, str], ...], list[Entry]] = {}
    for one in found:
        groups.setdefault(tuple((p.name, p.legal) for p in one.parameters), []).append(one)
    return [_family(members) for members in groups.values()]


def _family(members: Sequence[Entry]) -> Family:
    rows = []
    for place, parameter in enumerate(members[0].parameters):
        defaults = {one.name: one.parameters[place].value for one in members}
        usual = max(defaults.values(), key=list(defaults.values()).count)
        others: dict[str, list[str]] = {}
        for name, default in defaults.items():
            if default != usual:
                others.setdefault(default, []).append(name)
        but = "; ".join(f"{default}: {', '.join(having)}" for default, having in others.items())
        rows.append((parameter.name, parameter.legal, usual, but))
    return Family(tuple(one.name for one in members), tuple(rows))


def state(one: Entry) -> str:
    """What it keeps, in words."""
    return ", ".join(one.keeps) or ("nothing" if one.state_bytes is not None else "nothing that it shows")
