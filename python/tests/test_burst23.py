"""The pictures of the study `burst23`: rates, queues and retransmissions over time, from traced windows."""
# ruff: noqa: ARG002 - a stand-in has the arguments that its calls have

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from millpond.errors import UsageError
from millpond.plan import study
from millpond.results.directory import Cell, Group
from millpond.show.document import Missing
from millpond.show.report import style
from millpond.show.report.grid import Grid
from millpond.studies.burst23 import page as courses

SECONDS = 20


def cell(number: int, algorithm: str, traffic: str = courses.SCENARIOS[0]) -> Cell:
    columns: dict[str, Any] = {"traffic": traffic, "offered_load": "backlog"}
    scenario = {"network": {"links": {"bs-up": {"rate": "300 kbit/s"}}}, "clients": [{}]}
    group = cast(Group, SimpleNamespace(algorithm=algorithm, index=0))
    return cast(Cell, SimpleNamespace(number=number, columns=columns, groups=(group,), scenario=scenario))


class Traced:
    """Two algorithms: one sends 10 messages of 100 B a second, the other 4, and each of them once again."""

    def __init__(self, *, traced: bool = True) -> None:
        self.looks = {"default": style.SOLID, "other": style.OWN}
        self.cells = [cell(0, "default"), cell(1, "other"), cell(2, "default", "rate step")]
        self._traced = traced

    def has(self, table: str) -> bool:
        return self._traced and table == "sent_trace"

    def plain(self) -> list[Cell]:
        return self.cells

    def traced(self, cells: list[Cell]) -> list[tuple[Cell, int]]:
        return [(cell, cell.number) for cell in cells]

    def controllers(self) -> list[str]:
        return ["default", "other"]

    def label(self, name: str) -> str:
        return f"{name}, so called"

    def bottleneck(self, cell: Cell) -> str:
        return "bs-up"

    def rows(self, table: str, run: int, columns: tuple[str, ...], link: str = "") -> list[Any]:
        if table == "queue_trace":
            assert link == "bs-up"
            return [np.arange(float(SECONDS)), np.full(SECONDS, 37_500.0 * (run + 1))]
        times, many = np.arange(float(SECONDS)), np.full(SECONDS, 10.0 if run == 0 else 4.0)
        again = np.zeros(SECONDS) if run == 0 else many
        return [times, many, again, (many + again) * 100]


def test_rates_are_those_of_the_windows_and_the_queue_is_told_as_waiting() -> None:
    found = courses.courses(cast(Grid, Traced()), courses.SCENARIOS[0])
    assert list(found) == ["default", "other"]
    assert found["default"].times.tolist() == [2.5, 7.5, 12.5, 17.5]
    for name, first, again, wait in (("default", 10.0, 0.0, 1.0), ("other", 4.0, 4.0, 2.0)):
        course = found[name]
        assert np.allclose(course.first, first), name
        assert np.allclose(course.again, again), name
        # 37,500 B leave 300 kbit/s in a second
        assert np.allclose(course.wait, wait), name
        assert course.capacity == pytest.approx(300_000 / 8 / 100), name


def test_every_algorithm_is_drawn_in_three_panels() -> None:
    grid = cast(Grid, Traced())
    figure = courses.over_time(grid, courses.SCENARIOS[0]).draw()
    assert len(figure.axes) == 6
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == list(courses.QUANTITIES)
    assert len(courses.over_time(grid, courses.SCENARIOS[0]).rows.rows) == 2 * SECONDS // courses.WINDOW


def test_without_traces_nothing_is_drawn() -> None:
    with pytest.raises(Missing, match="no run was traced"):
        courses.courses(cast(Grid, Traced(traced=False)), courses.SCENARIOS[0])
    with pytest.raises(Missing, match="no run of heavy congestion"):
        courses.courses(cast(Grid, Traced()), courses.SCENARIOS[1])


# What is run.

NON_CONFIRMABLE = {"tfrc", "cocoa_non", "fasor_non"}


def test_non_confirmable_messages_are_sent_alone_and_beside_default_coap() -> None:
    program = study.unfold(study.load(study.find("burst23")))
    found = set()
    for planned in program.cells:
        groups = planned.cell.groups
        for group, clients in zip(groups, planned.cell.scenario["clients"], strict=True):
            plain = group.algorithm in NON_CONFIRMABLE
            assert clients.get("confirmable", True) is not plain, planned.cell.id
            if plain:
                assert clients["nstart"] == 256
                found.add((group.algorithm, len(groups), planned.cell.columns["traffic"]))
    assert found >= {
        (name, size, traffic) for name in NON_CONFIRMABLE for size in (1, 2) for traffic in courses.SCENARIOS
    }


@pytest.mark.parametrize(
    ("chosen", "scenarios"),
    [
        (["heavy congestion"], {"heavy congestion"}),
        (["rate step", "no rate step"], {"rate step", "no rate step"}),
        (["occasional congestion", "rate step"], {"occasional congestion", "rate step"}),
    ],
)
def test_chosen_scenarios_are_run_as_the_plan_has_them(chosen: list[str], scenarios: set[str]) -> None:
    plan = study.load(study.find("burst23"))
    whole = {one.cell.id: one.cell for one in study.unfold(plan).cells}
    few = [one.cell for one in study.unfold(plan.narrowed(factors={"traffic": chosen})).cells]
    assert {cell.id for cell in few} == {name for name, cell in whole.items() if cell.columns["traffic"] in scenarios}
    assert all(cell.scenario == whole[cell.id].scenario for cell in few)


def test_a_load_that_no_matrix_lists_is_run_where_loads_are() -> None:
    plan = study.load(study.find("burst23")).narrowed(factors={"offered_load": ["backlog"]})
    assert [matrix.values.get("offered_load") for matrix in plan.matrices] == [None, ("backlog",), None]
    with pytest.raises(UsageError, match="--factor traffic: unknown value 'rate stop': did you mean 'rate step'"):
        plan.narrowed(factors={"traffic": ["rate stop"]})


def test_the_manual_counts_the_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies" / "burst23.md").read_text(encoding="utf-8")
    plan = study.load(study.find("burst23"))
    for run, told in ((plan, "# {} runs of 1000 s"), (plan.quick(), "--quick    # {} runs")):
        runs = sum(planned.cell.replications for planned in study.unfold(run).cells)
        assert told.format(runs) in page
