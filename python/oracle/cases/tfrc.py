"""TFRC for non-confirmable requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oracle.at_random import Draws
from oracle.calls import MILLISECOND, SECOND
from oracle.cases.coap_plus import somewhen
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import Settings, count
from oracle.script import Case, Script

PRESET = "tfrc-non"
RTT = 200 * MILLISECOND


def cases() -> Iterator[Case]:
    """What `vectors/tfrc-non.json` holds."""
    yield stream("start", 60, none)
    yield stream("narrow-window", 40, none, settings={"initial-window": count(2)})
    yield stream("no-window", 30, none, settings={"initial-window": count(0)})
    yield stream("lone-losses", 300, lambda number: number % 25 == 24)
    yield stream("runs", 300, lambda number: number % 60 > 50)
    yield stream("early-loss", 60, lambda number: number in (1, 4, 5))
    yield stream("limited", 80, lambda number: number % 30 == 29, waiting=0)
    yield stream("reordered", 120, lambda number: number % 40 == 39, jitter=60 * MILLISECOND)
    yield silence("silence", losing=False)
    yield silence("silence-after-losses", losing=True)
    yield pauses()
    yield unanswered()
    yield told_of_others()
    yield confirmable()
    for number in range(6):
        yield at_random(number)


def none(_: int) -> bool:
    """Nothing is lost."""
    return False


class Stream:
    """Requests that leave as they may, and their answers."""

    def __init__(self, script: Script, waiting: int = 1) -> None:
        self.script = script
        self.waiting = waiting
        self.sent = 0
        self.under_way: list[tuple[int, int, int]] = []

    def send(self, rtt: int | None) -> None:
        """The next one leaves when it may; it is answered after `rtt`, or lost."""
        while True:
            while self.under_way and self.under_way[0][0] <= self.script.now:
                self.answer()
            if somewhen(self.script, self.script.admit) or self.script.opens is None:
                break
            moments = [at for at, _, _ in self.under_way[:1]] + [self.script.opens]
            self.script.now = max(self.script.now, min(moments) + 1)
        somewhen(self.script, lambda: self.script.plain(40, waiting=self.waiting))
        if rtt is not None:
            self.under_way.append((self.script.now + rtt, self.sent, self.script.now))
            self.under_way.sort()
        self.sent += 1

    def answer(self) -> None:
        """The first answer under way comes."""
        at, number, left = self.under_way.pop(0)
        self.script.now = max(self.script.now, at)
        somewhen(self.script, lambda: self.script.feedback(number, left, waiting=self.waiting))

    def settle(self) -> None:
        """All that is under way is answered."""
        while self.under_way:
            self.answer()


def stream(
    name: str,
    messages: int,
    loses: Callable[[int], bool],
    *,
    settings: Settings | None = None,
    waiting: int = 1,
    jitter: int = 0,
) -> Case:
    """An endless backlog on a path without a queue."""
    script = Script(name, PRESET, settings)
    requests, draws = Stream(script, waiting), Draws(name)
    for number in range(messages):
        requests.send(None if loses(number) else RTT + (draws.below(jitter) if jitter else 7 * number))
    requests.settle()
    somewhen(script, script.admit)
    return script.case


def silence(name: str, *, losing: bool) -> Case:
    """Answers stop for minutes, with requests going on and without, and begin again."""
    script = Script(name, PRESET)
    requests = Stream(script)
    for number in range(60):
        requests.send(None if losing and number % 20 == 19 else RTT + number)
    for _ in range(12):
        requests.send(None)
    requests.settle()
    for seconds in (1, 3, 10, 100, 400):
        script.pass_time(seconds * SECOND + 17)
        somewhen(script, script.admit)
    for number in range(30):
        requests.send(RTT + 5 * number)
    requests.settle()
    return script.case


def pauses() -> Case:
    """A sender with little to say: one or two messages now and then."""
    script = Script("pauses", PRESET)
    requests = Stream(script, waiting=0)
    for number in range(24):
        requests.send(RTT + 11 * number)
        if number % 3 == 0:
            requests.send(None if number == 12 else RTT + 3 * number)
        requests.settle()
        script.pass_time((number % 7) * 300 * MILLISECOND + 1)
    return script.case


def unanswered() -> Case:
    """Nothing is answered at first."""
    script = Script("unanswered", PRESET)
    requests = Stream(script)
    for number in range(9):
        requests.send(RTT if number == 8 else None)
    requests.settle()
    for number in range(20):
        requests.send(RTT + number)
    requests.settle()
    return script.case


def told_of_others() -> Case:
    """What becomes of blocks and notifications changes nothing, and neither does what is given up."""
    script = Script("told-of-others", PRESET)
    requests = Stream(script)
    requests.send(RTT)
    requests.settle()
    for number in range(10):
        requests.send(RTT + number)
        left = script.now
        script.pass_time(3)
        somewhen(script, lambda left=left: script.feedback(0, left - RTT, "arrived", "block"))  # type: ignore[misc]
        somewhen(script, lambda left=left: script.feedback(0, left - RTT, "answered", "further"))  # type: ignore[misc]
        somewhen(script, lambda left=left: script.feedback(9, left - RTT, "lost"))  # type: ignore[misc]
    requests.settle()
    return script.case


def confirmable() -> Case:
    """The timer of RFC 7252, whatever is learnt."""
    script = Script("confirmable", PRESET)
    requests = Stream(script)
    for chance in (0, MIDDLE, HIGHEST):
        requests.send(RTT)
        requests.settle()
        script.give_up(script.start(chance))
        somewhen(script, lambda: script.admit("confirmable"))
        script.clean(RTT, chance)
    return script.case


def at_random(number: int) -> Case:
    """Round-trip times that wander, losses alone and in runs, and silences."""
    name = f"luck-{number}"
    script, draws = Script(name, PRESET), Draws(f"{PRESET} {name}")
    requests = Stream(script)
    base, run = draws.spread(2 * MILLISECOND, SECOND), 0
    for _ in range(160):
        if draws.one_in(25):
            run = 1 + draws.below(8)
        requests.waiting = 0 if draws.one_in(5) else 1 + draws.below(20)
        lost, run = run > 0, max(run - 1, 0)
        requests.send(None if lost else base + draws.below(base // 2))
        if draws.one_in(60):
            requests.settle()
            script.pass_time(draws.below(40 * base))
    requests.settle()
    return script.case
