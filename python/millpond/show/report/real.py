"""What real programs did beside a study: published, simulated and live."""

from __future__ import annotations

from millpond.measure.measures import Measures
from millpond.real.columns import Beside, Live
from millpond.show.document import Listing, Row, Rows, Section

LEAD = (
    "Real programs with real sockets over the very paths that were simulated, in real time: links, queues and losses "
    "are the same state machine. Runs in which packets were forwarded too late are not valid and not counted."
)


def section(live: Live, measures: Measures) -> Section:
    """The three columns as a table, and what must be known beside them."""
    most = max((one.variants for one in live.settings), key=len, default=("",))
    reading = measures.results.reading
    names = tuple(f"simulated, {reading.say(name) or name}" if len(most) > 1 else "simulated" for name in most)
    header = ("completion time, s", "published", *names, "live", "difference")
    rows: list[Row] = []
    data: list[tuple[object, ...]] = []
    for one in live.settings:
        where = _place(one, measures)
        rows.append((f"{where} {_counted(one)}",))
        for line in one.lines:
            simulated = [*line.simulated, *[None] * (len(most) - len(line.simulated))]
            cells = [_seconds(value) for value in (line.published, *simulated, line.live)]
            rows.append((line.statistic, *cells, "" if line.relative is None else f"{line.relative:+.2%}"))
            data.append((where, line.statistic, line.published, *simulated, line.live))
    listing = Listing(
        "live",
        header,
        tuple(rows),
        numeric=tuple(range(1, len(header))),
        data=Rows(("where", "statistic", "published", *names, "live"), tuple(data)),
    )
    return Section("live", "Real programs", (LEAD, *_remarks(live, measures)), listings=(listing,))


# ----------------------------------------------------------------------------------------------- helpers


def _remarks(live: Live, measures: Measures) -> list[str]:
    """Lines on readings, copies, runs that are not counted, programs that were not there, and what differs."""
    lines = []
    for one in live.settings:
        if one.copies is not None:
            share = "" if one.needed is None else f"; {one.needed:.0%} of the answers that came back were needed"
            if one.answered is not None and one.answered < 1:
                share += f"; {one.answered:.1%} of the exchanges were answered"
            lines.append(f"Live, {_place(one, measures)}: {one.copies:.2f} copies of each request{share}.")
    bounds = dict.fromkeys(
        (run.lateness["bound_p99_us"] / 1e3, run.lateness["bound_max_us"] / 1e3)
        for one in live.settings
        for run in one.runs
        if run.lateness
    )
    for usual, worst in bounds:
        lines.append(f"A live run counts if 99 % of its packets were at most {usual:g} ms late and all {worst:g} ms.")
    for one in live.settings:
        for run in one.runs:
            if not run.valid:
                lines.append(f"Not valid and not counted: {_place(one, measures)}, run {run.number}: {run.why}.")
            elif run.limit_s is not None:
                lines.append(f"Ended after {run.limit_s:.0f} s: {_place(one, measures)}, run {run.number}.")
    for skipped in live.skipped:
        told = ", ".join(f"{value}" for name, value in skipped.columns.items() if name in ("algorithm", "clients"))
        lines.append(f"Skipped: {told}{f', {skipped.label}' if skipped.label else ''}: {skipped.why}.")
    return [*lines, *(f"Live differs from the study: {told}" for told in live.stated)]


def _place(one: Beside, measures: Measures) -> str:
    """A setting in a few words: its factors that differ between cells, its algorithm, its label."""
    known = measures.results.factors
    words = [
        known[name].say(value).replace("\N{NARROW NO-BREAK SPACE}", " ")
        for name, value in one.columns.items()
        if name in known and name in measures.varying
    ]
    algorithm = str(measures.results.manifest.get("labels", {}).get(one.algorithm, one.algorithm))
    return ", ".join(filter(None, [*words, algorithm, one.label]))


def _counted(one: Beside) -> str:
    """How many runs and clients the live figures are of."""
    late = len(one.runs) - len(one.counted)
    words = [f"{len(one.counted)} live run{'' if len(one.counted) == 1 else 's'}, {one.clients} clients"]
    words += [f"{one.unfinished} did not finish"] * bool(one.unfinished) + [f"{late} late, not counted"] * bool(late)
    return f"({'; '.join(words)})"


def _seconds(value: float | None) -> str:
    """A time as such tables have it."""
    return "-" if value is None else f"{value:.3f}" if value < 1000 else f"{value:.1f}"
