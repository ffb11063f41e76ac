from __future__ import annotations

from pathlib import Path

import pytest
from published_rows import MakeRows

from millpond.errors import UsageError
from millpond.judge.published import COLUMNS, Condition, Published, read
from millpond.results.factor import Factor


def test_the_built_in_file_is_read_whole(built_in: Published) -> None:
    assert len(built_in.rows) == 172
    assert len(built_in.claims()) == 33
    row = next(row for row in built_in.rows if row.id == "anrw18-r0176")
    assert row.is_claim
    assert row.change == -0.68
    assert row.scenario() == {
        "clients": 400,
        "buffer_bytes": 1410000,
        "workload": "continuous",
        "error_profile": "none",
        "payload": 60,
    }


FACTORS = {
    "buffer_bytes": Factor("buffer_bytes", "buffer"),
    "clients": Factor("clients"),
    "workload": Factor("workload"),
}


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("buffer>=14100", 14100, True),
        ("buffer_bytes>=14100", 2500, False),
        ("clients=1;10", 10, True),
        ("clients=1;10", 100, False),
        ("workload=random", "random", True),
        ("clients<50", 50, False),
    ],
)
def test_conditions(text: str, value: int | str, met: bool) -> None:
    condition = Condition.parse(text, FACTORS)
    assert condition is not None
    assert condition.met(value) is met


@pytest.mark.parametrize("text", ["bufferbloat", "rto<1s", "50 x rtt", "", "larger buffer"])
def test_words_are_no_conditions(text: str) -> None:
    assert Condition.parse(text, FACTORS) is None


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(",".join(c for c in COLUMNS if c not in ("metric", "value")) + "\n")
    with pytest.raises(UsageError, match="missing columns metric, value"):
        read(file)


def test_a_line_cut_short_is_named(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(",".join(COLUMNS) + "\nanrw18-r1,anrw18,Table 1,res")
    with pytest.raises(UsageError, match="line 2"):
        read(file)


def test_a_number_that_is_none_is_named(rows: MakeRows) -> None:
    with pytest.raises(UsageError, match="line 2: value: 'fast' is not a number"):
        rows({"metric": "fct", "value": "fast"})


def test_no_rows_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(UsageError, match="holds no figures"):
        read(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.csv: no such file"):
        read(tmp_path / "nowhere.csv")
