"""Candidates evaluated in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_sweep
from own_controllers import Standard

import millpond
from millpond import UsageError

CANDIDATES: dict[str, Any] = {
    "base": "rfc7252",
    "slow": {"preset": "rfc7252", "ack-timeout": "9 s"},
    "mine": Standard,
}


def test_every_candidate_meets_every_cell_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = {"training": range(2), "held-out": [7]}
    table = millpond.evaluate(small_sweep.tree(), CANDIDATES, seeds, metrics=("fct", "makespan"))
    assert table.column_names == [
        "candidate", "seeds", "seed", "queue", "clients[0].count", "path", "fct", "makespan",
    ]  # fmt: skip
    assert table.num_rows == 3 * 4 * 3
    rows = table.to_pylist()
    assert {(row["seeds"], row["seed"]) for row in rows} == {("training", 0), ("training", 1), ("held-out", 7)}
    assert {row["candidate"] for row in rows} == set(CANDIDATES)
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_what_a_run_of_that_seed_gives(tmp_path: Path) -> None:
    plan = small_sweep.tree()
    table = millpond.evaluate(plan, {"base": "rfc7252"}, [5], metrics=("makespan",))
    swept = millpond.sweep(plan, seed=5, controllers=["rfc7252"], replications=1, out=tmp_path / "out", report=False)
    kept = [us / 1e6 for us in swept.table("runs").column("makespan_us").to_pylist()]
    assert table.column("makespan").to_pylist() == kept
    assert len(kept) == 4


def test_names_alone_are_candidates() -> None:
    table = millpond.evaluate(small_sweep.tree(), ["cocoa-03"], [1], metrics=("fct",))
    assert set(table.column("candidate").to_pylist()) == {"cocoa-03"}


@pytest.mark.parametrize(
    ("candidates", "seeds", "metrics", "told"),
    [
        (["rfc7252"], {"training": [1, 2], "held-out": [2]}, ("fct",), "2 is in both 'training' and 'held-out'"),
        (["rfc7252"], [3, 3], ("fct",), "3 is there twice"),
        (["rfc7252"], {"training": []}, ("fct",), "seeds 'training': none"),
        (["rfc7252"], [-1], ("fct",), "-1 is out of range"),
        ([], [1], ("fct",), "candidates: none"),
        (["rfc7253"], [1], ("fct",), "did you mean `rfc7252`"),
        (["rfc7252"], [1], ("fctt",), "unknown metric 'fctt': did you mean 'fct'"),
        (["nowhere.py:Mine"], [1], ("fct",), "nowhere.py"),
    ],
)
def test_what_makes_no_sense_is_one_line(candidates: Any, seeds: Any, metrics: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        millpond.evaluate(small_sweep.tree(), candidates, seeds, metrics=metrics)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
