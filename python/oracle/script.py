"""Call lists: what is called, and what the oracle expects of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from oracle.approx import HALF, LONGEST, Approx, Avoid, OutOfReach
from oracle.calls import Algorithm, Class, Cx, End, Exchange, Fate, Feedback, Kind, Message, Named, Sample, View
from oracle.presets import Settings, build

T = TypeVar("T")


@dataclass
class Case:
    """A named list of calls, in the lines of the files."""

    name: str
    preset: str
    settings: Settings
    calls: list[str] = field(default_factory=list)


@dataclass
class Open:
    """An exchange under way."""

    exchange: Exchange
    sent: list[int]


class Script:
    """Makes one case: calls the oracle and writes down what it answered.

    A call that raises `Avoid` leaves no trace.
    """

    def __init__(self, name: str, preset: str, settings: Settings | None = None) -> None:
        self.case = Case(name, preset, settings or {})
        self.algorithm: Algorithm[Any] = build(preset, settings)
        self.now = 0
        self.exchanges: dict[int, Open] = {}
        self.opens: int | None = None
        """What `admit` last answered: the time, if it named one."""
        self._next = 0

    # The clock.

    def pass_time(self, micros: int) -> None:
        """Time passes."""
        self.now += micros

    def deadline(self, exchange: int) -> int:
        """When the wait in force runs out, to the nearest microsecond."""
        under_way = self.exchanges[exchange]
        return under_way.sent[-1] + _nearest(under_way.exchange.current)

    # The calls.

    def start(self, chance: int = 0, *, opened: int | None = None, waiting: int = 0, length: int = 40) -> int:
        """The first copy leaves. Returns the number of the exchange."""
        number = self._next
        cx = Cx(self.now, chance, len(self.exchanges) + 1 if opened is None else opened, waiting)
        exchange = self._ask(lambda: _fitting(self.algorithm.start(cx)))
        self._next += 1
        self.exchanges[number] = Open(exchange, [self.now])
        then: dict[str, object] = {"then": "abandon"} if exchange.abandons else {}
        self._write("start", number, cx, {"len": length}, _wait(exchange.first), {"reason": exchange.reason}, then)
        return number

    def timeout(self, exchange: int, chance: int = 0, *, opened: int | None = None) -> None:
        """A further copy leaves now."""
        under_way = self.exchanges[exchange]
        cx = self._cx(chance, opened)

        def call() -> tuple[Approx, str]:
            wait, reason = self.algorithm.timeout(self.exchanges[exchange].exchange, cx)
            _fitting(self.exchanges[exchange].exchange)
            return wait, reason

        wait, reason = self._ask(call)
        under_way = self.exchanges[exchange]
        under_way.sent.append(self.now)
        self._write("timeout", exchange, cx, _wait(wait), {"reason": reason})

    def expire(self, exchange: int, chance: int = 0, times: int = 1) -> None:
        """The wait runs out and a further copy leaves, so many times."""
        for _ in range(times):
            self.now = max(self.now, self.deadline(exchange))
            self.timeout(exchange, chance)

    def reply(
        self,
        exchange: int,
        *,
        named: Named = None,
        kind: Kind = "piggybacked",
        chance: int = 0,
        opened: int | None = None,
    ) -> None:
        """An answer comes now."""
        sent = self.exchanges[exchange].sent
        if self.now - sent[0] > LONGEST:
            raise OutOfReach
        since_named = self.now - sent[named] if isinstance(named, int) else None
        sample = Sample(kind, self.now - sent[0], self.now - sent[-1], len(sent) - 1, named, since_named)
        cx = self._cx(chance, opened)
        view = self._ask(lambda: self._end_with(lambda x: self.algorithm.reply(x, sample, cx), exchange))
        evidence: dict[str, object] = {
            "kind": kind,
            "since_first": sample.since_first,
            "since_last": sample.since_last,
            "retransmissions": sample.retransmissions,
            "named": named,
            "since_named": since_named,
        }
        self._write("reply", exchange, cx, evidence, view)

    def end(self, exchange: int, why: End, chance: int = 0, *, opened: int | None = None) -> None:
        """The exchange ends now without an answer."""
        cx = self._cx(chance, opened)
        view = self._ask(lambda: self._end_with(lambda x: self.algorithm.end(x, why, cx), exchange))
        self._write("end", exchange, cx, {"why": why}, view)

    def plain(self, length: int, chance: int = 0, *, waiting: int = 0) -> None:
        """A message that nobody acknowledges leaves now."""
        cx = Cx(self.now, chance, len(self.exchanges), waiting)
        self._ask(lambda: self.algorithm.plain(length, cx))
        self._write("plain", None, cx, {"len": length})

    def feedback(
        self, number: int, left: int, fate: Fate = "answered", message: Message = "request", *, waiting: int = 0
    ) -> None:
        """It becomes known now what happened to a message that nobody acknowledges, and that left at `left`."""
        cx = Cx(self.now, 0, len(self.exchanges), waiting)
        feedback = Feedback(message, fate, self.now - left, number)
        self._ask(lambda: self.algorithm.feedback(feedback, cx))
        told: dict[str, object] = {"message": message, "fate": fate, "since": feedback.since, "len": 40}
        told |= {"reply_len": 4 if fate == "answered" else 0, "number": number}
        self._write("feedback", None, cx, told, {"view": _view(self.algorithm.view())})

    def admit(self, kind: Class = "plain", length: int = 40, chance: int = 0, *, opened: int | None = None) -> bool:
        """Asks whether a message may leave now, and returns the answer."""
        cx = self._cx(chance, len(self.exchanges) if opened is None else opened)
        # Asking changes nothing.
        at = copy.deepcopy(self.algorithm).admit(kind, cx)
        answer: dict[str, object] = {"class": kind, "len": length}
        self.opens = None
        if at is None or at == "when-one-ends":
            answer |= {"admit": at or "now", "at": None, "within_ns": 0}
        else:
            self.opens = _nearest(at)
            slack = abs(at.value - self.opens) + at.bound
            answer |= {"admit": "at", "at": self.opens, "within_ns": _up(slack * 1_000)}
        self._write("admit", None, cx, answer)
        return at is None

    # Whole exchanges.

    def clean(self, rtt: int, chance: int = 0) -> None:
        """An exchange that is answered at once, after `rtt` microseconds."""
        exchange = self.start(chance)
        self.pass_time(rtt)
        self.reply(exchange, chance=chance)

    def learn(self, retransmissions: int, elapsed: int) -> None:
        """An exchange whose copies leave at even distances, whatever the waits."""
        exchange = self.start()
        started = self.now
        for number in range(1, retransmissions + 1):
            self.now = started + elapsed * number // (retransmissions + 1)
            self.timeout(exchange)
        self.now = started + elapsed
        self.reply(exchange)

    def answered(self, elapsed: int, chance: int = 0) -> int:
        """An exchange that is answered so long after its first copy; every wait before runs out. Returns r."""
        exchange = self.start(chance)
        return self.answer(exchange, elapsed)

    def answer(self, exchange: int, elapsed: int) -> int:
        """The exchange is answered so long after its first copy; every wait before runs out. Returns r."""
        at = self.exchanges[exchange].sent[0] + elapsed
        while self.deadline(exchange) < at:
            self.expire(exchange)
        self.now = at
        retransmissions = len(self.exchanges[exchange].sent) - 1
        self.reply(exchange)
        return retransmissions

    def give_up(self, exchange: int, max_retransmit: int = 4) -> None:
        """Every copy that may leave leaves, and the last wait runs out."""
        while len(self.exchanges[exchange].sent) <= max_retransmit:
            self.expire(exchange)
        self.now = self.deadline(exchange)
        self.end(exchange, "gave-up")

    def series(self, copies: int, chance: int = 0) -> None:
        """An exchange of so many copies that is then cancelled."""
        exchange = self.start(chance)
        self.expire(exchange, times=copies - 1)
        self.end(exchange, "cancelled")

    # Inside.

    def _cx(self, chance: int, opened: int | None) -> Cx:
        return Cx(self.now, chance, len(self.exchanges) if opened is None else opened)

    def _ask(self, call: Callable[[], T]) -> T:
        saved = copy.deepcopy((self.algorithm, self.exchanges))
        try:
            return call()
        except Avoid:
            self.algorithm, self.exchanges = saved
            raise

    def _end_with(self, call: Callable[[Exchange], None], exchange: int) -> dict[str, object]:
        call(self.exchanges[exchange].exchange)
        view = _view(self.algorithm.view())
        del self.exchanges[exchange]
        return {"view": view}

    def _write(self, call: str, exchange: int | None, cx: Cx, *parts: dict[str, object]) -> None:
        line: dict[str, object] = {"call": call}
        if exchange is not None:
            line["exchange"] = exchange
        line |= {"now": cx.now, "chance": cx.chance, "open": cx.open, "waiting": cx.waiting}
        for part in parts:
            line |= part
        self.case.calls.append(json.dumps(line))


def _nearest(number: Approx) -> int:
    return (number.value + HALF).__floor__()


def _up(number: Any) -> int:
    return int(number.__ceil__())


def _wait(wait: Approx) -> dict[str, object]:
    nanos, within = _nanos(wait)
    return {"wait_ns": nanos, "within_ns": within}


def _nanos(number: Approx) -> tuple[int, int]:
    """The exact value rounded to nanoseconds, and the bound with what that rounding adds."""
    nanos = (number.value * 1_000 + HALF).__floor__()
    return nanos, _up(abs(number.value * 1_000 - nanos) + number.bound * 1_000)


def _view(view: View) -> dict[str, list[int] | None]:
    numbers = {name: getattr(view, name) for name in View.__dataclass_fields__}
    return {name: None if number is None else list(_nanos(number.in_reach())) for name, number in numbers.items()}


def _fitting(exchange: Exchange) -> Any:
    if exchange.current.in_reach().below(1):
        raise OutOfReach
    return exchange
