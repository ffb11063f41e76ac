"""The part of a study's page that stands ours beside theirs: figures, claims, settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from millpond.judge.checks import Judgement
from millpond.judge.compare import OUTCOMES, Comparison, Figure, Verdict
from millpond.results.factor import ALGORITHM, PARTNER, PATH, Value
from millpond.show import labels
from millpond.show.document import Entry, Listing, Row, Rows, Section, Tone
from millpond.show.report.figures.histogram import METRIC as HISTOGRAM
from millpond.show.report.grid import Grid

APART = 0.05
"""Figures that differ by more than this share are marked."""

_TONES: Mapping[Judgement, tuple[Tone, str]] = {
    "holds": ("good", "✓"), "fails": ("bad", "✗"), "noise": ("unsure", "\N{ALMOST EQUAL TO}"),
    "unjudged": ("unsure", "\N{EN DASH}"),
}  # fmt: skip
_UNITS = {"retransmissions": "", "exchanges": "", "percent": "\N{NARROW NO-BREAK SPACE}%"}
_QUALIFIERS = {
    "approx": "\N{ALMOST EQUAL TO} ",
    "nearly": "nearly ",
    "lt": "< ",
    "le": "\N{LESS-THAN OR EQUAL TO} ",
    "gt": "> ",
    "ge": "\N{GREATER-THAN OR EQUAL TO} ",
    "up_to": "\N{LESS-THAN OR EQUAL TO} ",
}


def published_figures(grid: Grid, comparison: Comparison, elsewhere: Collection[tuple[str, object]] = ()) -> Section:
    """Every published figure beside ours; those `elsewhere`, by id and reading, stand in tables of their own."""
    sure = f"{100 * comparison.confidence:.3g}"
    columns = (
        *("id", "metric", "statistic", "bin", "where", "qualifier", "unit", "published", "ours", "relative"),
        *("low", "high", "n", "calibrates"),
    )
    plain = tuple(
        (
            *(f.id, f.metric, f.statistic, f.bin, _conditions(grid, f.scenario), f.qualifier, f.unit),
            *(f.published, f.ours, f.relative, *(f.interval or (None, None)), f.n, f.calibrates),
        )
        for f in comparison.figures
    )
    rows: list[Row] = []
    before = ""
    for figure in comparison.figures:
        if figure.ours is None or (figure.id, figure.scenario.get(PATH)) in elsewhere:
            continue
        words = (labels.metric(figure.metric), _conditions(grid, figure.scenario))
        place = "; ".join(filter(None, (", ".join(filter(None, words)), calibrates(figure.calibrates))))
        if place != before:
            rows.append((place[:1].upper() + place[1:],))
            before = place
        rows.append(_figure_row(figure))
    noted = any(len(row) > 1 and row[-1] for row in rows)
    return Section(
        "figures",
        "Ours beside the published figures",
        (
            f"The difference is (ours \N{MINUS SIGN} published) / published; the {sure}\N{NARROW NO-BREAK SPACE}% "
            "interval over replications is that of ours; percentiles are those of all values of all runs, as printed "
            f"ones are. Marked: more than 5\N{NARROW NO-BREAK SPACE}% apart. Published figures: "
            f"{comparison.published}.{_apart(any(figure.calibrates for figure in comparison.figures))}",
            *_unmeasured(comparison),
        ),
        listings=(
            Listing(
                "figures-table",
                ("statistic", "published", "ours", "difference", f"{sure} % interval", *["note"] * noted),
                tuple(row if noted else row[:5] for row in rows),
                numeric=(1, 2, 3, 4),
                data=Rows(columns, plain),
            ),
        ),
    )


def published_claims(comparison: Comparison) -> Section:
    """Every published sentence with its verdict, what was measured and why."""
    words = "; ".join(comparison.claims_told())
    rows: list[Row] = []
    for claim in comparison.claims:
        others = list(claim.variants.items())[1:]
        why = "; ".join(filter(None, (claim.reason, calibrates(claim.calibrates))))
        rows.append((claim.id.removeprefix(f"{comparison.study}-"), _verdict(claim), _told(claim, claim.says, why)))
        rows += [
            (comparison.reading.say(name), _verdict(other), _told(other, "", other.reason)) for name, other in others
        ]
    return Section(
        "claims",
        "The published claims",
        (
            f"{words[:1].upper()}{words[1:]}. Each is judged by code, from the measured figures beside it."
            f"{_apart(any(claim.calibrates for claim in comparison.claims))}",
        ),
        listings=(
            Listing(
                "claims-table",
                ("claim", "verdict", "what was said, and what was measured"),
                tuple(rows),
                f"In all: {comparison.closing()}.",
            ),
        ),
    )


def differing_settings(grid: Grid, comparison: Comparison) -> list[Section]:
    """The settings of the test bed that are not as published."""
    if not comparison.settings:
        return []
    differ = [s for s in comparison.settings if not s.same]
    rows = tuple((labels.metric(s.metric), _conditions(grid, s.scenario), s.published, s.ours, s.note) for s in differ)
    same = f"{len(comparison.settings) - len(differ)} of {len(comparison.settings)} published settings are ours too."
    header = ("setting", "where", "published", "ours", "why")
    return [
        Section(
            "settings",
            "Settings of the test bed",
            (same,),
            listings=(Listing("settings-that-differ", header, rows, title="Settings that differ"),),
        )
    ]


def published_settings(grid: Grid, comparison: Comparison) -> Listing:
    """Every published setting beside ours, folded away."""
    rows = [
        (
            *(s.id, labels.metric(s.metric), _conditions(grid, s.scenario), s.published, s.ours),
            *("same" if s.same else "differs", s.note),
        )
        for s in comparison.settings
    ]
    return Listing(
        "settings-table",
        ("id", "setting", "where", "published", "ours", "", "note"),
        tuple(rows),
        strong=frozenset(row for row, s in enumerate(comparison.settings) if not s.same),
        title=f"Published settings of the test bed and the algorithms beside ours ({len(rows)})",
        folded=True,
    )


# ----------------------------------------------------------------------------------------------- helpers


def _figure_row(figure: Figure) -> Row:
    statistic = labels.statistic(figure.statistic, figure.bin)
    if figure.metric == HISTOGRAM:
        statistic = f"{figure.bin} retransmission{'' if figure.bin == '1' else 's'}"
    interval = "" if figure.interval is None else " to ".join(labels.number(bound) for bound in figure.interval)
    unit = _UNITS.get(figure.unit, f"\N{NARROW NO-BREAK SPACE}{figure.unit}" if figure.unit else "")
    apart = figure.relative is not None and abs(figure.relative) > APART and not _bound_kept(figure)
    return (
        statistic,
        f"{_QUALIFIERS.get(figure.qualifier, '')}{labels.as_printed(figure.published)}{unit}",
        labels.as_printed(figure.ours),
        Entry(labels.percent(figure.relative, signed=True), "unsure" if apart else ""),
        interval,
        figure.note,
    )


def _unmeasured(comparison: Comparison) -> list[str]:
    """The figures that have none of ours beside them: a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for figure in comparison.figures:
        if figure.ours is None:
            reasons.setdefault(figure.note, []).append(figure.id.removeprefix(f"{comparison.study}-"))
    lines = []
    for reason, names in reasons.items():
        told = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        lines.append(f"Not measured, {reason}: {told}.")
    return lines


def _verdict(claim: Verdict) -> Entry:
    tone, sign = _TONES[claim.verdict]
    return Entry(f"{sign} {OUTCOMES[claim.verdict]}", tone)


def _told(claim: Verdict, says: str, why: str) -> Entry:
    measured = f"measured: {claim.measured}" if claim.measured else ""
    reason = f"reason: {why}" if why else ""
    short, long = (says, (measured, reason)) if claim.verdict == "holds" else ("", (says, measured, reason))
    # of what holds the sentence is enough where there is little room
    more = "\n".join(filter(None, long))
    return Entry(short, more=more, points=claim.points) if short else Entry(more, points=claim.points)


def calibrates(read: str) -> str:
    """What is said of a row by which the test bed was read; empty of one that tests it."""
    return f"calibrates: {read}" if read else ""


def _apart(some: bool) -> str:
    return " What calibrates was used to read the test bed, is no test of it and is counted apart." if some else ""


def _bound_kept(figure: Figure) -> bool:
    """Whether the published figure is only a bound ("beyond 3 s"), and ours keeps it."""
    if figure.ours is None:
        return False
    if figure.qualifier in ("gt", "ge"):
        return figure.ours >= figure.published
    return figure.qualifier in ("lt", "le", "up_to") and figure.ours <= figure.published


def _conditions(grid: Grid, scenario: Mapping[str, Value]) -> str:
    """Where a figure was observed, in words; a factor that is the same in a whole study is left out."""
    told = []
    for name, value in scenario.items():
        if name in ("bin", "baseline", "direction") or (
            name in grid.factors and name not in (*grid.columns, ALGORITHM)
        ):
            continue
        if name == ALGORITHM:
            told.append(_algorithms(grid, value))
        elif name == PARTNER:
            told.append(f"beside {_algorithms(grid, value)}")
        elif name == "comparator":
            against = f" against {_algorithms(grid, scenario['baseline'])}" if scenario.get("baseline") else ""
            direction = f": {scenario['direction']}" if scenario.get("direction") else ""
            told.append(f"{_algorithms(grid, value)}{against}{direction}")
        elif name not in grid.factors:
            told.append(str(value))
        elif isinstance(value, str) and grid.numeric(name):
            told.append(f"{grid.factors[name].label} {value}")
        else:
            told.append(grid.factors[name].say(value))
    return ", ".join(word for word in told if word)


def _algorithms(grid: Grid, value: Value) -> str:
    return ", ".join(grid.label(part) for part in str(value).split(";"))
