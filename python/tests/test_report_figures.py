"""The pictures: labelled with units, legible without colour, nothing on top of anything, numbers as in the results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import synthetic_results
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from picture_checks import check_texts, laid_out, panels

import millpond
from manual import pictures
from millpond.judge.compare import Comparison
from millpond.results.directory import Results
from millpond.show import labels
from millpond.show.document import Missing, Plot
from millpond.show.report import figures, story, style
from millpond.show.report.grid import Facet, Grid, rate
from millpond.studies.anrw18 import page as phase

Draw = Callable[[Results, Comparison], Figure]

RANDOM = Facet({"path": "fixed", "workload": "random"})
CONTINUOUS = Facet({"path": "fixed", "workload": "continuous"})
WORST = CONTINUOUS.but(clients=400, buffer_bytes=1410000)

DRAWN: dict[str, Draw] = {
    "reported": lambda results, _: figures.reported(results, RANDOM).draw(),
    "queue": lambda results, _: figures.queue_over_time(results).draw(),
    "fct": lambda results, comparison: figures.completion_times(results, RANDOM, comparison).draw(),
    "unnecessary": lambda results, comparison: figures.unnecessary_copies(results, RANDOM, comparison).draw(),
    "histogram": lambda results, comparison: figures.transmissions(results, comparison).draw(),
    "mix": lambda results, _: figures.sharing(results, RANDOM).draw(),
    "phase": lambda results, comparison: phase.fixed_beside_jittered(results, CONTINUOUS, comparison).draw(),
}
UNITS = {
    "reported": {"share of clients done", "time since the start (s)"},
    "queue": {"queue of the bottleneck (kB)", "waiting time in the queue (s)", "time since the start (s)"},
    "fct": {"flow completion time (s)", "buffer (B)"},
    "unnecessary": {"unnecessary retransmissions\nper client", "buffer (B)"},
    "histogram": {"share of exchanges (%)", "retransmissions of an exchange"},
    "mix": {"flow completion time (s)"},
    "phase": {"flow completion time (s)"},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return synthetic_results.study(tmp_path_factory.mktemp("study"), replications=1)


@pytest.fixture(scope="module")
def comparison(results: Results) -> Comparison:
    return synthetic_results.comparison(results)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return synthetic_results.single(tmp_path_factory.mktemp("single"))


@pytest.mark.parametrize("name", DRAWN)
def test_axes_are_labelled_with_units(name: str, results: Results, comparison: Comparison) -> None:
    assert UNITS[name] <= _axis_labels(DRAWN[name](results, comparison))


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_lies_on_another_or_outside(name: str, results: Results, comparison: Comparison) -> None:
    check_texts(DRAWN[name](results, comparison))


@pytest.mark.parametrize(
    "draw",
    [
        figures.reported_by_group,
        figures.bottleneck_over_time,
        figures.completion_by_group,
        figures.transmissions_by_group,
    ],
)
def test_no_text_lies_on_another_in_the_pictures_of_a_scenario(
    draw: Callable[[Results], Plot], single: Results
) -> None:
    check_texts(draw(single).draw())


@pytest.mark.parametrize("name", DRAWN)
def test_legends_stand_outside_the_data(name: str, results: Results, comparison: Comparison) -> None:
    figure = DRAWN[name](results, comparison)
    renderer = laid_out(figure)
    assert all(panel.get_legend() is None for panel in figure.axes)
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert not any(box.overlaps(panel.get_window_extent(renderer)) for panel in figure.axes if panel.get_visible())


def test_every_preset_differs_without_colour() -> None:
    looks = [*style.PRESETS.values(), style.OWN, *style.SPARE]
    assert len({look.marker for look in looks}) == len(looks)
    assert len({look.hatch for look in looks}) == len(looks)
    families = ("rfc7252", "default-fb1", "default-fb2"), ("cocoa-03", "cocoa-fb1", "cocoa-fb2")
    for family in families:
        assert len({str(style.PRESETS[name].dash) for name in family}) == 3


def test_colours_of_a_family_differ_in_brightness() -> None:
    for family in (("rfc7252", "default-fb1", "default-fb2"), ("cocoa-03", "cocoa-fb1", "cocoa-fb2")):
        greys = sorted(_grey(style.PRESETS[name].colour) for name in family)
        assert min(np.diff(greys)) > 0.03


def test_unknown_controllers_get_a_look_of_their_own_and_ones_own_the_accent() -> None:
    names = {"rfc7252": "rfc7252", "mine.py:Mine": "mine.py:Mine", "yours": "yours", "theirs": "theirs"}
    looks = style.looks(names, {"mine.py:Mine"})
    assert looks["rfc7252"] == style.PRESETS["rfc7252"]
    assert looks["mine.py:Mine"] == style.OWN
    assert len({look.marker for look in looks.values()}) == 4


def test_of_two_names_with_one_preset_only_the_first_has_its_look() -> None:
    looks = style.looks({"default": "rfc7252", "slow": "rfc7252"})
    assert looks["default"] == style.PRESETS["rfc7252"]
    assert looks["slow"] in style.SPARE


def test_the_callers_settings_stay_as_they_are(results: Results) -> None:
    before = dict(mpl.rcParams)
    figures.queue_over_time(results).draw()
    assert dict(mpl.rcParams) == before


def test_the_queue_is_drawn_in_full(results: Results) -> None:
    rows = [row for row in figures.queue_over_time(results, WORST).rows.rows if row[0] == "default"]
    traced = results.table("queue_trace")
    run = next(c.first_run for c in results.cells if c.id == "default-continuous-400-1410000-fixed")
    peak = max(row["bytes"] for row in traced.to_pylist() if row["run"] == run and row["link"] == "downlink")
    assert max(float(str(row[4])) for row in rows if row[1] == "queue") == peak
    shares = [float(str(row[4])) for row in rows if row[1] == "goodput ratio"]
    assert min(shares) == pytest.approx(0.2, abs=0.01)


def test_waiting_time_follows_from_the_rate(results: Results) -> None:
    figure = figures.queue_over_time(results, WORST).draw()
    laid_out(figure)
    left = max(panel.get_ylim()[1] for panel in figure.axes if panel.get_ylabel() == "queue of the bottleneck (kB)")
    second = [child for panel in figure.axes for child in panel.child_axes]
    right = next(axis.get_ylim()[1] for axis in second)
    assert right == pytest.approx(left * 8000 / 30_000)


def test_some_controllers_can_be_picked(results: Results) -> None:
    figure = figures.queue_over_time(results, WORST, ["default", "default_fb2"]).draw()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Default CoAP", "Default FB2"]
    with pytest.raises(Missing, match="nobody"):
        figures.queue_over_time(results, WORST, ["nobody"]).draw()


def test_published_medians_stand_where_they_were_published(results: Results, comparison: Comparison) -> None:
    figure = figures.completion_times(results, RANDOM, comparison).draw()
    marks = [line for panel in figure.axes for line in panel.lines if line.get_marker() == "d"]
    heights = sorted(float(y) for line in marks for y in np.asarray(line.get_ydata()))
    assert sorted(set(heights)) == [2425.0, 2898.0]
    assert not [
        line
        for panel in figures.completion_times(results, RANDOM).draw().axes
        for line in panel.lines
        if line.get_marker() == "d"
    ]


def test_boxes_hold_the_percentiles_of_the_flows(results: Results) -> None:
    rows = figures.completion_times(results, CONTINUOUS).rows
    row = next(
        dict(zip(rows.header, row, strict=True))
        for row in rows.rows
        if {400, 2500, "continuous", "cocoa", "fixed"} <= set(row)
    )
    run = next(c.first_run for c in results.cells if c.id == "cocoa-continuous-400-2500-fixed")
    table = results.table("flows")
    values = table.column("fct_us").to_numpy()[table.column("run").to_numpy() == run] / 1e6
    assert row["n"] == 400
    for name, share in (("min", 0), ("p10", 10), ("p25", 25), ("median", 50), ("p75", 75), ("p90", 90), ("max", 100)):
        assert row[name] == pytest.approx(np.percentile(values, share))


def test_histogram_shows_shares_so_that_any_number_of_replications_compares(
    results: Results, comparison: Comparison
) -> None:
    rows = figures.transmissions(results, comparison, WORST).rows
    mine = [row for row in rows.rows if {"continuous", "default"} <= set(row)]
    assert [row[-1] for row in mine][:5] == [1474, 3984, 4793, 7795, 381954]
    panel = next(
        p
        for p in figures.transmissions(results, comparison, WORST).draw().axes
        if p.get_title("left") == "Default CoAP"
    )
    bars = [patch for patch in panel.patches if isinstance(patch, Rectangle)]
    tops = [bar.get_y() + bar.get_height() for bar in bars if bar.get_facecolor()[:3] == (1, 1, 1)]
    assert max(tops) == pytest.approx(381954 / 400_000)


def test_each_half_of_a_mix_stands_beside_the_same_controller_alone(results: Results) -> None:
    rows = figures.sharing(results, CONTINUOUS).rows
    mine = [row for row in rows.rows if {400, 1410000, "default", "Default FB1"} <= set(row)]
    assert [row[-10] for row in mine] == ["all", "half"]
    assert [row[-8] for row in mine] == [400, 200]


def test_useful_share_and_copies_agree(results: Results) -> None:
    worst = min(story.glances(Grid(results)), key=lambda g: g.useful_share)
    assert (worst.controller, worst.cell.columns["workload"], worst.collapsed) == ("CoCoA", "random", True)
    assert worst.useful_share == pytest.approx(1 / 6.3, rel=0.01)


def test_rate_is_read_as_scenarios_write_it(results: Results) -> None:
    assert rate(results.cells[0], "downlink") == 30_000
    assert rate(results.cells[0], "sidelink") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2425.1, "2\N{NARROW NO-BREAK SPACE}425"),
        (33.0071, "33.01"),
        (0.0, "0"),
        (0.00123, "0.001230"),
        (None, "\N{EN DASH}"),
    ],
)
def test_numbers_are_written_with_four_digits(value: float | None, text: str) -> None:
    assert labels.number(value) == text


def test_differences_carry_a_sign() -> None:
    assert labels.percent(0.0312, signed=True) == "+3.1\N{NARROW NO-BREAK SPACE}%"
    assert labels.percent(-0.0312, signed=True) == "\N{MINUS SIGN}3.1\N{NARROW NO-BREAK SPACE}%"
    assert labels.percent(-0.000312, signed=True) == "\N{MINUS SIGN}0.03\N{NARROW NO-BREAK SPACE}%"
    assert labels.percent(-0.00001, signed=True) == "0.00\N{NARROW NO-BREAK SPACE}%"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60.999, "60.999"),
        (61.25, "61.250"),
        (0.98, "0.98"),
        (1474.0, "1\N{NARROW NO-BREAK SPACE}474"),
        (79.5331, "79.533"),
    ],
)
def test_figures_stand_beside_each_other_with_equal_digits(value: float, text: str) -> None:
    assert labels.as_printed(value) == text


def test_the_picture_of_the_readme_is_small_legible_and_always_the_same(results: Results, tmp_path: Path) -> None:
    picture = pictures.collapse(results)
    check_texts(picture)
    done = [text.get_text() for panel in panels(picture) for text in panel.texts if "client done" in text.get_text()]
    assert len(done) == len(pictures.SHOWN)
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        assert pictures.main(["collapse", str(results.directory), str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size < 200_000


def test_the_picture_of_the_readme_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untraced = synthetic_results.study(tmp_path / "r", clients=(1,), replications=1, traces=False)
    for name, lack in (("collapse", "no run was traced"), ("calm-cell", "calm-cell.toml")):
        assert pictures.main([name, str(untraced.directory), str(tmp_path / "a.svg")]) == 1
        assert lack in capsys.readouterr().err
        assert pictures.main([name]) == 2
        assert "usage" in capsys.readouterr().err


def test_the_picture_of_a_calm_server_is_drawn_from_the_plan_beside_it(tmp_path: Path) -> None:
    plan = Path(__file__).parent.parent / "millpond/scenarios/sweeps/calm-cell.toml"
    text = plan.read_text(encoding="utf-8")
    assert f"count = {pictures.CLIENTS}" in text
    assert f'"{pictures.BUFFER // 1000} kB"' in text
    fewer = {"clients[0].exchanges": 10}
    swept = millpond.sweep(plan, changes=fewer, out=tmp_path / "out", report=False)
    check_texts(pictures.calm_cell(swept.results))


def _axis_labels(figure: Figure) -> set[str]:
    drawn = [*panels(figure), *(child for panel in panels(figure) for child in panel.child_axes)]
    return {text for panel in drawn for text in (panel.get_xlabel(), panel.get_ylabel()) if text}


def _grey(colour: str) -> float:
    red, green, blue = mpl.colors.to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue
