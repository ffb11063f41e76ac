"""The section of a report on real programs: published, simulated and live."""

from __future__ import annotations

from millpond.measure.measures import Measures
from millpond.measure.population import path_in_words
from millpond.real.columns import Live
from millpond.show import real as words
from millpond.show.report.parts import Listing, Section
from millpond.show.report.values import Rows

LEAD = (
    "Real programs with real sockets over the very paths that were simulated, in real time: links, queues and losses "
    "are the same state machine. Runs in which packets were handed on too late are not valid and not counted."
)


def section(live: Live, measures: Measures) -> Section:
    """The three columns as a table, and what must be known beside them."""
    most = max((one.variants for one in live.settings), key=len, default=("",))
    names = tuple(f"simulated, {path_in_words(name) or name}" if len(most) > 1 else "simulated" for name in most)
    header = ("completion time, s", "published", *names, "live", "difference")
    rows: list[tuple[str, ...]] = []
    data: list[tuple[object, ...]] = []
    for one in live.settings:
        where = words.place(one, measures)
        rows.append((f"{where} {words.counted(one)}",))
        for line in one.lines:
            simulated = [*line.simulated, *[None] * (len(most) - len(line.simulated))]
            cells = [words.seconds(value) for value in (line.published, *simulated, line.live)]
            rows.append((line.statistic, *cells, "" if line.relative is None else f"{line.relative:+.2%}"))
            data.append((where, line.statistic, line.published, *simulated, line.live))
    listing = Listing(
        "live",
        header,
        tuple(rows),
        numeric=tuple(range(1, len(header))),
        data=Rows(("where", "statistic", "published", *names, "live"), tuple(data)),
    )
    return Section("live", "Real programs", (LEAD, *words.remarks(live, measures)), listings=(listing,))
