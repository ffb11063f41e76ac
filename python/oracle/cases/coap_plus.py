"""The rate control of CoAP+."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from oracle.approx import Avoid
from oracle.at_random import World, at_random
from oracle.calls import MILLISECOND, SECOND
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import Settings, ratio, secs, word
from oracle.script import Case, Script

RTT = 240 * MILLISECOND
T = TypeVar("T")
SMALL = World(calls=60, shortest_rtt=50 * MILLISECOND, together=4, asks=True)

SETTINGS: dict[str, Settings] = {
    "alpha-3": {"alpha": ratio("3")},
    "alpha-tenth": {"alpha": ratio("0.1")},
    "restart-247": {"restart-after": secs(247)},
    "restart-early": {"restart-after": secs("5")},
    "one-per-rtt": {"start-rate": word("1-per-rtt")},
    "one-per-second": {"start-rate": word("1-per-second")},
    "no-probe": {"first-rtt": word("default")},
    "last-sample": {"smoothing": word("last")},
    "dropped": {"leftover": word("dropped")},
    "window": {"window": word("alpha-t-lambda")},
    "one-rtt": {"start-count": word("1-rtt")},
    "per-ack": {"increase": word("per-ack")},
    "slowest": {"slowest": word("1-per-timeout")},
    "paced": {"in-backoff": word("paced")},
    "rfc6298": {"timer": word("rfc6298")},
    "clean": {"ends-backoff": word("clean-answer")},
    "timer": {"ack-timeout": secs("3"), "random-factor": ratio("1.25")},
    "loss-signal": {"loss-signal": word("first-timeout")},
}


def cases() -> Iterator[Case]:
    """What `vectors/coap-plus-rate.json` holds."""
    for preset in ("coap-plus-rate", "coap-plus-rate-responsive"):
        yield paced(preset)
        yield silence(preset)
        yield given_up(preset)
        yield failed_start(preset)
        for name, settings in SETTINGS.items():
            yield at_random(f"luck-{name}", preset, settings, SMALL)
        for number in range(4):
            yield at_random(f"luck-{number}", preset, world=World(together=4, asks=True))


def somewhen(script: Script, call: Callable[[], T]) -> T:
    """Makes a call; where rounding would decide its answer, a little later."""
    for _ in range(16):
        try:
            return call()
        except Avoid:
            script.pass_time(977)
    raise RuntimeError(f"{script.case.name}: no call is right at {script.now}")


def ask(script: Script, opened: int) -> bool:
    """May a message leave, with so many open if it does?"""
    return somewhen(script, lambda: script.admit("confirmable", opened=opened))


def send(script: Script) -> int:
    """One message of a backlog: held back until it may leave, one or more waiting behind it."""
    while not ask(script, len(script.exchanges) + 1) and script.opens is not None:
        script.now = script.opens + 1
    return somewhen(script, lambda: script.start(MIDDLE, waiting=1))


def paced(preset: str) -> Case:
    """A backlog on a path of one round-trip time: probe, start-up, growth, one loss."""
    script = Script("paced", preset)
    script.clean(RTT, MIDDLE)
    under_way: list[tuple[int, int]] = []
    for message in range(40):
        while under_way and under_way[0][0] <= script.now + RTT // 16:
            script.now = max(script.now, under_way[0][0])
            script.reply(under_way.pop(0)[1])
        number = send(script)
        if message == 30:
            lost = number
        else:
            under_way.append((script.now + RTT + 7 * message, number))
    for at, number in under_way:
        script.now = max(script.now, at)
        script.reply(number)
    script.expire(lost, MIDDLE)
    ask(script, 2)
    script.pass_time(RTT + 11)
    script.reply(lost)
    ask(script, 1)
    send(script)
    script.end(max(script.exchanges), "cancelled")
    return script.case


def steady(script: Script) -> None:
    """Probe and start-up are over."""
    script.clean(RTT, MIDDLE)
    started = [script.start(MIDDLE, waiting=1) for _ in range(4)]
    script.pass_time(RTT)
    for number in started:
        script.reply(number)
    script.pass_time(RTT + 1)


def silence(preset: str) -> Case:
    """A backoff of one to ten round-trip times, ended by an answer to a message sent once, and by one to another."""
    script = Script("silence", preset, {"loss-signal": word("first-timeout")})
    steady(script)
    for rtts in range(1, 11):
        first, second = script.start(0, waiting=1), script.start(HIGHEST, waiting=1)
        script.expire(first, MIDDLE)
        script.pass_time(rtts * RTT // 2 + 5)
        ask(script, 3)
        answered = second if rtts % 2 else first
        somewhen(script, lambda number=answered: script.reply(number))  # type: ignore[misc]
        ask(script, 2)
        script.end(max(script.exchanges) if len(script.exchanges) == 1 else first, "reset")
        script.pass_time(3 * RTT + 1)
    return script.case


def given_up(preset: str) -> Case:
    """Messages that run out of copies, alone and beside another."""
    script = Script("given-up", preset)
    steady(script)
    for chance in (0, MIDDLE, HIGHEST):
        number = script.start(chance, waiting=1)
        script.give_up(number)
        ask(script, 1)
        script.pass_time(4 * SECOND)
        ask(script, 1)
        steady(script)
    return script.case


def failed_start(preset: str) -> Case:
    """Nothing of the start-up is answered."""
    script = Script("failed-start", preset)
    script.clean(RTT, MIDDLE)
    numbers = [script.start(chance, waiting=1) for chance in (0, MIDDLE, HIGHEST)]
    script.pass_time(2 * RTT - 1)
    ask(script, 4)
    script.pass_time(1)
    ask(script, 4)
    for number in numbers:
        script.expire(number, MIDDLE)
        ask(script, 4)
    script.pass_time(4 * SECOND)
    for number in numbers:
        ask(script, 1)
        script.end(number, "cancelled")
    steady(script)
    return script.case
