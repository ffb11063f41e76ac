"""Linux RTO, Peak-Hopper and Basic RTO."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.at_random import World, at_random
from oracle.calls import MILLISECOND, SECOND
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import Settings, count, micros, ratio, secs, word
from oracle.script import Case, Script

SAMPLES = (800, 1000, 600, 600, 2400, 800)
"""Samples that lead each timer through every branch of its rules, in milliseconds."""

# At most one non-confirmable message per timeout; a byte a second besides may be allowed or not. Long ones never ask.
WORLD = World(shortest_rtt=150 * MILLISECOND, plain_bytes=(1_000, 1_200))
SHORT = World(calls=24, shortest_rtt=150 * MILLISECOND, plain_bytes=(1_000, 1_200))
MILLISECONDS = World(grain=1_000, shortest_rtt=150 * MILLISECOND, plain_bytes=(1_000, 1_200))


def linux() -> Iterator[Case]:
    """What `vectors/linux-rto.json` holds."""
    preset = "linux-rto"
    californium: Settings = {"order": word("californium")}
    yield table(preset, "table-kernel-order")
    yield table(preset, "table-californium-order", californium)
    yield short_samples(preset, "least-variation")
    yield short_samples(preset, "least-variation-californium", californium)
    yield short_samples(preset, "least-variation-other", {"least-variation": secs("0.02")})
    yield from frame(preset)
    yield at_random("luck", preset, world=WORLD)
    yield at_random("luck-californium", preset, californium, MILLISECONDS)


def peak_hopper() -> Iterator[Case]:
    """What `vectors/peak-hopper.json` holds."""
    preset = "peak-hopper"
    first: Settings = {"previous": word("first-sample")}
    original: Settings = {"order": word("original"), **first}
    bonus: Settings = {**original, "first-bonus": ratio("0.75")}
    variants = {"californium": {}, "first-sample": first, "original": original, "original-bonus": bonus}
    for name, values in variants.items():
        yield table(preset, f"table-{name}", values)
        script = Script(f"constant-{name}", preset, values)
        for _ in range(12):
            script.clean(micros("0.543217"))
        yield script.case
        yield at_random(f"luck-{name}", preset, values, WORLD)
    yield from frame(preset)


def basic() -> Iterator[Case]:
    """What `vectors/basic-rto.json` holds."""
    preset = "basic-rto"
    script = Script("retransmissions", preset)
    for retransmissions, elapsed in enumerate(("0.8", "3", "7", "9", "11")):
        script.learn(retransmissions, micros(elapsed))
    script.clean(micros("0.333333"))
    script.clean(11)
    script.series(3, HIGHEST)
    yield script.case
    script = Script("blind", preset)
    for opened in range(1, 6):
        script.end(script.start(HIGHEST, opened=opened), "cancelled")
    script.learn(3, micros(9))
    script.series(2, HIGHEST)
    yield script.case
    script = Script("caps", preset)
    script.series(8)
    for rtt in ("39.999999", "40", "40.000001", "100"):
        script.clean(micros(rtt))
        script.series(3)
    yield script.case
    yield other_ends(preset)
    yield together(preset)
    for name, values in {
        "ack-timeout": {"ack-timeout": secs("3.5")},
        "random-factor": {"random-factor": ratio("1.5")},
        "backoff-factor": {"backoff-factor": ratio("1.7")},
        "max-wait": {"max-wait": secs(90)},
        "max-estimate": {"max-estimate": secs(3)},
        "blind": {"blind": word("per-open")},
        "carry": {"carry": word("until-clean")},
        "weak-retransmissions": {"weak-retransmissions": count(0)},
        "weak-retransmissions-many": {"weak-retransmissions": count(4)},
    }.items():
        yield at_random(f"setting-{name}", preset, values, SHORT)
    yield at_random("luck", preset, world=WORLD)


def table(preset: str, name: str, values: Settings | None = None) -> Case:
    """The samples one by one, then a whole series."""
    script = Script(name, preset, values)
    for sample in SAMPLES:
        script.clean(sample * MILLISECOND)
    script.series(7, MIDDLE)
    return script.case


def short_samples(preset: str, name: str, values: Settings | None = None) -> Case:
    """Round-trip times so short and steady that the least variation decides, then one that is much longer."""
    script = Script(name, preset, values)
    for sample in (20, 22, 20, 19, 20, 20, 300, 20, 20, 150, 149):
        script.clean(sample * MILLISECOND)
    return script.case


def frame(preset: str) -> Iterator[Case]:
    """What Linux RTO and Peak-Hopper have in common."""
    script = Script("blind", preset)
    for opened in (1, 2, 3, 4, 5, 16, 17):
        script.end(script.start(HIGHEST, opened=opened), "cancelled")
    script.clean(micros("0.8"))
    for opened in (1, 3):
        script.end(script.start(HIGHEST, opened=opened), "cancelled")
    yield script.case

    script = Script("caps", preset)
    script.series(8)
    for rtt in ("12", "17", "40"):
        script.clean(micros(rtt))
        script.series(4)
    yield script.case

    script = Script("carried", preset)
    script.clean(micros("0.8"))
    script.answered(micros(9))
    for elapsed in (9, 25, 70, 100):
        script.answered(micros(elapsed), HIGHEST)
    script.clean(micros("0.9"))
    script.clean(micros("0.9"))
    script.give_up(script.start())
    script.clean(micros("0.9"))
    script.give_up(script.start(), 0)
    script.series(1)
    yield script.case

    yield other_ends(preset)
    yield together(preset)
    for name, values in {
        "ack-timeout": {"ack-timeout": secs("3.5")},
        "random-factor": {"random-factor": ratio("1.5")},
        "backoff-factor": {"backoff-factor": ratio("1.7")},
        "max-wait": {"max-wait": secs(90)},
        "max-wait-none": {"max-wait": word("none")},
        "max-estimate": {"max-estimate": secs(3)},
        "max-estimate-none": {"max-estimate": word("none")},
        "blind-plain": {"blind": word("plain")},
        "blind-doubling": {"blind": word("doubling")},
        "carry-none": {"carry": word("none")},
    }.items():
        yield at_random(f"setting-{name}", preset, values, SHORT)


def other_ends(preset: str) -> Case:
    """Reset, cancelling, giving up, a separate response, and names that nobody asked for."""
    script = Script("ends", preset)
    script.clean(micros("0.8"))
    for why in ("reset", "cancelled"):
        for copies in (0, 2):
            exchange = script.start(MIDDLE)
            script.expire(exchange, times=copies)
            script.pass_time(SECOND)
            script.end(exchange, why)
            script.series(1)
            script.clean(micros("0.8"))
    for copies in (1, 0):
        exchange = script.start()
        script.expire(exchange, times=copies)
        script.pass_time(SECOND)
        script.reply(exchange, kind="separate")
        script.series(1)
    for named in (0, 3):
        exchange = script.start()
        script.expire(exchange, times=3)
        script.pass_time(SECOND)
        script.reply(exchange, named=named)
        script.series(2)
    script.clean(micros("0.8"))
    script.give_up(script.start(), 2)
    script.series(2)
    script.clean(micros("0.8"))
    return script.case


def together(preset: str) -> Case:
    """Three exchanges open at once, ended out of order."""
    script = Script("together", preset)
    script.clean(SECOND)
    slow, quick, last = script.start(), script.start(), script.start()
    script.expire(slow, times=3)
    script.timeout(quick)
    script.timeout(last)
    script.pass_time(SECOND)
    script.reply(slow)
    script.reply(quick)
    fresh = script.start()
    script.pass_time(SECOND)
    script.reply(last)
    script.reply(fresh)
    script.clean(SECOND)
    return script.case
