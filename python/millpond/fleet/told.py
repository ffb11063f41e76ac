"""The answer in words and rows, the same on the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from millpond.fleet.answer import Answer
from millpond.fleet.description import NEVER, REPORTING
from millpond.fleet.outcome import Outcome
from millpond.fleet.remedies import Remedy
from millpond.fleet.scenario import HEADER, LEAD_S, TOKEN, path
from millpond.fleet.search import Edge
from millpond.fleet.security import COSTS
from millpond.fleet.verdict import BARELY, MEANS, SURE, VERDICTS, WORDS
from millpond.measure.reported import SHARES
from millpond.plan.values import in_units
from millpond.show import labels

MINUS = "\N{MINUS SIGN}"
REMEDIES = (
    "remedy", "needs", "verdict", "safe", "never report", "done", "sooner by", "sent per message", "useful",
    "others late",
)  # fmt: skip
#: Before what was assumed.
CHANGED_BY = "What stands in brackets are keys of the description: --set KEY=VALUE changes them."


def headline(answer: Answer) -> str:
    """The answer in one line."""
    outcome = answer.as_it_is
    return f"{WORDS[outcome.verdict]}: {answer.fleet.title}"


def lead(answer: Answer) -> list[str]:
    """What a manager needs to know, a sentence or two a line."""
    outcome, goal = answer.as_it_is, answer.fleet.goal
    told = [
        never(answer),
        f"{WORDS[outcome.verdict]} means: {MEANS[outcome.verdict]}. {_probabilities(outcome)}",
    ]
    reached, least = outcome.median("goal_s"), answer.least_s
    is_never = f"they never are within the horizon of {time(answer.fleet.horizon_s)}"
    when = is_never if math.isinf(reached) else f"they are after {time(reached)}"
    # A gateway that has asked once answers many: what crosses the cell is then less than a request of each device.
    is_shared = answer.fleet.keys.try_gateway
    but = ", where each has an answer of its own" if is_shared else ""
    told.append(
        f"Goal: {100 * goal.share:g} % of the devices done within {time(goal.within_s)}; {when} (median of "
        f"{len(outcome.runs)} runs). The cell needs at least {time(least)} for that, whatever devices do{but}; "
        f"one alone takes {time(answer.cost.alone_s)}."
    )
    if least > goal.within_s and is_shared:
        told.append("Only answers that devices share can meet that goal: the cell is slower than answers for each.")
    elif least > goal.within_s:
        told.append("No setting can meet that goal, the cell is slower: fewer devices, smaller messages, or more time.")
    elif least * BARELY > goal.within_s:
        told.append(
            f"That goal is barely above what the cell can carry, {labels.number(goal.within_s / least, 3)} times its "
            f"own minimum: no setting {'without shared answers ' if is_shared else ''}has much room."
        )
    if lacking := missed(answer):
        told.append(f"Missed: {'; '.join(lacking)}.")
    told.append(_helps(answer))
    told += spreads(answer)
    if (waited := answer.uplink_first_s) is not None:
        told.append(
            f"A calm server alone cannot help here: requests wait up to {time(waited)} in the uplink, so that the "
            "first wave of retransmissions is on its way before any server has seen one. A gateway that withholds, or "
            "spread starts, act before that queue."
        )
    return told


def never(answer: Answer) -> str:
    """How many devices never report, in a sentence."""
    outcome, until = answer.as_it_is, time(answer.fleet.horizon_s)
    shares = outcome.values("never")
    low, high = labels.percent(float(shares.min())), labels.percent(float(shares.max()))
    if not shares.max():
        return f"Every device reports within {until}."
    between = "" if low == high else f" ({low} to {high} over the runs)"
    return (
        f"{labels.percent(outcome.median('never'))} of the devices never report{between}: they gave up, or have no "
        f"answer within {until}."
    )


def spreads(answer: Answer) -> list[str]:
    """What the search for the least spread of starts found, in a sentence; nothing where none was made."""
    found = answer.spread
    if found is None:
        return []
    if found.least_s is None or found.outcome is None:
        return [f"Starts spread over up to {time(found.points[-1][0])} are not safe; longer ones miss the goal's time."]
    beside = f"; with {time(found.unsafe_s)} {_safe(found.below)}" if found.below is not None else ""
    return [f"Least spread of starts that is safe: {time(found.least_s)} ({_safe(found.outcome)}{beside})."]


def missed(answer: Answer) -> list[str]:
    """Which parts of the goal the fleet misses as it is, by the medians of its runs."""
    outcome, goal = answer.as_it_is, answer.fleet.goal
    found = []
    if outcome.median("goal_s") > goal.within_s:
        found.append(f"{100 * goal.share:g} % of the devices are not done within {time(goal.within_s)}")
    if outcome.median("copies") > goal.copies:
        found.append(
            f"a message takes {labels.number(outcome.median('copies'), 3)} transmissions, not {goal.copies:g} at most"
        )
    if outcome.median("useful") < goal.useful:
        useful = labels.percent(outcome.median("useful"))
        found.append(
            f"{useful} of what the {outcome.bottleneck} carries is useful, not {100 * goal.useful:g} % at least"
        )
    return found


def facts(answer: Answer) -> list[tuple[str, str]]:
    """What the runs of the fleet as it is gave, each with its range over runs."""
    outcome = answer.as_it_is
    done = [(f"{100 * share:g} % of the devices done", spread(outcome, f"done_{100 * share:.0f}")) for share in SHARES]
    return [
        ("devices that never report", labels.percent(outcome.median("never"))),
        *done,
        ("transmissions of a message", spread(outcome, "copies", "")),
        ("spurious retransmissions, a device", spread(outcome, "spurious", "")),
        (f"goodput ratio of the {outcome.bottleneck}", labels.percent(outcome.median("useful"))),
        (
            "longest queue",
            f"{labels.size(outcome.median('queue_bytes'))}, {time(outcome.median('queue_s'))} of waiting",
        ),
        ("reports of others late", felt(outcome)),
        ("messages a device sends", spread(outcome, "messages", "")),
        ("bytes a device sends", spread(outcome, "bytes", "B")),
    ]


def remedies(answer: Answer, chosen: Sequence[Remedy] | None = None) -> list[tuple[str, ...]]:
    """The rows below `REMEDIES`: how it is, then the remedies, the best first."""
    rows = [_row(Remedy(answer.as_it_is, None, None))]
    return rows + [_row(remedy) for remedy in (answer.remedies if chosen is None else chosen)]


def untried(answer: Answer) -> list[str]:
    """Which pairs were tried and left out, in a sentence."""
    if not answer.no_gain:
        return []
    return [f"Pairs that are no better than one of both alone: {'; '.join(answer.no_gain)}."]


def edge(answer: Answer, found: Edge) -> str:
    """How far it is to the edge, in one line."""
    asked = answer.fleet.keys.devices
    what = found.change.title
    if found.largest == 0:
        return f"{what}: not even one device is safe."
    if found.smallest_unsafe is None:
        return f"{what}: {found.largest} devices are safe, and no larger fleet was tried."
    room = (
        f"{labels.number(found.largest / asked, 3)} times this one" if found.largest >= asked
        else f"{labels.percent(found.largest / asked)} of this one"
    )  # fmt: skip
    return (
        f"{what}: the largest fleet that is safe has {found.largest} devices, {room}; {found.smallest_unsafe} are not."
    )


def time(seconds: float) -> str:
    """A time as people say it: `34.1 s`, `44.7 min`; never."""
    if math.isnan(seconds):
        return "\N{EN DASH}"
    if math.isinf(seconds):
        return "never"
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 10 * length / (5 if unit == "h" else 1):
            return f"{labels.number(seconds / length, 3)}\N{NARROW NO-BREAK SPACE}{unit}"
    return f"{labels.number(seconds, 3)}\N{NARROW NO-BREAK SPACE}s"


def felt(outcome: Outcome) -> str:
    """How long reports of others are late; to the end of the run where that is no time at all."""
    found = outcome.median("others_s")
    return "to the end" if math.isinf(found) else time(found)


def spread(outcome: Outcome, name: str, unit: str = "s") -> str:
    """The median of a number, and its least and largest over the runs."""
    values = outcome.values(name)
    values = values[~(values != values)]
    if not values.size:
        return "\N{EN DASH}"

    def written(value: float) -> str:
        return time(value) if unit == "s" else f"{labels.number(value, 3)} {unit}".rstrip()

    low, high = float(values.min()), float(values.max())
    middle = written(outcome.median(name))
    return middle if written(low) == written(high) else f"{middle} ({written(low)} to {written(high)})"


def assumed(answer: Answer) -> list[str]:
    """Traffic, headers, devices and server, runs."""
    return [_traffic(answer), _headers(answer), *_devices(answer), _everyday(answer), *_runs(answer)]


# ----------------------------------------------------------------------------------------------- helpers


def _probabilities(outcome: Outcome) -> str:
    parts = []
    for verdict in VERDICTS:
        share, low, high = outcome.probability(verdict)
        if share:
            between = f"95 % interval {100 * low:.0f} to {100 * high:.0f} %"
            parts.append(f"{WORDS[verdict].lower()} {100 * share:.0f} % ({between})")
    return f"Of {len(outcome.runs)} runs with different seeds: {', '.join(parts)}."


def _safe(outcome: Outcome) -> str:
    return f"{outcome.count('safe')} of {len(outcome.runs)} runs are safe"


def _helps(answer: Answer) -> str:
    if answer.as_it_is.verdict == "safe":
        told = "Nothing needs to be done."
        # of remedies that are all safe only chance may tell which is sooner
        sooner = next((remedy for remedy in answer.remedies if remedy.is_surely_sooner), None)
        return told if sooner is None else f"{told} Sooner done: {_title(sooner)}."
    easiest, best = answer.easiest, answer.best
    if easiest is not None:
        said = f"Safe with the least trouble ({easiest.outcome.change.effort.words}): {_title(easiest)}."
        return said if best is None or best == easiest else f"{said} Best of all: {_title(best)}."
    if best is None:
        return "Of what was tried, nothing helps, alone or in pairs."
    return f"Of what was tried, nothing makes it safe in {100 * SURE:g} % of the runs. What helps most: {_title(best)}."


def _title(remedy: Remedy) -> str:
    return f"{remedy.outcome.change.title}, done after {time(remedy.outcome.median('goal_s'))}"


def _signed(seconds: float) -> str:
    return f"{labels.number(seconds, 3).replace('-', MINUS)}\N{NARROW NO-BREAK SPACE}s"


def _row(remedy: Remedy) -> tuple[str, ...]:
    outcome = remedy.outcome
    sooner = "" if remedy.sooner is None else _signed(remedy.sooner)
    if remedy.interval is not None:
        sooner += f" ({_signed(remedy.interval[0])} to {_signed(remedy.interval[1])})"
    return (
        outcome.change.title,
        outcome.change.effort.words,
        outcome.verdict,
        f"{outcome.count('safe')}/{len(outcome.runs)}",
        labels.percent(outcome.median("never")),
        time(outcome.median("goal_s")),
        sooner,
        labels.number(outcome.median("copies"), 3),
        labels.percent(outcome.median("useful")),
        felt(outcome),
    )


def _traffic(answer: Answer) -> str:
    keys = answer.fleet.keys
    waking, event = keys.waking, keys.event
    if event.kind == "command":
        return f"The server asks each device once, with {event.command} (event.command)."
    if event.kind == "firmware":
        blocks = f"{event.image} in blocks of {event.block}, an exchange a block"
        return f"Each device fetches {blocks} (event.image, event.block)."
    report = f"a report of {keys.everyday.report} (everyday.report)"
    if event.kind == "hourly":
        return f"Each device sends {report}, answered by {waking.answer} (waking.answer)."
    does = []
    security = COSTS[keys.security]
    if security.flights:
        flights = ", ".join(f"{up} and {down} B" for up, down in security.flights)
        last = f", and {security.last} B with the first request" if security.last else ""
        does.append(f"a handshake of {flights}{last}, sent again after 1, 2, 4 ... 60 s (security)")
    if in_units(waking.registration):
        does.append(f"a registration of {waking.registration} (waking.registration)")
    if waking.observations:
        does.append(f"{_several(waking.observations, 'observation')} set up by the device (waking.observations)")
    if waking.readings:
        times = "" if waking.readings == 1 else f"{waking.readings} times "
        does.append(f"{times}{report} (waking.readings)")
    return f"Each device, one exchange after another: {'; '.join(does)}. Answers have {waking.answer} (waking.answer)."


def _headers(answer: Answer) -> str:
    keys, cell = answer.fleet.keys, path(answer.fleet)
    header = in_units(str(cell.get("header", HEADER)))
    security = COSTS[keys.security]
    inside = f", {security.request} B of {security.title} (security)" if security.request else ""
    answers = f" ({security.response} B in answers)" if security.response != security.request else ""
    sent, size = (answer.as_it_is.median(name) for name in ("messages", "bytes"))
    return (
        f"Sizes are payloads. Each message has {header:g} B below CoAP{inside}{answers}, and in CoAP 4 B, a token of "
        f"{TOKEN} B, its options and the payload marker. As it is a device sends {sent:.3g} messages and {size:.4g} B "
        "with all of them."
    )


def _devices(answer: Answer) -> list[str]:
    keys = answer.fleet.keys
    groups = [
        f"{size} {group.name}: controller {_name(group.controller)}, MAX_RETRANSMIT {group.max_retransmit}, reconnect "
        f"{_name(group.reconnect)}"
        for size, group in zip(answer.fleet.sizes, keys.group, strict=True)
    ]
    duplicates = {
        "stored": "answers every retransmission with the reply that it stored",
        "afresh": "processes every retransmission afresh",
        "calm": "is calm",
    }[keys.server.duplicates]
    given_up = "" if any(group.reconnect == "lwm2m" for group in keys.group) else (
        " A device that gives a message up is never done: applications that begin anew afterwards are not modelled."
    )  # fmt: skip
    return [f"{'; '.join(groups)} (group).{given_up}", f"The server {duplicates} (server.duplicates)."]


def _everyday(answer: Answer) -> str:
    every, others = answer.fleet.keys.everyday.every, answer.fleet.keys.everyday.others
    own = {NEVER: "Devices report on no other day", REPORTING: "Devices report as in 3GPP TR 45.820 annex E"}.get(
        every, f"Each device reports every {every} besides"
    )
    load = f"{100 * answer.fleet.keys.everyday.others_load:g} %"
    beside = f"; {others} others report to take {load} of the cell" if others else "; nobody else is in the cell"
    return f"{own} (everyday.every){beside} (everyday.others, everyday.others_load)."


def _runs(answer: Answer) -> list[str]:
    arrival = answer.fleet.keys.event.arrival
    back = {"power-cut": "devices are back within 10 s, Beta(3, 4)"}.get(answer.fleet.keys.event.kind, "all at once")
    seeds = answer.seeds
    return [
        f"When it happens: {back if arrival is None else _name(arrival)} (event.arrival), {LEAD_S} s after a run "
        f"begins; it ends {time(answer.fleet.horizon_s)} later, and what is not done by then counts as never done "
        "(horizon).",
        f"One device alone keeps the {answer.cost.bottleneck} busy for {time(answer.cost.work_s)}, which was "
        "measured; the cell's own minimum and the times over which starts are spread follow from that.",
        "The cell is what its path says: rate, delay, buffer, loss, and random access if it has any. Seeds "
        f"{seeds[0]} to {seeds[-1]}.",
    ]


def _several(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _name(written: object) -> str:
    """A word, or a table as TOML has it on one line."""
    if isinstance(written, dict):
        return "{ " + ", ".join(f"{key} = {value}" for key, value in written.items()) + " }"
    return str(written)
