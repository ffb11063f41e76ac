"""What is shown of a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from millpond.calibrate import trial
from millpond.calibrate.answer import NEARLY, Answer
from millpond.calibrate.description import Parameter
from millpond.judge.compare import OUTCOMES
from millpond.results.factor import PARTNER, Value
from millpond.results.store import write_text
from millpond.show import html, labels
from millpond.show.document import Document, Entry, Listing, Picture, Plot, Row, Rows, Section, Tone
from millpond.show.report import style
from millpond.show.report.figures import marks

PAGE = "report.html"
#: Pictures side by side.
_BESIDE = 3
_TONES: dict[str, Tone] = {"holds": "good", "fails": "bad", "noise": "unsure", "unjudged": "quiet"}


def write(answer: Answer, folder: Path) -> Path:
    """The page, beside the trials. Returns where it is."""
    write_text(folder / PAGE, html.render(document(answer)))
    return folder / PAGE


def document(answer: Answer) -> Document:
    """All that is shown, in every format."""
    plan = answer.calibration.plan
    footer = "Every setting that was tried stands in trials.jsonl in the same directory."
    return Document(
        f"Calibration of {plan.name}", f"Run by millpond {answer.version}", footer, partial(_sections, answer)
    )


def lead(answer: Answer) -> tuple[str, ...]:
    """The answer in sentences."""
    fit, test = answer.calibration.fit, answer.calibration.test
    before, after = answer.before, answer.after
    whether = "One" if answer.explains else "No"
    return (
        f"{whether} setting of {len(answer.tried)} explains the {len(fit)} rows together: under the best "
        f"{answer.fitting(fit, after)} of them are within {trial.FITS:.0%}, under the reading chosen before "
        f"{answer.fitting(fit, before)}. Their distance is {answer.misfit(fit, after):.2f} instead of "
        f"{answer.misfit(fit, before):.2f}: 0 is exact, 0.33 twice or half as much, 1 beyond all measure.",
        f"Of the {len(test)} rows that were kept for testing {answer.fitting(test, after)} are within {trial.FITS:.0%} "
        f"instead of {answer.fitting(test, before)}, at a distance of {answer.misfit(test, after):.2f} instead of "
        f"{answer.misfit(test, before):.2f}.",
        f"Claims that hold: {_count(answer, 'holds')}; that fail: {_count(answer, 'fails')}.",
        "What was found is a reading of the test bed, chosen by published rows: that those come out is no test. It is "
        "no evidence of what the authors ran.",
    )


# ----------------------------------------------------------------------------------------------- helpers


def _sections(answer: Answer) -> Sequence[Section]:
    best = Listing(
        "setting",
        ("what is not printed", "chosen before", "best", "nearly as good", "tried"),
        tuple(_setting(answer, parameter) for parameter in answer.calibration.parameters),
        f"Nearly as good: of the {len(answer.near)} settings whose distance is at most {NEARLY:g} times the least. A "
        "wide range says that the rows do not tell.",
        numeric=(1, 2, 3, 4),
    )
    picture = Picture(
        "misfit",
        "Distance over each parameter",
        "Every setting that was tried. The line is the least distance around each value; the cross is the best "
        "setting, the triangle the reading chosen before. A flat line says that the rows do not tell.",
        partial(_plot, answer),
    )
    rows = Listing(
        "rows",
        ("row", "what", "published", "before", "calibrated", "distance"),
        (
            ("by which the setting was chosen",), *(_row(answer, name) for name in answer.calibration.fit),
            ("kept for testing",), *(_row(answer, name) for name in answer.calibration.test),
        ),
        "Means over runs that the search has not seen.",
        numeric=(2, 3, 4, 5),
    )  # fmt: skip
    claims = Listing(
        "claims",
        ("claim", "says", "before", "calibrated"),
        tuple(
            (old.id, old.says, *(Entry(OUTCOMES[one.verdict], _TONES[one.verdict], one.points) for one in (old, new)))
            for old, new in zip(answer.before.claims, answer.after.claims, strict=True)
        ),
    )
    return (
        Section("summary", "In short", lead(answer), listings=(best,)),
        Section("flat", "How flat", (), (picture,)),
        Section("rows", "Row by row", listings=(rows,)),
        Section("claims", "Claim by claim", listings=(claims,)),
    )


def _count(answer: Answer, verdict: str) -> str:
    before, after = (sum(one.verdict == verdict for one in j.claims) for j in (answer.before, answer.after))
    return f"{after} instead of {before}"


def _setting(answer: Answer, parameter: Parameter) -> Row:
    near = answer.spread(parameter)
    told = " or ".join(map(str, near)) if parameter.choices else _range(*near)
    whole = " or ".join(parameter.choices) if parameter.choices else _range(parameter.low, parameter.high)
    unit = f" ({parameter.unit})" if parameter.unit else ""
    best = answer.best.setting[parameter.name]
    return (f"{parameter.label}{unit}", _value(parameter.first), _value(best), told, whole)


def _range(low: Value, high: Value) -> str:
    return _value(low) if low == high else f"{_value(low)} to {_value(high)}"


def _value(value: Value) -> str:
    return value if isinstance(value, str) else labels.plain(float(value))


def _row(answer: Answer, name: str) -> Row:
    before, after = answer.before.figures[name], answer.after.figures[name]
    where = (f"beside {value}" if name == PARTNER else str(value) for name, value in before.scenario.items())
    what = ", ".join([before.metric.replace("_", " "), *where])
    away = trial.distance(after.published, after.ours, after.unit)
    tone: Tone = "good" if trial.fits(after.published, after.ours) else "bad"
    unit = "%" if before.unit == "percent" else before.unit
    return (
        name.rpartition("-")[2], what, f"{labels.number(before.published)} {unit}", labels.number(before.ours),
        Entry(labels.number(after.ours), tone), f"{away:.2f}",
    )  # fmt: skip


def _plot(answer: Answer) -> Plot:
    parameters = answer.calibration.parameters
    rows = tuple((*(one.setting[parameter.name] for parameter in parameters), one.misfit) for one in answer.tried)
    return Plot(Rows((*(one.name for one in parameters), "distance"), rows), partial(_drawn, answer))


def _drawn(answer: Answer) -> Figure:
    parameters = answer.calibration.parameters
    deep = -(-len(parameters) // _BESIDE)
    with marks.panels(2.4 * deep, len(parameters), _BESIDE, ("", "distance")) as (figure, panels):
        for axes, parameter in zip(panels, parameters, strict=True):
            places = [parameter.place(one.setting[parameter.name]) for one in answer.tried]
            heights = [one.misfit for one in answer.tried]
            axes.plot(places, heights, ".", color=style.GRID, markersize=3)
            axes.plot(*_least(places, heights), color=style.SENT)
            best = answer.best
            for one, sign in ((best, "x"), (answer.tried[0], "^")):
                axes.plot([parameter.place(one.setting[parameter.name])], [one.misfit], sign, color=style.QUEUE_DROP)
            ticks = [parameter.place(value) for value in _marks(parameter)]
            axes.set_xticks(ticks, [_value(value) for value in _marks(parameter)])
            axes.set(xlim=(-0.03, 1.03), ylim=(0, 1), xlabel=labels.with_unit(parameter.label, parameter.unit))
    return figure


def _marks(parameter: Parameter) -> list[Value]:
    return list(parameter.choices) or [parameter.at(place) for place in (0.0, 1 / 3, 2 / 3, 1.0)]


def _least(places: Sequence[float], heights: Sequence[float], parts: int = 20) -> tuple[list[float], list[float]]:
    """The least height in each part of the range where there is one."""
    found: dict[int, tuple[float, float]] = {}
    for place, height in zip(places, heights, strict=True):
        part = min(int(place * parts), parts - 1)
        if part not in found or height < found[part][1]:
            found[part] = (place, height)
    kept = [found[part] for part in sorted(found)]
    return [place for place, _ in kept], [height for _, height in kept]
