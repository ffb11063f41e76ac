"""FASOR and its two ways to name copies."""

from __future__ import annotations

from collections.abc import Iterator

from oracle.at_random import World, at_random
from oracle.calls import SECOND, Named
from oracle.cases.default import HIGHEST, MIDDLE
from oracle.fasor import State
from oracle.presets import FASOR, Settings, micros, ratio, secs, word
from oracle.script import Case, Script

BARE: Settings = {"dither": word("none")}


def cases() -> Iterator[Case]:
    """What `vectors/fasor.json` holds."""
    yield vector_a("vector-a")
    yield vector_a("vector-a-pseudocode", {"fasor-init": word("pseudocode")})
    yield vector_b()
    yield vector_c()
    yield from vector_d()
    yield draws()
    for preset in FASOR:
        yield from every_transition(preset)
    yield from every_transition("fasor-token", {"echo": word("exact-only")}, "exact-only", copies=4)
    yield from every_transition("fasor-count", {"echo": word("exact-only"), **BARE}, "exact-only undithered", copies=3)
    yield caps("caps")
    yield caps("no-caps", {"max-wait": word("none"), "max-slow": word("none")})
    yield draw_above_the_cap("draw-above-the-cap", {"max-wait": secs(40)})
    yield draw_above_the_cap("draw-above-both-caps", {"max-wait": secs(40), "max-slow": secs(45)})
    yield draw_above_the_cap("draw-above-a-larger-cap", {"max-wait": secs(45), "max-slow": secs(40), **BARE}, "50")
    for preset in ("fasor", "fasor-token"):
        yield ends(preset, "ends")
        yield ends(preset, "ends-kept", {"give-up": word("keep")})
        yield together(preset)
    yield plain()
    for name, values in {
        "ack-timeout": {"ack-timeout": secs("1.000001")},
        "slow-factor": {"slow-factor": ratio("2.25")},
        "max-wait": {"max-wait": secs(5)},
        "max-slow": {"max-slow": secs(6)},
        "give-up": {"give-up": word("keep")},
        "dither": BARE,
        "pseudocode": {"fasor-init": word("pseudocode")},
        "naming": {"naming": word("token")},
    }.items():
        world = World(calls=40, naming="token" if name == "naming" else "none")
        yield at_random(f"setting-{name}", "fasor", values, world)
    naming = World(naming="token")
    yield at_random("luck", "fasor")
    yield at_random("luck", "fasor-token", world=naming)
    yield at_random("luck", "fasor-count", world=naming)
    yield at_random("exact-only", "fasor-count", {"echo": word("exact-only")}, naming)


def vector_a(name: str, settings: Settings | None = None) -> Case:
    """Four samples, and both ends of the first wait's interval after each."""
    script = Script(name, "fasor", settings)
    for rtt in ("0.6", "0.7", "1.0", "0.7"):
        script.series(1)
        script.series(1, HIGHEST)
        script.clean(micros(rtt))
    script.series(2, MIDDLE)
    script.series(2, HIGHEST)
    return script.case


def prepared(name: str, preset: str, settings: Settings) -> Script:
    """After the samples 0.6 s and 0.7 s."""
    script = Script(name, preset, settings)
    script.clean(micros("0.6"))
    script.clean(micros("0.7"))
    return script


def vector_b() -> Case:
    """Down the states and back."""
    script = prepared("vector-b", "fasor", BARE)
    script.answered(micros("3.5"))
    script.series(4)
    script.answered(micros(2))
    script.series(4)
    script.answered(micros(1))
    script.series(3)
    return script.case


def vector_c() -> Case:
    """A cold start where every answer takes nine seconds."""
    script = Script("vector-c", "fasor", BARE)
    for _ in range(5):
        script.answered(micros(9))
    return script.case


def vector_d() -> Iterator[Case]:
    """An answer that names its copy."""
    for named in (0, 2):
        for preset in ("fasor-token", "fasor-count"):
            script = prepared(f"vector-d-copy-{named}", preset, BARE)
            exchange = script.start()
            script.expire(exchange, times=2)
            script.now = script.exchanges[exchange].sent[0] + micros("3.5")
            script.reply(exchange, named=named)
            script.series(2)
            yield script.case


def draws() -> Case:
    """Where the first wait falls before and after the first sample."""
    script = Script("draws", "fasor")
    chances = (0, 1, 4_295, MIDDLE - 1, MIDDLE, 3_221_225_472, HIGHEST - 1, HIGHEST)
    for chance in chances:
        script.series(2, chance)
    script.clean(micros("0.654321"))
    for chance in chances:
        script.series(2, chance)
    return script.case


def every_transition(
    preset: str, settings: Settings | None = None, variant: str = "", *, copies: int = 6
) -> Iterator[Case]:
    """Three states, every kind of evidence, one to so many copies."""
    for state in State:
        for shown, retransmissions in every_evidence(copies):
            if "echo" in (settings or {}) and "named" not in shown:
                continue
            name = "-".join((*state.name.lower().split("_"), *shown.split(), str(retransmissions), *variant.split()))
            script = Script(name, preset, settings)
            enter(script, state)
            show(script, script.start(MIDDLE), shown, retransmissions)
            # Two waits distinguish the states.
            script.expire(script.start())
            yield script.case


def every_evidence(copies: int) -> Iterator[tuple[str, int]]:
    """What a reply can show, and after how many retransmissions."""
    for retransmissions in range(copies):
        yield "nothing named", retransmissions
        yield "separate", retransmissions
        yield "first named", retransmissions
        if retransmissions > 0:
            yield "last named", retransmissions
        if retransmissions > 1:
            yield "middle named", retransmissions
    yield "separate last named", 2
    yield "empty", 3
    yield "further", 1
    yield "further", 3


def enter(script: Script, state: State) -> None:
    """Into a state: a clean exchange leads to the first, ambiguous ones down from there."""
    script.clean(micros("0.6"))
    for _ in range(state):
        exchange = script.start()
        script.expire(exchange)
        script.pass_time(SECOND)
        script.reply(exchange)


def show(script: Script, exchange: int, shown: str, retransmissions: int) -> None:
    """The exchange goes as far as that and is answered."""
    script.expire(exchange, times=retransmissions)
    script.pass_time(micros("0.7"))
    named: Named = None
    if shown == "first named":
        named = 0
    elif shown.endswith("last named"):
        named = retransmissions
    elif shown == "middle named":
        named = retransmissions // 2
    elif shown == "further":
        named = "further"
    if shown.startswith("separate"):
        script.reply(exchange, kind="separate", named=named)
    else:
        script.reply(exchange, kind="empty-ack" if shown == "empty" else "piggybacked", named=named)


def caps(name: str, settings: Settings | None = None) -> Case:
    """Waits that grow to the caps, and a SlowRTO beyond its own."""
    script = Script(name, "fasor", settings)
    script.series(8)
    script.clean(micros(20))
    script.series(4)
    script.answered(micros(170))
    script.series(5)
    script.answered(micros(164))
    script.series(5)
    script.clean(micros(70))
    script.series(3)
    return script.case


def draw_above_the_cap(name: str, settings: Settings, rtt: str = "20") -> Case:
    """The draw can lie above the cap of what follows from it, but not above both caps (E9)."""
    script = Script(name, "fasor", settings)
    script.clean(micros(rtt))
    for chance in (0, MIDDLE, HIGHEST):
        script.series(2, chance)
    for _ in range(2):
        exchange = script.start(HIGHEST)
        script.expire(exchange, MIDDLE)
        script.pass_time(SECOND)
        script.reply(exchange)
    script.series(3, HIGHEST)
    return script.case


def ends(preset: str, name: str, settings: Settings | None = None) -> Case:
    """Giving up, Reset, cancelling, before and after the first sample."""
    script = Script(name, preset, settings)
    script.give_up(script.start(MIDDLE), 1)
    script.series(3)
    script.give_up(script.start(MIDDLE))
    script.series(3)
    script.give_up(script.start(MIDDLE), 0)
    script.series(3)
    script.clean(micros("0.6"))
    for why in ("reset", "cancelled"):
        for copies in (0, 2):
            exchange = script.start(HIGHEST)
            script.expire(exchange, times=copies)
            script.pass_time(SECOND // 10)
            script.end(exchange, why)
            script.series(2)
    for copies in (0, 1, 3):
        script.give_up(script.start(), copies)
        script.series(2)
    script.clean(micros("0.6"))
    script.series(2)
    return script.case


def together(preset: str) -> Case:
    """Exchanges keep the series they began with, whatever state the others leave."""
    script = Script("together", preset)
    script.clean(micros("0.6"))
    one, two, three = script.start(), script.start(MIDDLE), script.start(HIGHEST)
    script.timeout(one)
    script.pass_time(SECOND)
    script.reply(one)
    script.timeout(two)
    four = script.start()
    script.timeout(four)
    script.timeout(two)
    script.pass_time(SECOND)
    script.reply(two)
    five = script.start(MIDDLE)
    script.timeout(five)
    script.timeout(four)
    script.reply(three)
    script.timeout(five)
    script.timeout(four)
    six = script.start()
    script.timeout(six)
    script.pass_time(SECOND)
    script.reply(five)
    script.reply(four)
    script.reply(six)
    script.series(3)
    return script.case


def plain() -> Case:
    """One plain message per FastRTO, and a byte a second in any case."""
    script = Script("plain", "fasor")
    for length in (40, 1):
        script.admit("plain", length)
        script.plain(length)
        script.admit("plain", length)
        script.admit("confirmable", length)
        script.pass_time(999_999)
        script.admit("plain", length)
        script.pass_time(1)
        script.admit("plain", length)
        script.pass_time(SECOND)
        script.admit("plain", length)
    script.clean(micros("0.6"))
    script.plain(40)
    script.admit("plain")
    script.pass_time(SECOND)
    script.answered(micros(5))
    script.plain(40)
    script.admit("plain")
    return script.case
