"""The page of the study `echo`: what replies name, and what becomes of timers that believe them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from millpond.judge.compare import Comparison
from millpond.measure.evidence import KINDS
from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Listing, Missing, Picture, Section
from millpond.show.report import published, study
from millpond.show.report.grid import Grid, only
from millpond.studies.echo import naming, timers
from millpond.studies.echo.naming import SERVERS, Answer
from millpond.studies.echo.timers import FCT, NEEDLESS, WAIT

LATE, EARLY = 3, 0.8
"""The ratios of initial wait and round trip: a timer that is late, and one that is too early."""
BOUNDS = "Bounds leave room for the error of sampling, and where theory has a value they lie around it."
SPREADS = "Markers are the median, lines reach from the 10th to the 90th percentile; the scale is logarithmic."


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    found = [_summary(grid), _naming(grid), _late(grid), _early(grid), _narrow(grid)]
    if comparison is not None:
        judged = published.published_claims(comparison)
        told = f"{judged.paragraphs[0]} {BOUNDS}"
        found.append(replace(judged, title="The findings as checks", paragraphs=(told,)))
    return [*found, study.what_was_run(grid, None)]


def _summary(grid: Grid) -> Section:
    told = [
        "A request that was sent again can carry something that tells its copies apart, and a reply that echoes it "
        "seems to say which copy it answers. With a server that answers a duplicate with the stored reply "
        "(RFC 7252 §4.5) it says which copy was processed first. These runs count how often that misleads, and follow "
        "timers that believe it.",
    ]
    try:
        told += _in_short(naming.answers(grid))
    except Missing as reason:
        told.append(str(reason))
    told += _consequence(grid)
    return Section("summary", "In short", tuple(told))


def _in_short(found: list[Answer]) -> list[str]:
    stored = [answer for answer in found if answer.server == "stored"]
    last = max(answer.shares["names_last_wrongly"].value for answer in found)
    told = [
        "No reply named the last copy wrongly, with either kind of server."
        if last == 0
        else f"Up to {labels.percent(last)} of the replies named the last copy wrongly."
    ]
    late = [answer for answer in stored if answer.ratio > 1]
    if late:
        low, high = (f(answer.shares["names_earlier_wrongly"].value for answer in late) for f in (min, max))
        told.append(
            f"With stored replies and a timer later than the round trip, {labels.percent(low)} to "
            f"{labels.percent(high)} of the replies after a retransmission name a wrong copy, at every loss rate: half "
            "of them, as theory has it."
        )
    wrong = [answer.error.value / answer.ratio for answer in stored if answer.error.n and answer.ratio >= 1]
    if wrong:
        told.append(
            f"They are mistaken by {min(wrong):.1f} to {max(wrong):.1f} first waits in the mean, the more the more is "
            "lost."
        )
    return told


def _consequence(grid: Grid) -> list[str]:
    losses = sorted({float(cell.columns["error_profile"]) for cell in timers.picked(grid, bottleneck="none")})
    told = []
    for loss in (loss for loss in losses if loss in (2.0, 10.0, 30.0)):
        times = {}
        for cell in timers.picked(grid, bottleneck="none", ratio=LATE, server="stored", error_profile=loss):
            spread = timers.completion(grid, cell)
            times[str(cell.columns["algorithm"])] = math.nan if spread is None else spread.median
        if {"fasor_token", "fasor_token_exact"} <= set(times):
            trusted, exact = times["fasor_token"], times["fasor_token_exact"]
            told.append(f"{labels.number(trusted, 3)} s instead of {labels.number(exact, 3)} s at {loss:g} % loss")
    if not told:
        return []
    return [
        "A timer that believes such replies feeds on its own mistakes: the wrong sample is as long as the timer was, "
        "so that the next one is longer still. If it believes every named copy instead of the last alone, FASOR with "
        f"tokens needs {', '.join(told)} for {_exchanges(grid)} exchanges (medians, stored replies)."
    ]


def _naming(grid: Grid) -> Section:
    try:
        found = naming.answers(grid)
    except Missing:
        found = []
    return Section(
        "naming",
        "What replies name",
        (
            "Replies after at least one retransmission, with a first wait that never changes and a constant round-trip "
            "time. Which copy a reply names stands beside which copy caused it.",
        ),
        (
            Picture(
                "named-copies",
                "What replies name, and whether it is true",
                "Shares of the replies after a retransmission. Left of 1 the timer runs out before the answer can be "
                "there, right of it only after a loss. Theory: the copies before the last all failed, and the reply "
                "names the last one rightly if none of them arrived.",
                partial(naming.named_copies, grid),
            ),
            Picture(
                "naming-errors",
                "By how much those are mistaken that name a wrong copy",
                "Mean of sample less true round-trip time, with 95 % intervals over replications; stored replies. The "
                "dotted line is one first wait.",
                partial(naming.naming_errors, grid),
            ),
        ),
        listings=(_wrong_names(found), _table(grid, found)) if found else (),
    )


def _table(grid: Grid, found: Sequence[Answer]) -> Listing:
    rows: list[tuple[str, ...]] = []
    for server, words in SERVERS.items():
        rows.append((words,))
        for answer in (a for a in found if a.server == server):
            shares = [_share(answer, kind) for kind in KINDS]
            ends = "" if answer.error.interval is None else " ({:.2f} to {:.2f})".format(*answer.error.interval)
            error = "" if np.isnan(answer.error.value) else f"{answer.error.value:.2f}{ends}"
            rows.append((f"{answer.loss:g} %", f"{answer.ratio:g}", *shares, error))
    return Listing(
            "naming-table",
            ("loss each way", "first wait / round trip", "last, rightly", "last, wrongly", "earlier, rightly",
             "earlier, wrongly", "error of wrong ones (round trips)"),
            tuple(rows),
            caption="Shares of the replies after a retransmission, with 95 % intervals over replications.",
            numeric=(1, 2, 3, 4, 5, 6),
            title="All shares and errors",
            folded=True,
            detail=True,
            data=naming.named_copies(grid).rows,
        )  # fmt: skip


def _wrong_names(found: Sequence[Answer]) -> Listing:
    """Shares of replies that name a wrong copy, and their error: a row per loss, a column per ratio."""
    ratios = sorted({answer.ratio for answer in found})
    rows: list[tuple[str, ...]] = []
    for server, words in SERVERS.items():
        here = {(answer.loss, answer.ratio): answer for answer in found if answer.server == server}
        if not any(answer.error.n for answer in here.values()):
            rows += [(f"{words}: not one names a wrong copy",)] if here else []
            continue
        rows.append((words,))
        for loss in sorted({loss for loss, _ in here}):
            rows.append((f"{loss:g} %", *(_wrong(here.get((loss, ratio))) for ratio in ratios)))
    heads = ("loss each way", *(f"wait {ratio:g} rtt" for ratio in ratios))
    title = "Replies after a retransmission that name a wrong copy / their error in round trips"
    return Listing("wrong-names", heads, tuple(rows), numeric=tuple(range(1, len(heads))), title=title, folded=True)


def _wrong(answer: Answer | None) -> str:
    if answer is None:
        return ""
    share = answer.shares["names_earlier_wrongly"].value
    return "\N{EN DASH}" if np.isnan(share) else f"{labels.percent(share)} / {answer.error.value:.1f}"


def _first_waits(grid: Grid) -> Listing:
    """First waits and completion times of timers that adapt: a row per loss, a column per algorithm."""
    found = timers.picked(grid, bottleneck="none", ratio=LATE)
    names = [name for name in grid.controllers() if any(only(cell) == name for cell in found)]
    rows: list[tuple[str, ...]] = []
    for server, words in SERVERS.items():
        here = [cell for cell in found if cell.columns["server"] == server]
        rows += [(words,)] if here else []
        for loss in grid.factors["error_profile"].ordered(cell.columns["error_profile"] for cell in here):
            line = {only(cell): cell for cell in here if cell.columns["error_profile"] == loss}
            rows.append((f"{loss} %", *(_timer(grid, line.get(name)) for name in names)))
    heads = ("loss each way", *map(grid.label, names))
    title = f"First wait in round trips / median completion time in s, initial wait {LATE} round trips"
    numeric = tuple(range(1, len(heads)))
    return Listing("first-waits", heads, tuple(rows), numeric=numeric, title=title, folded=True)


def _timer(grid: Grid, cell: Cell | None) -> str:
    if cell is None:
        return ""
    here = next(p for p in grid.measures.populations() if grid.measures.cell(p) is cell)
    wait, took = (grid.measures.estimate(name, here).value for name in ("rto_in_rtts", "fct"))
    return f"{labels.number(wait, 3)} / {labels.number(took)}"


def _late(grid: Grid) -> Section:
    return Section(
        "timers",
        "Timers that believe a named copy",
        (
            "The round-trip time never changes, so what is right is known: a timer a little above it. Only losses lead "
            "to retransmissions.",
        ),
        (
            Picture(
                "timers-late",
                "First waits and completion times over the loss rate",
                "Initial wait three round trips. Above, the first wait of every exchange of one run; below, the time a "
                f"client needs for {_exchanges(grid)} exchanges. {SPREADS} Lower is better.",
                partial(timers.over_loss, grid, LATE, (WAIT, FCT)),
            ),
        ),
        listings=(_first_waits(grid),),
    )


def _early(grid: Grid) -> Section:
    return Section(
        "early",
        "Timers that begin too early",
        (
            "The initial wait is 0.8 round trips, so that the first copies are sent again although nothing was lost. "
            "Here a reply that names an earlier copy is what a timer needs to find out.",
        ),
        (
            Picture(
                "timers-early",
                "Unnecessary retransmissions and first waits over the loss rate",
                f"Above, unnecessary retransmissions; below, the first wait of every exchange of one run. {SPREADS}",
                partial(timers.over_loss, grid, EARLY, (NEEDLESS, WAIT)),
            ),
        ),
    )


def _narrow(grid: Grid) -> Section:
    return Section(
        "bottleneck",
        "One bottleneck for all",
        (
            "The clients share one narrow cell: copies lengthen the queue, and with it the round trip of everybody. "
            "Timers are early because the queue has grown, and late because something was lost.",
        ),
        (
            Picture(
                "bottleneck",
                "Completion times where all share one bottleneck",
                "Boxes hold the middle half of all clients, whiskers 80 %, short dashes mark the fastest and the "
                "slowest client; the line and the marker are the median; the scale is logarithmic. Lower is better.",
                partial(timers.at_bottleneck, grid),
            ),
        ),
    )


# ----------------------------------------------------------------------------------------------- helpers


def _share(answer: Answer, kind: str) -> str:
    found = answer.shares[kind]
    ends = "" if found.interval is None else f" ({' to '.join(f'{100 * end:.1f}' for end in found.interval)})"
    return "0" if found.value == 0 else f"{100 * found.value:.1f} %{ends}"


def _exchanges(grid: Grid) -> int:
    cells = timers.picked(grid)
    return int(cells[0].scenario["clients"][0]["exchanges"]) if cells else 0
