"""The part of a study's page that stands ours beside theirs: figures, claims, settings."""

from __future__ import annotations

from collections.abc import Mapping

from millpond.judge.compare import Comparison, Figure
from millpond.results.directory import Value
from millpond.show import labels
from millpond.show.factors import SERIES
from millpond.show.report.data import Data
from millpond.show.report.figures.histogram import METRIC as HISTOGRAM
from millpond.show.report.parts import Listing, Section
from millpond.show.report.values import Rows

APART = 0.05
"""Figures that differ by more than this share are set in bold."""

_QUALIFIERS = {
    "approx": "\N{ALMOST EQUAL TO} ",
    "nearly": "nearly ",
    "lt": "< ",
    "le": "\N{LESS-THAN OR EQUAL TO} ",
    "gt": "> ",
    "ge": "\N{GREATER-THAN OR EQUAL TO} ",
    "up_to": "\N{LESS-THAN OR EQUAL TO} ",
}


def published_figures(data: Data, comparison: Comparison) -> Section:
    """Every published figure beside ours."""
    sure = f"{100 * comparison.confidence:.3g}"
    header = ("statistic", "published", "ours", "unit", "difference", f"{sure} % interval", "n", "note")
    columns = (
        "id",
        "metric",
        "statistic",
        "bin",
        "where",
        "qualifier",
        "unit",
        "published",
        "ours",
        "relative",
        "n",
        "calibrates",
    )
    plain = [
        (
            *(f.id, f.metric, f.statistic, f.bin, _conditions(data, f.scenario), f.qualifier, f.unit),
            *(f.published, f.ours, f.relative, f.n, f.calibrates),
        )
        for f in comparison.figures
    ]
    rows: list[tuple[str, ...]] = []
    strong = set()
    before = ""
    for figure in comparison.figures:
        place = ", ".join(part for part in (labels.metric(figure.metric), _conditions(data, figure.scenario)) if part)
        if place != before:
            rows.append((place[:1].upper() + place[1:],))
            before = place
        if figure.relative is not None and abs(figure.relative) > APART and not _bound_kept(figure):
            strong.add(len(rows))
        rows.append(_figure_row(figure))
    return Section(
        "figures",
        "Ours beside the published figures",
        (
            f"The difference is (ours \N{MINUS SIGN} published) / published; n is the number of values behind our "
            f"figure, the {sure}\N{NARROW NO-BREAK SPACE}% interval over replications is its own; percentiles are "
            f"those of all values of all runs, as printed ones are. Bold: more than 5\N{NARROW NO-BREAK SPACE}% apart. "
            f"Published figures: {comparison.published}."
            f"{_apart(any(figure.calibrates for figure in comparison.figures))}",
        ),
        listings=(
            Listing(
                "figures-table",
                header,
                tuple(rows),
                numeric=(1, 2, 4, 5, 6),
                strong=frozenset(strong),
                data=Rows(columns, tuple(plain)),
            ),
        ),
    )


def published_claims(comparison: Comparison) -> Section:
    """Every published sentence with its verdict."""
    words = "; ".join(comparison.claims_told())
    return Section(
        "claims",
        "The published claims",
        (
            f"{words[:1].upper()}{words[1:]}. Each is judged by code; where one does not hold, the measured figure and "
            f"the reason stand beside it.{_apart(any(claim.calibrates for claim in comparison.claims))}",
        ),
        claims=tuple(comparison.claims),
    )


def published_settings(data: Data, comparison: Comparison) -> Listing:
    """Every published setting beside ours, folded away."""
    rows = [
        (
            s.id,
            labels.metric(s.metric),
            _conditions(data, s.scenario),
            s.published,
            s.ours,
            "same" if s.same else "differs",
            s.note,
        )
        for s in comparison.settings
    ]
    return Listing(
        "settings-table",
        ("id", "setting", "where", "published", "ours", "", "note"),
        tuple(rows),
        strong=frozenset(row for row, s in enumerate(comparison.settings) if not s.same),
        folded=f"Published settings of the test bed and the algorithms beside ours ({len(rows)})",
    )


# ----------------------------------------------------------------------------------------------- helpers


def _figure_row(figure: Figure) -> tuple[str, ...]:
    statistic = labels.statistic(figure.statistic, figure.bin)
    if figure.metric == HISTOGRAM:
        statistic = f"{figure.bin} retransmission{'' if figure.bin == '1' else 's'}"
    interval = "" if figure.interval is None else " to ".join(labels.number(bound) for bound in figure.interval)
    return (
        statistic,
        f"{_QUALIFIERS.get(figure.qualifier, '')}{labels.as_printed(figure.published)}",
        labels.as_printed(figure.ours),
        figure.unit,
        labels.percent(figure.relative, signed=True),
        interval,
        labels.count(figure.n) if figure.ours is not None else "",
        "; ".join(part for part in (figure.note, calibrates(figure.calibrates)) if part),
    )


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


def _conditions(data: Data, scenario: Mapping[str, Value]) -> str:
    """Where a figure was observed, in words; a factor that is the same in a whole study is left out."""
    told = []
    for name, value in scenario.items():
        if name in ("bin", "baseline", "direction") or (name in data.factors and name not in (*data.columns, SERIES)):
            continue
        if name == SERIES:
            told.append(_algorithms(data, value))
        elif name == "comparator":
            against = f" against {_algorithms(data, scenario['baseline'])}" if scenario.get("baseline") else ""
            direction = f": {scenario['direction']}" if scenario.get("direction") else ""
            told.append(f"{_algorithms(data, value)}{against}{direction}")
        elif name not in data.factors:
            told.append(str(value))
        elif isinstance(value, str) and data.numeric(name):
            told.append(f"{data.factors[name].label} {value}")
        else:
            told.append(data.factors[name].say(value))
    return ", ".join(word for word in told if word)


def _algorithms(data: Data, value: Value) -> str:
    return ", ".join(data.label(part) for part in str(value).split(";"))
