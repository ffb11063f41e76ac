"""BBR for confirmable messages."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.approx import Avoid
from oracle.at_random import World, at_random
from oracle.calls import MILLISECOND, SECOND
from oracle.cases.coap_plus import ask, send, somewhen
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import Settings, ratio, secs, word
from oracle.script import Case, Script

PRESET = "bbr-con"
RTT = 240 * MILLISECOND
GAP = 30 * MILLISECOND

SETTINGS: dict[str, Settings] = {
    "timer": {"ack-timeout": secs("3"), "random-factor": ratio("1.25")},
    "uncapped": {"max-wait": word("none")},
}


def cases() -> Iterator[Case]:
    """What `vectors/bbr-con.json` holds."""
    yield backlog("backlog", 400, chance=MIDDLE)
    yield backlog("drawn-phase", 200, chance=HIGHEST)
    yield backlog("limited", 120, chance=0, waiting=0)
    yield backlog("timeouts", 160, chance=MIDDLE, lost=40)
    yield pauses()
    for name, settings in SETTINGS.items():
        yield at_random(f"luck-{name}", PRESET, settings, World(together=4, asks=True))
    for number in range(4):
        yield at_random(f"luck-{number}", PRESET, world=World(shortest_rtt=50 * MILLISECOND, together=6, asks=True))


def backlog(name: str, messages: int, *, chance: int, waiting: int = 1, lost: int = 0) -> Case:
    """An endless backlog over a bottleneck that passes a message every 30 ms; every so many is lost once."""
    script = Script(name, PRESET)
    idle, under_way = 0, list[tuple[int, int]]()
    for message in range(messages):
        while True:
            while under_way and under_way[0][0] <= script.now:
                answer(script, under_way, chance)
            if ask(script, len(script.exchanges) + 1):
                break
            moments = [at for at, _ in under_way[:1]] + ([script.opens] if script.opens is not None else [])
            script.now = max(script.now, min(moments) + 1)
        number = somewhen(script, lambda: script.start(MIDDLE, waiting=waiting))
        if lost and message % lost == lost - 1:
            script.expire(number, MIDDLE)
        idle = max(idle, script.now + RTT // 2) + GAP
        under_way.append((idle + RTT // 2, number))
    while under_way:
        answer(script, under_way, chance)
    return script.case


def answer(script: Script, under_way: list[tuple[int, int]], chance: int) -> None:
    """The first message under way is answered."""
    at, number = under_way.pop(0)
    script.now = max(script.now, at)
    somewhen(script, lambda: script.reply(number, chance=chance))


def pauses() -> Case:
    """A sender that falls silent for longer than the least round-trip time counts, alone and beside another."""
    script = Script("pauses", PRESET)
    script.clean(RTT, MIDDLE)
    for number in range(8):
        script.pass_time(number * 2 * SECOND)
        first = send(script)
        second = send(script)
        script.pass_time(RTT)
        for exchange in (first, second):
            somewhen(script, lambda exchange=exchange: script.reply(exchange, chance=MIDDLE))  # type: ignore[misc]
    lonely = send(script)
    script.give_up(lonely)
    try:
        ask(script, 1)
    except Avoid:
        script.pass_time(1)
    return script.case
