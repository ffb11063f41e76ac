"""What the numbers say, in plain sentences: every figure in them is computed from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from millpond.judge.compare import Comparison
from millpond.measure.links import COLLAPSE, OTHER_THRESHOLDS
from millpond.measure.reported import with_an_end
from millpond.measure.statistics import take
from millpond.results.directory import Cell, Group
from millpond.results.factor import Value
from millpond.show import labels
from millpond.show.report.grid import Grid, only, rate

LEAST = 1 - COLLAPSE
"""A link whose goodput ratio is below this has collapsed."""


@dataclass(frozen=True)
class Glance:
    """The state of one cell in a few numbers."""

    cell: Cell
    controller: str
    """What the controller is called."""
    place: str
    """What tells cells apart, in words."""
    spot: tuple[Value, ...]
    """The same as values."""
    useful_share: float
    """Share of the bytes carried by the bottleneck that completed an exchange, median over the runs."""
    copies: float
    """Copies of an exchange, mean over all completed exchanges."""
    completion: float
    """Median flow completion time in seconds, of the clients whose last request was answered; NaN if none was."""
    done: float
    """Share of all clients that had all their answers at last."""
    unnecessary: float
    """Median number of unnecessary retransmissions of a client."""

    @property
    def collapsed(self) -> bool:
        """Whether most of what the bottleneck carries is of no use."""
        return self.useful_share < LEAST


def glances(grid: Grid) -> list[Glance]:
    """Every cell with one kind of controller on the first reading of the test bed, in the palette's order."""
    found = []
    order = grid.controllers()
    for cell in sorted(grid.plain(), key=lambda cell: order.index(only(cell))):
        counts = grid.measures.histogram(grid.measures.of(cell))
        total = sum(counts.values())
        share = grid.estimated("useful_share", cell).value
        if np.isfinite(share):
            found.append(
                Glance(
                    cell,
                    grid.label(only(cell)),
                    grid.spot_in_words(cell),
                    grid.spot(cell),
                    share,
                    1 + sum(k * n for k, n in counts.items()) / total if total else float("nan"),
                    grid.estimated("fct", cell).value,
                    _complete(grid, cell),
                    grid.estimated("unnecessary_retx_per_client", cell).value,
                )
            )
    return found


def hardest(grid: Grid, found: Sequence[Glance]) -> list[Glance]:
    """Those of the places that the study looks at closely."""
    return [glance for stage in grid.stages for glance in found if stage.covers(glance.cell)]


def tally(comparison: Comparison) -> str:
    """How many claims hold and how many figures are met, in the very words of the terminal."""
    return f"Ours beside what is published: {comparison.closing()}."


def study_story(grid: Grid) -> list[str]:
    """The lead of a study or sweep: what the collapse is, where it happens, and which setting prevents it."""
    found = glances(grid)
    if not any(glance.done for glance in found):
        return ["No client had all its answers in these runs."]
    worst = min(found, key=lambda g: g.useful_share)
    place = f", {worst.place}" if worst.place else ""
    if not worst.collapsed:
        return [
            f"No link collapses in these runs. The lowest goodput ratio of the bottleneck is "
            f"{labels.percent(worst.useful_share)}: {worst.controller}{place}. A link has collapsed when less than "
            f"{labels.percent(LEAST)} of the bytes it carries complete an exchange."
        ]
    sentences = [_what(worst), _why(grid, worst), _who([g for g in found if g.spot == worst.spot])]
    other = _elsewhere(grid, found, worst)
    if other is not None:
        factor, glance = other
        sentences.append(
            f"With {grid.factors[factor].say(glance.cell.columns[factor])} instead, the same {glance.controller} keeps "
            f"a goodput ratio of {labels.percent(glance.useful_share)}{_completion(glance)}."
        )
    return [sentence for sentence in sentences if sentence]


def scenario_story(grid: Grid) -> list[str]:
    """The lead of a single scenario: who is done by when, and what the bottleneck did."""
    cell = grid.cells[0]
    runs = "1 run" if cell.replications == 1 else f"{cell.replications} runs"
    several = len(cell.groups) > 1
    # what the server sends to clients is distinguished from what they ask: else each of them would count twice
    sentences = [] if any(group.traffic != "requests" for group in cell.groups) else [_done(grid, cell, None, "", runs)]
    if several:
        sentences += [_done(grid, cell, group, grid.label(group.algorithm), "") for group in cell.groups]
    link = grid.bottleneck(cell)
    share = grid.estimated("useful_share", cell).value
    if np.isfinite(share):
        queue = take(grid.measures.link_column(cell, "queue_max_bytes", link), "max")
        of_mesh = f"busiest radio is that of {labels.link(cell.scenario, link)}"
        busiest = of_mesh if cell.scenario.get("mesh") else f"busiest link is the {link}"
        sentences.append(
            f"The {busiest}: {labels.percent(share)} of the bytes it carried completed an exchange, "
            f"and its queue grew to {labels.size(queue)}{_waiting(cell, link, queue)}."
        )
        if share < LEAST:
            sentences.append(
                f"That is congestion collapse: the link is busy, but more than {labels.percent(COLLAPSE)} of what it "
                f"carries are copies that nobody needs any more."
            )
        sentences += near_the_line(grid)
    for group in cell.groups:
        sent = grid.estimated("unnecessary_retx_per_client", cell, group).value
        if np.isfinite(sent) and not grid.reported.outcome(cell, group).is_silent:
            whose = f" of {grid.label(group.algorithm)}" if several else ""
            copies = f"{labels.plain(sent)} unnecessary retransmission{'' if sent == 1 else 's'}"
            sentences.append(f"The median client{whose} made {copies}.")
    return sentences


def near_the_line(grid: Grid) -> list[str]:
    """Where the line would have to be drawn for another verdict, if that is near."""
    wasted = grid.measures.estimate("wasted_share", next(iter(grid.measures.populations()))).value
    collapsed = wasted > COLLAPSE
    other = [at for at in OTHER_THRESHOLDS if (wasted > at) != collapsed]
    if not other:
        return []
    nearest = min(other, key=lambda at: abs(at - COLLAPSE))
    verdict = "not be one" if collapsed else "be a collapse"
    return [f"With the line drawn at {labels.percent(nearest)} wasted it would {verdict}."]


def _complete(grid: Grid, cell: Cell) -> float:
    """The share of the clients that had all their answers at last, also of those whose work has no end."""
    told, course = grid.reported.outcome(cell), grid.reported.course(cell)
    return course.end if course.of else told.complete / max(1, told.clients - told.silent)


def _done(grid: Grid, cell: Cell, group: Group | None, who: str, runs: str) -> str:
    """How many of the clients have everything, and when half and almost all of all of them had."""
    told, course = grid.reported.outcome(cell, group), grid.reported.course(cell, group)
    if told.is_silent:
        return f"{who}: no client asked anything." if who else "No client asked anything."
    asked = told.clients - told.silent
    sentence = f"{labels.count(told.complete)} of {labels.count(asked)} clients{' that asked' if told.silent else ''}"
    sentence += f" in {runs}" if runs else ""
    sentence = f"{who}: {sentence}" if who else sentence
    sentence += " had all their answers"
    if told.complete < asked:
        sentence += f" ({labels.percent(told.complete / asked)})"
        parts = [f"{labels.count(told.lost)} lost at least one request"] if told.lost else []
        parts += [f"{labels.count(told.unfinished)} had not finished when the run ended"] if told.unfinished else []
        sentence += f"; {' and '.join(parts)}" if parts else ""
    counted = grid.reported.since(cell, group)
    if len(with_an_end(cell, group)) < (len(cell.groups) if group is None else 1) or len(counted) > 1:
        # of one whose work goes on nothing tells when it is done, nor of all with it; nor of those that begin apart
        return f"{sentence}."
    times = [(words, course.by(share)) for share, words in ((0.5, "half"), (0.99, "99\N{NARROW NO-BREAK SPACE}%"))]
    reached = [f"{words} of all clients by {labels.number(time)} s" for words, time in times if time is not None]
    never = [f"{words} of all clients never" for words, time in times if time is None]
    after = "".join(f" after event {event} of the timeline" for event in counted if event)
    return f"{sentence}: {', '.join((*reached, *never))}{after}."


def _what(worst: Glance) -> str:
    place = f"With {worst.place}, " if worst.place else ""
    return (
        f"Congestion collapse is a link that is busy, but mostly with copies that nobody needs any more. "
        f"{place}{worst.controller} sends each message {worst.copies:.1f} times: only "
        f"{labels.percent(worst.useful_share)} of the bytes that the bottleneck carries complete an exchange"
        f"{_completion(worst)}."
    )


def _completion(glance: Glance) -> str:
    """How long its clients take, with the share of all that this speaks of."""
    if not np.isfinite(glance.completion):
        return ", and no client has a completion time"
    took = f"the median client needs {labels.number(glance.completion)} s"
    if glance.done < 1:
        took = (
            f"only {labels.percent(glance.done)} of the clients have all their answers (median completion time of "
            f"those whose last request was answered: {labels.number(glance.completion)} s)"
        )
    return f", and {took}"


def _why(grid: Grid, worst: Glance) -> str:
    cell, link = worst.cell, grid.bottleneck(worst.cell)
    of_link = partial(grid.measures.link_column, cell, link=link)
    queue, useful = (take(of_link(name), "median") for name in ("queue_max_bytes", "useful_bytes"))
    dropped = float(of_link("dropped_queue_packets").sum())
    lost = "No packet is lost there"
    if dropped > 0:
        lost = f"{labels.count(dropped / cell.replications)} packets a run are dropped there"
    bits = rate(cell, link)
    needed = (
        f" Without useless copies the same link would need {labels.number(useful * 8 / bits, 3)} s." if bits else ""
    )
    return (
        f"{lost}, but the queue grows to {labels.size(queue)}{_waiting(cell, link, queue)}, "
        f"retransmission timers run out long before the answer comes, and every copy they send makes the queue "
        f"longer.{needed}"
    )


def _who(same: Sequence[Glance]) -> str:
    """Which controllers withstand the worst place, and which do not."""
    safe = sorted((g for g in same if not g.collapsed), key=lambda g: -g.useful_share)
    gone = [g for g in same if g.collapsed]
    if safe:
        told = [f"{g.controller} (goodput ratio {labels.percent(g.useful_share)}{_median(g)})" for g in safe]
        sentences = [f"In the same place it is prevented by {labels.listed(told)}."]
    else:
        sentences = ["None of the controllers that were run prevents it there."]
    names = labels.listed([f"{g.controller} ({labels.percent(g.useful_share)})" for g in gone])
    sentences.append(f"{names} {'collapses' if len(gone) == 1 else 'collapse'} there.")
    return " ".join(sentences)


def _median(glance: Glance) -> str:
    return f", median {labels.number(glance.completion, 3)} s" if np.isfinite(glance.completion) else ""


def _elsewhere(grid: Grid, found: Sequence[Glance], worst: Glance) -> tuple[str, Glance] | None:
    """The same controller with one factor of numbers changed that keeps it from collapse: the one with fewest steps."""
    best: tuple[int, str, Glance] | None = None
    for at, name in enumerate(grid.columns):
        values = grid.factors[name].ordered(glance.cell.columns.get(name, "") for glance in found)
        if any(isinstance(value, str) for value in values):
            continue
        here = values.index(worst.spot[at])
        for glance in found:
            alike = glance.spot[:at] == worst.spot[:at] and glance.spot[at + 1 :] == worst.spot[at + 1 :]
            if alike and glance.controller == worst.controller and not glance.collapsed:
                steps = abs(values.index(glance.spot[at]) - here)
                if best is None or steps < best[0]:
                    best = steps, name, glance
    return None if best is None else best[1:]


def _waiting(cell: Cell, link: str, queued: float) -> str:
    bits = rate(cell, link)
    return f", {labels.number(queued * 8 / bits, 3)} s of waiting" if bits else ""
