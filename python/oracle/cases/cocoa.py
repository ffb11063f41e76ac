"""CoCoA, its drafts and variants."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.at_random import World, at_random
from oracle.calls import SECOND
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.presets import COCOA, Settings, count, micros, ratio, secs, word
from oracle.script import Case, Script

S = ((0, "0.8"), (0, "1.0"), (1, "3.5"), (2, "7.0"), (3, "20.0"), (0, "1.2"))
"""The common vector of all forms of CoCoA: retransmissions and elapsed time."""

QUIET: Settings = {"ageing": word("none")}
AT_ONCE: Settings = {"strong-k": count(0), "strong-share": word("1"), "random-factor": ratio("1")}
"""The timeout is the smoothed round-trip time and G, one microsecond."""

NAMING = {"cocoa-echo": "timestamp", "cocoa-number": "count", "cocoa-flag": "flag"}


def cases() -> Iterator[Case]:
    """What `vectors/cocoa.json` holds."""
    yield from common_vectors()
    for preset in COCOA:
        yield blind(preset)
        yield ends(preset)
    for rule in ("plain", "doubling", "per-open"):
        yield blind("cocoa-03", {"blind": word(rule)}, f"blind-{rule}")
    yield from factors()
    yield from caps()
    yield from ageing()
    yield from named_copies()
    for preset in ("cocoa-fb1", "cocoa-fb2"):
        yield full_backoff(preset)
        yield full_backoff_above_the_limit(preset)
        yield together(preset)
    yield together("cocoa-03")
    yield plain()
    yield from settings()
    for preset in COCOA:
        yield at_random("luck", preset, world=World(naming=NAMING.get(preset, "none")))


def common_vectors() -> Iterator[Case]:
    """The common vector through every form, then a series."""
    swapped: Settings = {"gains": word("swapped")}
    rfc6298: Settings = {"gains": word("rfc6298")}
    for preset, name, values in (
        ("cocoa-00", "", {}),
        ("cocoa-00", "-swapped", swapped),
        ("cocoa-00", "-draft-01", {"weak-k": count(1)}),
        ("cocoa-plus", "", {}),
        ("cocoa-plus", "-swapped", swapped),
        ("cocoa-03", "", {}),
        ("cocoa-03", "-swapped", swapped),
        ("cocoa-s", "", {}),
        ("cocoa-weak-all", "", {}),
        ("cocoa-weak-all", "-rfc6298", rfc6298),
        ("cocoa-fb1", "", {}),
        ("cocoa-fb2", "", {}),
    ):
        script = Script(f"common-vector{name}", preset, {**QUIET, **values})
        for retransmissions, elapsed in S:
            script.learn(retransmissions, micros(elapsed))
        script.series(3)
        yield script.case
    script = Script("weak-limits", "cocoa-weak-all")
    for retransmissions in (19, 20, 21):
        script.learn(retransmissions, micros(30))
    yield script.case


def blind(preset: str, values: Settings | None = None, name: str = "blind") -> Case:
    """One to five exchanges at once, and what ends the blindness: a sample, but no answer that is none."""
    script = Script(name, preset, values)
    for opened in (1, 2, 3, 4, 5):
        for chance in (0, HIGHEST):
            script.end(script.start(chance, opened=opened), "cancelled")
    script.learn(4, micros(9))
    script.end(script.start(opened=2), "cancelled")
    # A persisted backoff hides the rest until a clean exchange ends it.
    exchange = script.start()
    script.pass_time(SECOND)
    script.reply(exchange, kind="separate")
    script.end(script.start(opened=2), "cancelled")
    script.learn(1, micros(3))
    for opened in (1, 4):
        script.end(script.start(MIDDLE, opened=opened), "cancelled")
    script.clean(SECOND)
    for opened in (1, 4):
        script.end(script.start(MIDDLE, opened=opened), "cancelled")
    return script.case


def at_once(name: str, timeout: str, values: Settings, preset: str = "cocoa-03") -> Script:
    """A peer whose timeout is this, exactly; a further clean exchange of `again` brings it back there."""
    script = Script(name, preset, {**values, **AT_ONCE})
    again(script, timeout)
    return script


def again(script: Script, timeout: str) -> None:
    """A clean exchange like the first of `at_once`."""
    script.clean(micros(timeout) - 1)


def factors() -> Iterator[Case]:
    """The variable backoff factor at and beside its thresholds, by each of its rules."""
    thresholds = ("0.999999", "1", "1.000001", "2.999999", "3", "3.000001", "0.333333", "0.333334", "0.5", "0.9", "2.5")
    for rule in ("stepwise", "per-exchange", "by-estimate"):
        for first in thresholds:
            script = at_once(f"vbf-{rule}-{first}", first, {"vbf": word(rule)})
            script.series(4)
            yield script.case
        # What is drawn and what it is drawn from lie on either side of a threshold.
        for rtt in ("0.3", "0.8"):
            script = Script(f"vbf-{rule}-dithered-{rtt}", "cocoa-03", {"vbf": word(rule), "strong-share": word("1")})
            script.clean(micros(rtt))
            for chance in (0, MIDDLE, HIGHEST):
                script.series(4, chance)
            yield script.case
    values: Settings = {
        "vbf-low": ratio("2.7"),
        "vbf-middle": ratio("1.9"),
        "vbf-high": ratio("1.1"),
        "vbf-short": secs("0.7"),
        "vbf-long": secs("4.2"),
    }
    for first in ("0.699999", "0.7", "0.700001", "4.199999", "4.2", "4.200001"):
        script = at_once(f"vbf-other-numbers-{first}", first, values)
        script.series(4)
        yield script.case


def caps() -> Iterator[Case]:
    """An estimate beyond its limit; waits that grow to the cap, and one that starts above it."""
    for timeout in ("31.999999", "32", "32.000001", "100"):
        for preset in ("cocoa-03", "cocoa-plus", "cocoa-weak-all"):
            script = at_once(f"caps-{timeout}", timeout, QUIET, preset)
            script.series(3)
            yield script.case
    for preset in ("cocoa-03", "cocoa-plus", "cocoa-weak-all"):
        script = Script("caps-dithered", preset, QUIET)
        for rtt in ("7", "100", "100"):
            script.clean(micros(rtt))
            script.series(4)
            script.series(4, HIGHEST)
        yield script.case


def ageing() -> Iterator[Case]:
    """Every rule of silence: around each of its thresholds, and over several steps at once."""
    steps: dict[str, dict[str, tuple[str, ...]]] = {
        "draft-03": {
            "0.3": ("4.8", "14.4"),
            "0.999999": ("15.999984",),
            "1": ("16",),
            "3": ("12",),
            "3.000001": ("12.000004",),
            "4.5": ("18",),
            "9": ("36", "58", "73"),
            "0.05": ("0.8", "2.4", "5.6", "12", "24.8"),
        },
        "cocoa-00-doubling": {"0.3": ("4.8", "14.4"), "0.999999": ("15.999984",), "1": ("16",), "9": ("36", "144")},
        "cocoa-00": {"0.3": ("4.8", "14.4"), "0.999999": ("15.999984",), "1": ("16",), "9": ("36", "144")},
        "cocoa-00-eighth": {"0.3": ("4.8", "60"), "0.999999": ("15.999984",), "1": ("16",), "0.02": ("0.32", "9")},
        "cocoa+": {
            "0.3": ("4.8", "14.4"),
            "0.999999": ("15.999984",),
            "1": ("16", "30"),
            "2": ("30",),
            "2.000002": ("30",),
            "8": ("30", "60", "120"),
        },
        "none": {"0.3": ("4.8",), "9": ("36",)},
    }
    for rule, timeouts in steps.items():
        values: Settings = {"ageing": word(rule)}
        for timeout, silences in timeouts.items():
            script = at_once(f"ageing-{rule}-{timeout}", timeout, values)
            for silence in silences:
                for off in (-1, 0, 1):
                    script.pass_time(micros(silence) + off)
                    again(script, timeout)
            script.pass_time(micros(2_000))
            script.series(1)
            yield script.case
        for timeout in ("0.1", "8", "20"):
            yield silence_in_parts(rule, timeout)
    for preset in ("cocoa-00", "cocoa-plus", "cocoa-s", "cocoa-weak-all", "cocoa-fb1", "cocoa-echo"):
        yield ageing_of_a_preset(preset)
    script = Script("ageing-before-the-first-sample", "cocoa-03", {"ack-timeout": secs(9), "blind": word("plain")})
    script.pass_time(micros(1_000))
    script.series(1)
    script.clean(micros(6))
    script.pass_time(micros("54.000001"))
    script.plain(40)
    script.admit("plain")
    script.series(1)
    yield script.case


def silence_in_parts(rule: str, timeout: str) -> Case:
    """First transmissions within the silence, which is no update: where does the clock go on from?"""
    script = at_once(f"ageing-{rule}-{timeout}-in-parts", timeout, {"ageing": word(rule)})
    for gap in ("1.5", "0.3", "1.4", "2", "3.1", "6", "12", "17", "29.9", "30.1", "64", "1"):
        script.pass_time(micros(gap))
        exchange = script.start()
        script.pass_time(SECOND // 4)
        script.end(exchange, "reset")
    return script.case


def ageing_of_a_preset(preset: str) -> Case:
    """A peer with a short and one with a long round-trip time, asked now and then."""
    script = Script("silences", preset, {"random-factor": ratio("1")})
    for rtt in ("0.04", "6"):
        for _ in range(4):
            script.clean(micros(rtt))
        for silence in ("1", "7", "31", "33", "100", "1000"):
            script.pass_time(micros(silence))
            script.series(1)
        script.clean(micros(rtt))
    return script.case


def named_copies() -> Iterator[Case]:
    """Each of the variants that know which copy was answered, by everything that a reply can name."""
    for preset in (*NAMING, "cocoa-03"):
        for cold in (True, False):
            script = Script("names-cold" if cold else "names", preset)
            if not cold:
                script.clean(micros("0.7"))
                script.clean(micros("0.9"))
            for retransmissions in (1, 2, 3):
                for named in (None, 0, retransmissions, "further", retransmissions // 2):
                    exchange = script.start()
                    script.expire(exchange, times=retransmissions)
                    script.pass_time(micros("0.456789"))
                    script.reply(exchange, named=named)
                exchange = script.start()
                script.expire(exchange, times=retransmissions)
                script.reply(exchange, kind="separate", named=retransmissions)
                script.clean(micros("0.8"))
            yield script.case
    script = Script("longest-round-trip", "cocoa-number")
    for clean, congested in (("3", "2.9"), ("1", "4.5"), ("5", "4.6"), ("0.5", "4.7")):
        script.clean(micros(clean))
        exchange = script.start()
        script.pass_time(micros("0.1"))
        script.timeout(exchange)
        script.pass_time(micros(congested) - micros("0.1"))
        script.reply(exchange, named=0)
        script.series(1)
    yield script.case


def full_backoff(preset: str) -> Case:
    """The worked examples of ANRW 2018, §4.2, and what the carried wait meets."""
    script = Script("full-backoff", preset)
    script.learn(0, micros("0.8"))
    script.learn(0, micros("1.0"))
    script.answered(micros(7))
    script.series(3)
    script.clean(SECOND)
    script.answered(micros(30))
    script.answered(micros(15), HIGHEST)
    script.answered(micros(23), HIGHEST)
    script.answered(micros(40), HIGHEST)
    script.clean(SECOND)
    script.give_up(script.start(MIDDLE))
    script.answered(micros(25))
    script.clean(SECOND, HIGHEST)
    exchange = script.start(MIDDLE)
    script.timeout(exchange)
    script.pass_time(SECOND)
    script.reply(exchange, kind="separate")
    exchange = script.start(MIDDLE)
    script.pass_time(SECOND)
    script.reply(exchange, kind="separate")
    script.series(2)
    return script.case


def full_backoff_above_the_limit(preset: str) -> Case:
    """An estimate above its limit, from before the exchange and by the exchange itself, and a carried wait above it."""
    script = Script("full-backoff-above-the-limit", preset, QUIET)
    for _ in range(3):
        script.clean(micros(40))
    script.answered(micros(60))
    script.clean(SECOND)
    for _ in range(6):
        script.clean(micros("6.5"))
    script.answered(micros(70))
    script.clean(SECOND)
    script.give_up(script.start(HIGHEST), 0)
    script.answered(micros(60), HIGHEST)
    script.series(2)
    return script.case


def together(preset: str) -> Case:
    """Three exchanges open at once, ended out of order; timers that run are not changed by what others learn."""
    script = Script("together", preset)
    script.clean(SECOND)
    slow, quick, last = script.start(), script.start(MIDDLE), script.start(HIGHEST)
    script.expire(slow, times=3)
    script.timeout(quick)
    script.timeout(last)
    script.pass_time(SECOND)
    script.reply(quick)
    script.timeout(slow)
    script.reply(slow)
    fresh = script.start(MIDDLE)
    script.timeout(last)
    script.reply(last)
    script.pass_time(SECOND)
    script.reply(fresh)
    one, other = script.start(MIDDLE), script.start(HIGHEST)
    script.timeout(one)
    script.end(one, "reset")
    script.expire(other, times=3)
    script.end(other, "gave-up")
    script.series(2, MIDDLE)
    script.clean(SECOND)
    script.series(2, MIDDLE)
    return script.case


def ends(preset: str) -> Case:
    """Reset, cancelling and giving up teach nothing."""
    script = Script("ends", preset)
    script.learn(0, micros("0.8"))
    script.learn(1, micros("3.5"))
    for why in ("reset", "cancelled"):
        for copies in (0, 2):
            exchange = script.start(MIDDLE)
            script.expire(exchange, times=copies)
            script.pass_time(SECOND // 10)
            script.end(exchange, why)
            script.clean(SECOND)
    for copies in (0, 4):
        script.give_up(script.start(MIDDLE), copies)
        script.series(2)
    script.clean(SECOND)
    return script.case


def plain() -> Case:
    """One plain message per timeout, and a byte a second in any case."""
    script = Script("plain", "cocoa-03", {"ack-timeout": secs("2.5")})
    for length in (40, 2):
        script.admit("plain", length)
        script.plain(length)
        script.admit("plain", length)
        script.admit("confirmable", length)
        script.pass_time(micros(min(length, 2)) - 1)
        script.admit("plain", length)
        script.pass_time(1)
        script.admit("plain", length)
        script.pass_time(micros("0.5"))
        script.admit("plain", length)
    for _ in range(4):
        script.clean(micros(100))
    script.plain(40)
    script.admit("plain")
    script.pass_time(micros(40))
    script.admit("plain")
    return script.case


def settings() -> Iterator[Case]:
    """Every setting away from its default."""
    for name, values in {
        "ack-timeout": {"ack-timeout": secs("0.9")},
        "random-factor": {"random-factor": ratio("1.25")},
        "max-wait": {"max-wait": secs(10)},
        "max-wait-none": {"max-wait": word("none")},
        "max-estimate": {"max-estimate": secs("2.1")},
        "max-estimate-none": {"max-estimate": word("none")},
        "carry": {"carry": word("full-backoff-1")},
        "gains": {"gains": word("swapped")},
        "strong-k": {"strong-k": count(7)},
        "strong-share-1": {"strong-share": word("1")},
        "strong-share-1/4": {"strong-share": word("1/4")},
        "strong-share-1/8": {"strong-share": word("1/8")},
        "weak-k": {"weak-k": count(3)},
        "weak-share-1": {"weak-share": word("1")},
        "weak-share-1/2": {"weak-share": word("1/2")},
        "weak-share-1/8": {"weak-share": word("1/8")},
        "weak-retransmissions": {"weak-retransmissions": count(4)},
        "vbf": {"vbf": word("per-exchange")},
        "vbf-by-estimate": {"vbf": word("by-estimate")},
        "vbf-low": {"vbf-low": ratio("5")},
        "vbf-middle": {"vbf-middle": ratio("1.75")},
        "vbf-high": {"vbf-high": ratio("1.001")},
        "vbf-short": {"vbf-short": secs("1.9")},
        "vbf-long": {"vbf-long": secs(5)},
        "blind": {"blind": word("doubling")},
        "ageing-cocoa+": {"ageing": word("cocoa+")},
        "ageing-cocoa-00": {"ageing": word("cocoa-00")},
        "ageing-cocoa-00-doubling": {"ageing": word("cocoa-00-doubling")},
        "ageing-cocoa-00-eighth": {"ageing": word("cocoa-00-eighth")},
        "ageing-none": {"ageing": word("none")},
    }.items():
        yield at_random(f"setting-{name}", "cocoa-03", values, World(calls=24))
    for how, naming in (("echo", "timestamp"), ("number", "count"), ("flag", "flag")):
        world = World(calls=48, naming=naming)
        learning: Settings = {"learns-from": word(how), "weak-retransmissions": count(0)}
        yield at_random(f"setting-learns-from-{how}", "cocoa-03", learning, world)
