"""Calm."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.at_random import World, at_random
from oracle.calls import MILLISECOND, SECOND, Named
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import Settings, secs, word
from oracle.script import Case, Script

RTT = 240 * MILLISECOND
SHIPPED, UNLIMITED = "calm", "calm-unlimited"
"""Most cases are without the bounds of the former, which would hide the rest."""
NAMING = World(naming="token", asks=True)
ONE_AT_A_TIME = World(naming="token", asks=True, together=1, max_retransmit=6)

RULES = ("delay-pause", "falls", "long-steps", "short-steps", "grades", "last-bound", "last-wait", "window")


def cases() -> Iterator[Case]:
    """What `vectors/calm.json` holds."""
    yield unknown()
    yield unknown("unknown-bounded", preset=SHIPPED)
    yield unknown("unknown-capped", {"max-wait": secs(10)})
    yield unknown("unknown-uncapped", {"max-wait": word("none"), "ack-timeout": secs("3.5")})
    yield unknown("unknown-impatient", {"patience": secs(4)})
    for shown in SHOWN:
        for rtt in (RTT, 3 * SECOND):
            yield evidence(shown, rtt)
        yield evidence(shown, MILLISECOND, SHIPPED)
    yield queue()
    yield losses()
    yield ends()
    yield silence()
    yield window()
    yield window("window-open", {"without": word("window")})
    yield plain()
    settings: dict[str, Settings] = {
        "ack-timeout": {"ack-timeout": secs("1.000001")},
        "max-wait": {"max-wait": secs(5)},
        "no-cap": {"max-wait": word("none")},
        "least-wait": {"least-wait": secs("1.5")},
        "patience": {"patience": secs("2.5")},
    }
    for name, values in (settings | {f"without-{rule}": {"without": word(rule)} for rule in RULES}).items():
        yield at_random(f"luck-{name}", UNLIMITED, values, ONE_AT_A_TIME)
    for number in range(4):
        yield at_random(f"luck-bounded-{number}", SHIPPED, world=NAMING)
        yield at_random(f"luck-{number}", UNLIMITED, world=NAMING)
        yield at_random(f"luck-one-{number}", UNLIMITED, world=ONE_AT_A_TIME)


def unknown(name: str = "unknown", settings: Settings | None = None, preset: str = UNLIMITED) -> Case:
    """Waits to a peer that was never measured."""
    script = Script(name, preset, settings)
    for chance in (0, MIDDLE, HIGHEST):
        number = script.start(chance)
        for _ in range(8):
            script.expire(number, chance)
        script.end(number, "reset")
    return script.case


#: Which copy a reply names, of an exchange of so many retransmissions, and how many round trips it came after the last.
SHOWN: dict[str, tuple[Named, int, float]] = {
    "nothing-1": (None, 1, 1.0),
    "nothing-3": (None, 3, 0.5),
    "last-1": (1, 1, 1.0),
    "last-2-late": (2, 2, 3.0),
    "last-4": (4, 4, 1.1),
    "before-last-soon": (0, 1, 0.3),
    "before-last-in-time": (0, 1, 1.0),
    "before-last-late": (0, 1, 2.5),
    "middle-soon": (1, 3, 0.3),
    "middle-in-time": (1, 3, 1.2),
    "first-of-five-late": (0, 4, 4.0),
}


def evidence(shown: str, rtt: int, preset: str = UNLIMITED) -> Case:
    """One kind of reply, to an unknown peer, to a measured one and after losses."""
    named, retransmissions, after = SHOWN[shown]
    script = Script(f"{shown}-{rtt // MILLISECOND}-ms", preset)
    for clean in (0, 1, 0, 4):
        for _ in range(clean):
            script.clean(rtt, MIDDLE)
        number = script.start(MIDDLE)
        script.expire(number, MIDDLE, times=retransmissions)
        script.pass_time(int(rtt * after))
        script.reply(number, named=named, chance=MIDDLE)
        script.admit("confirmable")
        script.series(3, MIDDLE)
    return script.case


def queue() -> Case:
    """Round trips that grow and shrink: pauses come and go."""
    script = Script("queue", UNLIMITED)
    for tenths in (3, 12, 30, 61, 90, 120, 121, 122, 90, 91, 60, 30, 10, 9, 9, 9):
        script.clean(tenths * SECOND // 10 + 7 * tenths, MIDDLE)
        script.admit("confirmable")
        script.admit("plain")
        if script.opens is not None:
            script.now = script.opens + 1
    return script.case


def losses() -> Case:
    """Many copies are lost while round trips are long: waits grow fast."""
    script = Script("losses", UNLIMITED)
    script.clean(RTT)
    for copies in (2, 3, 2, 4, 1, 3, 0, 2, 0, 0, 0, 0, 1, 0):
        number = script.start(MIDDLE)
        script.expire(number, MIDDLE, times=copies)
        script.pass_time(RTT + RTT // 5 + 13 * copies)
        script.reply(number, named=copies, chance=MIDDLE)
        script.admit("confirmable")
        if script.opens is not None:
            script.now = script.opens + 1
    return script.case


def ends() -> Case:
    """Giving up, Reset and cancelling."""
    script = Script("ends", UNLIMITED)
    for clean in (0, 1, 6):
        for _ in range(clean):
            script.clean(RTT)
        for copies in (0, 2, 4):
            script.give_up(script.start(MIDDLE), copies)
            script.admit("confirmable")
            script.series(2, MIDDLE)
        for why in ("reset", "cancelled"):
            for copies in (0, 2):
                number = script.start(HIGHEST)
                script.expire(number, HIGHEST, times=copies)
                script.pass_time(SECOND // 10)
                script.end(number, "reset" if why == "reset" else "cancelled")
    return script.case


def silence() -> Case:
    """Ten minutes without the end of an exchange: all is forgotten."""
    script = Script("silence", UNLIMITED)
    for seconds in (599, 600, 601):
        script.clean(RTT)
        script.clean(RTT)
        number = script.start()
        script.expire(number, times=2)
        script.pass_time(RTT)
        script.reply(number)
        script.pass_time(seconds * SECOND)
        script.series(3, MIDDLE)
    return script.case


def window(name: str = "window", settings: Settings | None = None) -> Case:
    """Another request beside one that is open: it leaves unless many copies are lost while round trips are long."""
    script = Script(name, UNLIMITED, settings)
    for clean, copies in ((0, 0), (1, 0), (0, 3), (0, 2), (6, 0), (0, 3), (0, 4)):
        for _ in range(clean):
            script.clean(RTT)
        number = script.start(MIDDLE)
        script.admit("confirmable", opened=2)
        script.admit("plain")
        script.expire(number, MIDDLE, times=copies)
        script.pass_time(RTT + RTT // 5)
        script.admit("confirmable", opened=2)
        script.reply(number, named=copies, chance=MIDDLE)
        script.admit("confirmable", opened=1)
    number = script.start(MIDDLE)
    script.admit("confirmable", opened=2)
    script.pass_time(601 * SECOND)
    script.admit("confirmable", opened=2)
    script.reply(number, chance=MIDDLE)
    return script.case


def plain() -> Case:
    """One message that nobody acknowledges for each timeout; three seconds before any answer."""
    script = Script("plain", UNLIMITED)
    for _ in range(2):
        script.admit()
        script.plain(40)
        script.admit()
        script.pass_time(3 * SECOND - 1)
        script.admit()
        script.pass_time(1)
        script.admit()
    script.clean(RTT)
    script.plain(40)
    script.admit()
    script.pass_time(SECOND)
    script.clean(30 * SECOND)
    script.clean(30 * SECOND)
    script.admit()
    return script.case
