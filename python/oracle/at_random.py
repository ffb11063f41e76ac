"""Long call lists by chance: a path with losses, several exchanges at once, silences, and everything that can end one.

The same name always gives the same list, on every machine: only whole numbers are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from oracle.approx import Avoid, OutOfReach
from oracle.calls import MILLISECOND, SECOND, End, Kind, Named
from oracle.presets import Settings
from oracle.script import Case, Script

NEVER = 1 << 62


@dataclass(frozen=True)
class World:
    """What the list is drawn from."""

    calls: int = 130
    grain: int = 1
    """Every time is a multiple of this many microseconds."""
    shortest_rtt: int = 20 * MILLISECOND
    together: int = 3
    """Exchanges open at most."""
    max_retransmit: int = 4
    naming: str = "none"
    plain_bytes: tuple[int, int] = (4, 100)
    asks: bool = False
    """Whether it is asked when a confirmable message may leave; it leaves all the same."""


@dataclass
class Plan:
    """What will become of an exchange, as far as it is decided."""

    answer: int = NEVER
    answered_copy: int = 0
    cut: int = NEVER
    why: End = "cancelled"


class Draws:
    """Draws whole numbers."""

    def __init__(self, name: str) -> None:
        self.random = Random(name)

    def below(self, bound: int) -> int:
        """Evenly from 0 to `bound`, not included."""
        return self.random.getrandbits(64) * bound >> 64

    def one_in(self, n: int) -> bool:
        """Once in so many times."""
        return self.below(n) == 0

    def spread(self, low: int, high: int) -> int:
        """From `low` to about `high`, every doubling as likely as any other."""
        doublings = (high // low).bit_length()
        start = low << self.below(doublings)
        return start + self.below(start)

    def word(self) -> int:
        """A word of chance; often one of the ends."""
        choice = self.below(8)
        if choice < 2:
            return 0 if choice else (1 << 32) - 1
        return self.random.getrandbits(32)


class Lottery:
    """Plays one list."""

    def __init__(self, name: str, preset: str, settings: Settings | None, world: World) -> None:
        self.draws = Draws(f"{preset} {name}")
        self.script = Script(name, preset, settings)
        self.world = world
        self.plans: dict[int, Plan] = {}
        self.next_start = 0
        self.base_rtt = self._rtt()

    def play(self) -> Case:
        """The whole list; every exchange is ended."""
        while len(self.script.case.calls) < self.world.calls:
            self._step(may_start=True)
        while self.script.exchanges:
            self._step(may_start=False)
        return self.script.case

    def _step(self, *, may_start: bool) -> None:
        moments = [(self._next_of(number), number) for number in self.script.exchanges]
        if may_start and len(moments) < self.world.together:
            moments.append((max(self.next_start, self.script.now), -1))
        moment, number = min(moments)
        self.script.now = max(self.script.now, moment)
        if self.draws.one_in(12):
            self._plain()
        if number < 0:
            self._start()
        else:
            self._go_on(number)

    def _next_of(self, number: int) -> int:
        plan = self.plans[number]
        return min(plan.answer, plan.cut, self.script.deadline(number))

    # One call each.

    def _start(self) -> None:
        def call() -> None:
            number = self.script.start(self.draws.word(), waiting=self.draws.below(3))
            self.plans[number] = Plan()
            self._send(number)
            if self.draws.one_in(12):
                plan = self.plans[number]
                plan.cut = self.script.now + self._time(SECOND // 8, 8 * SECOND)
                plan.why = "reset" if self.draws.one_in(2) else "cancelled"

        if self.world.asks:
            with suppress(Avoid):
                self.script.admit("confirmable", opened=len(self.script.exchanges) + 1)
        self._somewhen(call)
        gap = self._time(MILLISECOND, SECOND) if self.draws.below(4) else self._time(SECOND, 256 * SECOND)
        self.next_start = self.script.now + gap
        if self.draws.one_in(10):
            self.base_rtt = self._rtt()

    def _go_on(self, number: int) -> None:
        plan = self.plans[number]
        moment = self.script.now
        if plan.answer <= moment:
            self._somewhen(lambda: self._reply(number))
        elif plan.cut <= moment:
            self._somewhen(lambda: self.script.end(number, plan.why, self.draws.word()))
        elif len(self.script.exchanges[number].sent) > self.world.max_retransmit:
            self._somewhen(lambda: self.script.end(number, "gave-up", self.draws.word()))
        else:
            self._somewhen(lambda: self._timeout(number))

    def _timeout(self, number: int) -> None:
        try:
            self.script.timeout(number, self.draws.word())
        except OutOfReach:
            self.script.end(number, "cancelled", self.draws.word())
        else:
            self._send(number)

    def _reply(self, number: int) -> None:
        plan = self.plans[number]
        kind: Kind = "piggybacked"
        if self.draws.one_in(6):
            kind = "separate" if self.draws.one_in(3) else "empty-ack"
        named: Named = None
        if kind == "piggybacked" and self.world.naming != "none" and not self.draws.one_in(6):
            named = plan.answered_copy
            if self.world.naming == "flag" and named > 0:
                named = "further"
        self.script.reply(number, named=named, kind=kind, chance=self.draws.word())

    def _plain(self) -> None:
        low, high = self.world.plain_bytes
        length = low + self.draws.below(high - low + 1)
        try:
            if self.script.admit("plain", length, self.draws.word()):
                self.script.plain(length, self.draws.word())
                self.script.admit("plain", length)
            elif self.draws.one_in(4):
                self.script.admit("confirmable", length)
        except Avoid:
            return

    def _send(self, number: int) -> None:
        """A copy has left: is it answered, and when? The first answer to come counts."""
        if self.draws.one_in(3):
            return
        rtt = self.base_rtt + self._time(self.world.grain, max(self.base_rtt, 2 * self.world.grain))
        plan = self.plans[number]
        if self.script.now + rtt < plan.answer:
            plan.answer = self.script.now + rtt
            plan.answered_copy = len(self.script.exchanges[number].sent) - 1

    def _somewhen(self, call: Callable[[], None]) -> None:
        """Makes a call; where rounding would decide its answer, a little later."""
        for _ in range(16):
            try:
                call()
            except Avoid:
                self.script.now += self._time(self.world.grain, 4_096 * self.world.grain)
            else:
                return
        raise RuntimeError(f"{self.script.case.preset} {self.script.case.name}: no call is right at {self.script.now}")

    def _time(self, low: int, high: int) -> int:
        return max(1, self.draws.spread(low, high) // self.world.grain) * self.world.grain

    def _rtt(self) -> int:
        return self._time(self.world.shortest_rtt, 16 * SECOND if self.draws.one_in(4) else 2 * SECOND)


def at_random(name: str, preset: str, settings: Settings | None = None, world: World | None = None) -> Case:
    """A long list of calls."""
    return Lottery(name, preset, settings, world or World()).play()
