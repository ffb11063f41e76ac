"""Axes of time: in the unit that is read, with that unit beside the words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from picture_checks import check_texts, panels

import millpond
from millpond.measure.metrics import METRICS
from millpond.results.directory import Results
from millpond.show.document import Plot
from millpond.show.report import figures
from millpond.show.report.figures.clock import DAY, HOUR, Clock, in_words


@pytest.mark.parametrize(
    ("longest", "unit"), [(2436.0, "s"), (3 * HOUR - 1, "s"), (3 * HOUR, "h"), (4 * DAY, "h"), (4 * DAY + 1, "d")]
)
def test_times_are_told_in_the_unit_that_is_read(longest: float, unit: str) -> None:
    assert Clock.of([longest]).label("time") == f"time ({unit})"


def test_axes_that_share_a_label_are_legible_all() -> None:
    assert Clock.of([10 * DAY, 30.0]).unit == "s"
    assert Clock.of([]).unit == "s"


def test_a_time_is_told_in_the_largest_unit_that_it_fills() -> None:
    assert [in_words(time) for time in (0.1, 10, 60, 600, 6 * HOUR, DAY)] == [
        "0.1 s",
        "10 s",
        "1 min",
        "10 min",
        "6 h",
        "1 d",
    ]


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.unit == "s"])
def test_every_metric_of_time_has_its_unit_on_axes(name: str) -> None:
    assert METRICS[name].axis == f"{METRICS[name].title} (s)"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two requests of a client, most of a day apart."""
    scenario = {
        "path": "nbiot-anrw18",
        "clients": [
            {
                "count": 3,
                "controller": "rfc7252",
                "exchanges": 2,
                "workload": {"kind": "continuous", "think": {"kind": "uniform", "from": "1 h", "to": "20 h"}},
            }
        ],
        "run": {"until": "2 d"},
    }
    return millpond.run(scenario, out=tmp_path_factory.mktemp("long") / "out", report=False).results


@pytest.mark.parametrize("draw", [figures.reported_by_group, figures.bottleneck_over_time])
def test_a_day_is_told_in_hours(draw: Callable[[Results], Plot], long: Results) -> None:
    figure = draw(long).draw()
    below = panels(figure)[-1]
    assert below.get_xlabel() == "time since the start (h)"
    check_texts(figure)
    told = [label.get_text() for label in below.get_xticklabels()]
    assert all(float(text) <= 48 for text in told)
    assert len(told) > 3


def test_a_logarithmic_axis_of_days_has_times_with_plain_names(tmp_path: Path) -> None:
    scenario = {
        "path": "nbiot-anrw18",
        "clients": [
            {"count": 3, "controller": "rfc7252", "name": "soon", "exchanges": 1},
            {
                "count": 3,
                "controller": "rfc7252",
                "name": "late",
                "exchanges": 2,
                "workload": {"kind": "continuous", "think": "1 d"},
            },
        ],
        "run": {"until": "2 d"},
    }
    figure = figures.reported_by_group(millpond.run(scenario, out=tmp_path / "out", report=False).results).draw()
    panel = panels(figure)[0]
    assert (panel.get_xscale(), panel.get_xlabel()) == ("log", "time since the start")
    check_texts(figure)
    assert {"1 min", "1 h", "1 d"} <= {label.get_text() for label in panel.get_xticklabels()}


def test_small_multiples_of_times_are_told_in_hours(tmp_path: Path) -> None:
    plan = {
        "scenario": {
            "path": "nbiot-anrw18",
            "clients": [
                {
                    "count": 2,
                    "controller": "rfc7252",
                    "exchanges": 2,
                    "workload": {"kind": "continuous", "think": "1 d"},
                }
            ],
            "run": {"until": "2 d"},
        },
        "matrix": {"clients[0].count": [1, 2, 4]},
    }
    done = millpond.sweep(plan, out=tmp_path / "out", report=False)
    figure = figures.small_multiples(done.results, "clients_done_99").draw()
    assert panels(figure)[0].get_ylabel() == "99 % of the clients done\nafter (h)"
    check_texts(figure)
