"""What the numbers say, in plain sentences: every figure in them is computed from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millpond.judge.checks import COLLAPSE
from millpond.judge.compare import Comparison
from millpond.measure.population import column_in_words, path_in_words
from millpond.measure.statistics import take
from millpond.results.directory import BASE_COLUMNS, Cell
from millpond.show.report import labels
from millpond.show.report.data import Data, number, only, rate

LEAST = 1 - COLLAPSE
"""A link whose useful share is below this has collapsed."""


@dataclass(frozen=True)
class Glance:
    """The state of one cell in four numbers."""

    cell: Cell
    place: str
    """Clients, buffer and what else tells cells apart, in words."""
    useful_share: float
    """Share of the bytes carried by the bottleneck that completed an exchange, median over the runs."""
    copies: float
    """Copies of an exchange, mean over all completed exchanges."""
    completion: float
    """Median flow completion time in seconds."""
    unnecessary: float
    """Median number of unnecessary retransmissions of a client."""

    @property
    def controller(self) -> str:
        """The preset."""
        return only(self.cell)

    @property
    def workload(self) -> str:
        """The workload."""
        return str(self.cell.columns.get("workload", ""))

    @property
    def collapsed(self) -> bool:
        """Whether most of what the bottleneck carries is of no use."""
        return self.useful_share < LEAST


def glances(data: Data) -> list[Glance]:
    """Every cell with one kind of controller and the fixed path that has finished clients, in the palette's order."""
    found = []
    order = data.controllers()
    for cell in sorted(data.plain(), key=lambda cell: order.index(only(cell))):
        counts = data.histogram(cell)
        total = sum(counts.values())
        share = data.useful_share(cell)
        if total and np.isfinite(share):
            completion = data.values("flows", "fct_us", cell)
            found.append(
                Glance(
                    cell,
                    _place(data, cell),
                    share,
                    1 + sum(k * n for k, n in counts.items()) / total,
                    take(completion[np.isfinite(completion)], "median"),
                    take(data.values("flows", "unnecessary", cell), "median"),
                )
            )
    return found


def hardest(data: Data, found: Sequence[Glance]) -> list[Glance]:
    """Those with most clients at the largest buffer, where the study looks closely."""
    here = [g for g in found if data.stage.covers(g.cell)]
    top = max(((number(g.cell, "clients"), number(g.cell, "buffer_bytes")) for g in here), default=None)
    return [g for g in here if (number(g.cell, "clients"), number(g.cell, "buffer_bytes")) == top]


def _place(data: Data, cell: Cell) -> str:
    words = [column_in_words(name, cell.columns.get(name, "")) for name in data.varying]
    size = labels.buffer_phrase(number(cell, "buffer_bytes"))
    return ", ".join([f"{labels.clients(number(cell, 'clients'))} and {size}", *(word for word in words if word)])


def tally(comparison: Comparison) -> str:
    """How many claims hold and how many figures are met."""
    compared = [figure.relative for figure in comparison.figures if figure.relative is not None]
    near = sum(abs(relative) <= 0.05 for relative in compared)
    told = []
    for name in comparison.variants() or [""]:
        counts, where = comparison.counts(name), f" {path_in_words(name)}" if name else ""
        told.append(
            f"of which{where} hold {counts['holds']}, do not hold {counts['fails']}, "
            f"cannot be judged {counts['unjudged']}"
        )
    return (
        f"Published claims: {len(comparison.claims)}, {'; '.join(told)}. Published figures that could be compared: "
        f"{len(compared)}, of which met within 5\N{NARROW NO-BREAK SPACE}%: {near}."
    )


def study_story(data: Data) -> list[str]:
    """The lead of a study: what the collapse is, where it happens, and which setting prevents it."""
    found = glances(data)
    if not found:
        return ["No client finished in these runs, so there is nothing to tell."]
    worst = min(found, key=lambda g: g.useful_share)
    if not worst.collapsed:
        return [
            f"No link collapses in these runs. The lowest useful share of the bottleneck is "
            f"{labels.percent(worst.useful_share)}: {labels.controller(worst.controller)}, {worst.place}, "
            f"{worst.workload} clients. A link has collapsed when less than {labels.percent(LEAST)} of the bytes it "
            f"carries complete an exchange."
        ]
    sentences = [_what(worst), _why(data, worst)]
    same = [g for g in found if _where(g) == _where(worst)]
    sentences.append(_who(same))
    small = _smaller(found, worst)
    if small is not None:
        sentences.append(
            f"A smaller buffer prevents it as well: with {labels.buffer(number(small.cell, 'buffer_bytes'))} the same "
            f"{labels.controller(small.controller)} clients keep a useful share of "
            f"{labels.percent(small.useful_share)} and finish in {labels.number(small.completion)} s (median), because "
            f"a shorter queue lets answers through sooner and drops what does not fit."
        )
    return [sentence for sentence in sentences if sentence]


def scenario_story(data: Data) -> list[str]:
    """The lead of a single scenario: who finished, and what the bottleneck did."""
    cell = data.cells[0]
    completion = data.values("flows", "fct_us", cell)
    done = completion[np.isfinite(completion)]
    runs = "1 run" if cell.replications == 1 else f"{cell.replications} runs"
    sentences = [
        f"{labels.count(done.size)} of {labels.count(completion.size)} clients finished in {runs}"
        + (f", half of them within {labels.number(take(done, 'median'))} s." if done.size else ".")
    ]
    link = data.bottleneck(cell)
    share = data.useful_share(cell)
    if np.isfinite(share):
        queue = take(data.values("links", "queue_max_bytes", cell, link=link), "max")
        sentences.append(
            f"The busier link is the {link}: {labels.percent(share)} of the bytes it carried completed an exchange, "
            f"and its queue grew to {labels.number(queue / 1e3, 3)} kB{_waiting(cell, link, queue)}."
        )
        if share < LEAST:
            sentences.append(
                f"That is congestion collapse: the link is busy, but more than {labels.percent(COLLAPSE)} of what it "
                f"carries are copies that nobody needs any more."
            )
    sent = take(data.values("flows", "unnecessary", cell), "median")
    if np.isfinite(sent):
        sentences.append(f"The median client made {labels.plain(sent)} unnecessary retransmissions.")
    return sentences


def _what(worst: Glance) -> str:
    return (
        f"Congestion collapse is a link that is busy, but mostly with copies that nobody needs any more. With "
        f"{worst.place}, {labels.controller(worst.controller)} ({worst.workload} clients) sends each message "
        f"{worst.copies:.1f} times: only {labels.percent(worst.useful_share)} of the bytes that the bottleneck carries "
        f"complete an exchange, and the median client needs {labels.number(worst.completion)} s."
    )


def _why(data: Data, worst: Glance) -> str:
    cell, link = worst.cell, data.bottleneck(worst.cell)
    queue = take(data.values("links", "queue_max_bytes", cell, link=link), "median")
    dropped = float(data.values("links", "dropped_queue_packets", cell).sum())
    useful = take(data.values("links", "useful_bytes", cell, link=link), "median")
    lost = "No packet is lost there"
    if dropped > 0:
        lost = f"{labels.count(dropped / cell.replications)} packets a run are dropped there"
    bits = rate(cell, link)
    needed = (
        f" Without useless copies the same link would need {labels.number(useful * 8 / bits, 3)} s." if bits else ""
    )
    return (
        f"{lost}, but the queue grows to {labels.number(queue / 1e3, 3)} kB{_waiting(cell, link, queue)}, "
        f"retransmission timers run out long before the answer comes, and every copy they send makes the queue "
        f"longer.{needed}"
    )


def _who(same: Sequence[Glance]) -> str:
    """Which controllers withstand the worst place in all workloads, in some, and in none."""
    by_name: dict[str, list[Glance]] = {}
    for glance in same:
        by_name.setdefault(glance.controller, []).append(glance)
    safe = {name: gs for name, gs in by_name.items() if not any(g.collapsed for g in gs)}
    torn = {name: gs for name, gs in by_name.items() if name not in safe and not all(g.collapsed for g in gs)}
    sentences = []
    if safe:
        told = [
            f"{labels.controller(name)} (useful share {_range(gs)}, median {_seconds(gs)})"
            for name, gs in sorted(safe.items(), key=lambda item: -min(g.useful_share for g in item[1]))
        ]
        sentences.append(f"In the same place it is prevented by {_and(told)}.")
    else:
        sentences.append("None of the controllers that were run prevents it there.")
    gone = {name: gs for name, gs in by_name.items() if name not in safe and name not in torn}
    for name, gs in gone.items():
        workloads = _and([f"{g.workload} ({labels.percent(g.useful_share)})" for g in gs])
        sentences.append(f"{labels.controller(name)} collapses there with {workloads} clients.")
    for name, gs in torn.items():
        good = _and([f"{g.workload} clients ({labels.percent(g.useful_share)} useful)" for g in gs if not g.collapsed])
        bad = _and([f"{g.workload} ones ({labels.percent(g.useful_share)})" for g in gs if g.collapsed])
        sentences.append(f"{labels.controller(name)} withstands it with {good}, but not with {bad}.")
    return " ".join(sentences)


def _smaller(found: Sequence[Glance], worst: Glance) -> Glance | None:
    """The same controller and clients at the smallest buffer, if that keeps it from collapse."""
    others = [
        g
        for g in found
        if g.controller == worst.controller
        and g.workload == worst.workload
        and _where(g)[2:] == _where(worst)[2:]
        and number(g.cell, "clients") == number(worst.cell, "clients")
        and number(g.cell, "buffer_bytes") < number(worst.cell, "buffer_bytes")
    ]
    smallest = min(others, key=lambda g: number(g.cell, "buffer_bytes"), default=None)
    return smallest if smallest is not None and not smallest.collapsed else None


def _where(glance: Glance) -> tuple[object, ...]:
    further = sorted((name, value) for name, value in glance.cell.columns.items() if name not in BASE_COLUMNS)
    return (number(glance.cell, "clients"), number(glance.cell, "buffer_bytes"), *further)


def _waiting(cell: Cell, link: str, queued: float) -> str:
    bits = rate(cell, link)
    return f", {labels.number(queued * 8 / bits, 3)} s of waiting" if bits else ""


def _range(found: Sequence[Glance]) -> str:
    shares = sorted({labels.percent(g.useful_share) for g in found}, key=len)
    low, high = min(g.useful_share for g in found), max(g.useful_share for g in found)
    return shares[0] if len(shares) == 1 else f"{labels.percent(low)} to {labels.percent(high)}"


def _seconds(found: Sequence[Glance]) -> str:
    low, high = min(g.completion for g in found), max(g.completion for g in found)
    texts = [labels.number(low, 3), labels.number(high, 3)]
    return f"{texts[0]} s" if texts[0] == texts[1] else f"{texts[0]} to {texts[1]} s"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
