"""What notebooks hand over: NumPy's numbers, a single value for a list, and things that fit nowhere."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_sweep

import millpond
from millpond import UsageError
from millpond.plan import single


def scenario() -> dict[str, Any]:
    tree = small_sweep.tree()["scenario"]
    return {**tree, "clients": [{**tree["clients"][0], "count": 2}]}


def program(tree: Any, **options: Any) -> Any:
    return single.program(tree, **options)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    tree = scenario()
    tree["clients"][0]["count"] = np.int64(3)
    done = program(tree, changes={"clients[0].exchanges": np.int32(2)}, replications=np.int64(2), seed=np.int64(5))
    assert done.seeds == (5, 6)
    assert done.cells[0].cell.scenario["clients"][0]["count"] == 3
    numbers: Any = {"factors": {"clients[0].count": np.array([3])}, "seed": np.int64(2), "replications": np.int64(1)}
    swept = millpond.sweep(small_sweep.tree(), **numbers, out=tmp_path / "out", report=False)
    assert swept.results.manifest["seeds"] == [2]
    assert set(swept.table("runs").column("clients[0].count").to_pylist()) == {3}
    seeds: Any = np.arange(2)
    table = millpond.evaluate(small_sweep.tree(), ["rfc7252"], seeds, metrics=("fct",))
    assert set(table.column("seed").to_pylist()) == {0, 1}


def test_what_is_in_memory_alone_is_shown_and_told() -> None:
    done = millpond.run(scenario())
    assert done.tables
    assert "SHA-256" not in done.statement
    assert "plan sha256:" in done.statement


def test_a_single_value_stands_for_a_list_of_one(tmp_path: Path) -> None:
    swept = millpond.sweep(
        small_sweep.tree(), factors={"queue": "1 kB"}, controllers="cocoa-03", out=tmp_path / "out", report=False
    )
    assert set(swept.table("runs").column("queue").to_pylist()) == {"1 kB"}
    assert set(swept.table("runs").column("algorithm").to_pylist()) == {"cocoa-03"}
    table = millpond.evaluate(small_sweep.tree(), ["rfc7252"], [1], metrics="fct")
    assert table.column_names[-1] == "fct"


def test_tables_that_are_not_of_runs_have_the_factors_too(tmp_path: Path) -> None:
    swept = millpond.sweep(small_sweep.tree(), out=tmp_path / "out", report=False)
    assert swept.table("cells").equals(swept.results.table("cells"))
    groups = swept.table("groups")
    assert groups.column_names[:3] == ["queue", "clients[0].count", "path"]
    assert groups.column("queue").to_pylist() == ["1 kB", "1 kB", "8 kB", "8 kB"] * 2
    assert groups.column("algorithm").to_pylist() == ["rfc7252"] * 4 + ["cocoa-03"] * 4


def test_a_factor_may_be_called_as_a_column_is(tmp_path: Path) -> None:
    plan = small_sweep.tree(matrix={"fct_us": ["1 kB", "8 kB"]}, vary={"fct_us": {"places": ["path.uplink.queue"]}})
    plan["scenario"] = scenario()
    flows = millpond.sweep(plan, out=tmp_path / "out", report=False).table("flows")
    assert len(set(flows.column_names)) == len(flows.column_names)
    assert set(flows.column("fct_us (factor)").to_pylist()) == {"1 kB", "8 kB"}


@pytest.mark.parametrize(
    ("tree", "options", "told"),
    [
        (None, {}, "scenario: NoneType is no scenario"),
        ([1], {}, "scenario: list is no scenario"),
        ({"title": b"a"}, {}, "scenario: title: bytes fits nowhere"),
        ({"run": {"for": datetime.date(2030, 1, 1)}}, {}, "scenario: run.for: date fits nowhere"),
        ({"clients": [{"count": float("nan")}]}, {}, "scenario: clients[0].count: nan is no number"),
        ({}, {"changes": {"path.uplink.loss": float("inf")}}, "--set path.uplink.loss: inf is no number"),
        ({}, {"replications": "5"}, "--replications: '5' is no whole number"),
        ({}, {"replications": 10**11}, "--replications: 100000000000 makes no sense here: 1 to 1,000,000"),
        ({}, {"seed": 1.5}, "--seed: 1.5 is no whole number"),
    ],
)
def test_what_fits_nowhere_is_one_line(tree: Any, options: dict[str, Any], told: str) -> None:
    whole = {**scenario(), **tree} if isinstance(tree, dict) else tree
    with pytest.raises(UsageError) as caught:
        program(whole, **options)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda plan: millpond.sweep(plan, factors={"queue": []}), 'factors["queue"]: no value: name at least one'),
        (lambda plan: millpond.sweep(plan, shard=(1, 0)), "shard: 1/0 makes no sense here: at least one part"),
        (lambda plan: millpond.evaluate(plan, ["rfc7252"], {}), "seeds: none: name at least one"),
        (lambda plan: millpond.evaluate(plan, ["rfc7252"], 5), "seeds: 5 is no list"),  # type: ignore[arg-type]
    ],
)
def test_a_call_that_makes_no_sense_is_one_line(call: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        call(small_sweep.tree())
    assert str(caught.value).startswith(told)


def test_runs_in_memory_say_so() -> None:
    assert repr(millpond.run(scenario())).endswith(": 1 setting, 1 run in memory>")
