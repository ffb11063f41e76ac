"""RFC 7252 and Full Backoff over it."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.at_random import World, at_random
from oracle.calls import SECOND
from oracle.presets import DEFAULT, Settings, micros, ratio, secs, word
from oracle.script import Case, Script

HIGHEST = (1 << 32) - 1
MIDDLE = 1 << 31


def drawing(seconds: str) -> int:
    """The lowest word that draws this first wait from [2, 3] s."""
    return -(-((micros(seconds) - 2 * SECOND) << 32) // 1_000_001)


def cases() -> Iterator[Case]:
    """What `vectors/rfc7252.json` holds."""
    yield draws()
    for chance, name in ((MIDDLE, "middle"), (HIGHEST, "highest")):
        script = Script(f"series-{name}-draw", "rfc7252")
        exchange = script.start(chance)
        script.give_up(exchange)
        yield script.case
    script = Script("series-capped", "rfc7252", {"max-wait": secs(60)})
    script.series(8, MIDDLE)
    script.answered(micros("48.5"), MIDDLE)
    yield script.case
    yield full_backoff_1()
    yield full_backoff_2()
    for preset in ("default-fb1", "default-fb2"):
        yield ends(preset)
        yield together(preset)
    yield from settings()
    for preset in DEFAULT:
        yield at_random("luck", preset)
        yield at_random("luck-one-at-a-time", preset, world=World(calls=60, together=1))


def draws() -> Case:
    """Where the first wait falls, and that an answer teaches nothing."""
    script = Script("draws", "rfc7252")
    for chance in (0, 1, 4_294, 4_295, MIDDLE - 1, MIDDLE, MIDDLE + 1, 3_221_225_472, HIGHEST - 1, HIGHEST):
        script.clean(SECOND, chance)
    script.answered(micros("12.5"), MIDDLE)
    script.plain(40)
    script.admit("plain")
    script.admit("confirmable")
    return script.case


def full_backoff_1() -> Case:
    """The worked example of ANRW 2018, §4.2, and the cap."""
    script = Script("full-backoff-1", "default-fb1")
    script.answered(micros(12), MIDDLE)
    script.answered(micros(11), HIGHEST)
    script.answered(micros(5))
    script.clean(SECOND, drawing("2.8"))
    script.answered(micros(150))
    script.series(3, MIDDLE)
    script.clean(SECOND)
    script.clean(SECOND)
    return script.case


def full_backoff_2() -> Case:
    """The same for the variant that halves."""
    script = Script("full-backoff-2", "default-fb2")
    script.answered(micros(12), MIDDLE)
    script.answered(micros(11), HIGHEST)
    for _ in range(4):
        script.clean(SECOND, drawing("2.8"))
    # Half of it lies between the ends of the draw: once the longer of the two, once not.
    for draw in ("2.1", "2.8"):
        script.answered(micros(4), drawing("2.5"))
        script.clean(SECOND, drawing("2.2"))
        script.clean(SECOND, drawing(draw))
        script.clean(SECOND, drawing(draw))
    return script.case


def ends(preset: str) -> Case:
    """What is carried after giving up, Reset, cancelling, and a separate response."""
    script = Script("ends", preset)
    for copies in (0, 1, 4):
        script.give_up(script.start(HIGHEST), copies)
        script.clean(SECOND, MIDDLE)
        script.clean(SECOND, MIDDLE)
    for why in ("reset", "cancelled"):
        for copies in (0, 2):
            exchange = script.start(HIGHEST)
            script.expire(exchange, times=copies)
            script.pass_time(SECOND)
            script.end(exchange, why)
            for _ in range(3):
                script.clean(SECOND, MIDDLE)
    for copies in (1, 0):
        exchange = script.start(HIGHEST)
        script.expire(exchange, times=copies)
        script.pass_time(SECOND)
        script.reply(exchange, kind="separate")
    script.clean(SECOND, MIDDLE)
    return script.case


def together(preset: str) -> Case:
    """Several exchanges open: the longer wait stays until the last one decides alone."""
    script = Script("together", preset)
    slow, quick, last = script.start(), script.start(MIDDLE), script.start(HIGHEST)
    for _ in range(3):
        script.expire(slow)
    script.timeout(quick)
    script.timeout(last)
    script.pass_time(SECOND)
    script.reply(slow)
    script.reply(quick)
    fresh = script.start(MIDDLE)
    script.reply(last)
    script.pass_time(SECOND)
    script.reply(fresh)
    script.clean(SECOND, MIDDLE)
    one, other = script.start(MIDDLE), script.start(HIGHEST)
    script.timeout(one)
    script.end(one, "reset")
    script.expire(other, times=2)
    script.end(other, "gave-up")
    script.series(2, MIDDLE)
    return script.case


def settings() -> Iterator[Case]:
    """Every setting away from its default."""
    each: dict[str, Settings] = {
        "ack-timeout": {"ack-timeout": secs("0.75")},
        "random-factor": {"random-factor": ratio("1.234")},
        "random-factor-one": {"random-factor": ratio("1")},
        "backoff-factor": {"backoff-factor": ratio("1.3")},
        "max-wait": {"max-wait": secs("7.5")},
        "max-wait-below-the-draw": {"max-wait": secs(2)},
    }
    for name, values in each.items():
        yield at_random(f"setting-{name}", "rfc7252", values, World(calls=24))
        yield at_random(f"setting-{name}", "default-fb1", values, World(calls=24))
    yield at_random("setting-carry-1", "rfc7252", {"carry": word("full-backoff-1")}, World(calls=40))
    yield at_random("setting-carry-2", "rfc7252", {"carry": word("full-backoff-2")}, World(calls=40))
    yield at_random("setting-carry-none", "default-fb2", {"carry": word("none")}, World(calls=24))
    yield at_random("setting-max-wait-none", "default-fb2", {"max-wait": word("none")}, World(calls=40))
    yield at_random("setting-ack-timeout", "default-fb2", {"ack-timeout": secs("3.3")}, World(calls=40))
