"""Traces of links in files beside a scenario: read once, kept with the results, told with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan import study
from millpond.studies.reproduction import kept_files

VALUES = "time (s),rate (kbit/s)\n0,30\n5,8\n"
SCENARIO = """
[path]
profile = "nbiot-anrw18"
uplink = { trace = "cell.up" }
downlink = { trace = { file = "cell.csv", every = "10 s" } }
[[clients]]
count = 1
controller = "rfc7252"
exchanges = 1
"""


def written(folder: Path, values: str = VALUES) -> Path:
    (folder / "cell.csv").write_text(values)
    (folder / "cell.up").write_text("20\n40\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder / "scenario.toml"


def test_traces_are_read_from_the_files_beside_the_scenario(tmp_path: Path) -> None:
    file = written(tmp_path)
    full = scenarios.in_full(scenarios.load(file))
    assert full["path"]["downlink"]["trace"] == {"file": "cell.csv", "rows": VALUES, "every": "10 s"}
    assert full["path"]["uplink"]["trace"] == {"file": "cell.up", "rows": "20\n40\n"}
    assert full == scenarios.in_full(scenarios.build(scenarios.load_tree(file), "tree"))
    # what was read stays in the scenario, so that it can be run again without the files
    (tmp_path / "cell.csv").unlink()
    (tmp_path / "cell.up").unlink()
    assert scenarios.in_full(scenarios.build(full, "again")) == full


def test_another_file_is_read_anew(tmp_path: Path) -> None:
    tree = scenarios.load_tree(written(tmp_path))
    (tmp_path / "other.csv").write_text(VALUES.replace("30", "20"))
    changed = scenarios.with_changes(tree, {"path.downlink.trace.file": str(tmp_path / "other.csv")})
    full = scenarios.in_full(scenarios.build(changed, "changed"))
    assert full["path"]["downlink"]["trace"]["rows"] == VALUES.replace("30", "20")


def test_links_of_a_network_have_traces_too(tmp_path: Path) -> None:
    (tmp_path / "cell.csv").write_text(VALUES)
    (tmp_path / "net.toml").write_text(
        '[network]\nup = ["air"]\ndown = ["air"]\n[network.links.air]\ndelay = "5 ms"\nqueue = "4 kB"\n'
        'trace = "cell.csv"\n[[clients]]\ncount = 1\ncontroller = "rfc7252"\nexchanges = 1\n'
    )
    full = scenarios.in_full(scenarios.load(tmp_path / "net.toml"))
    assert full["network"]["links"]["air"]["trace"]["rows"] == VALUES


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (VALUES + "4,8\n", "downlink: trace: cell.csv, line 4: the time is not after that of the step before"),
        (VALUES + "10,8\n", "downlink: trace: cell.csv, line 4: the step begins when the trace has begun again"),
        (VALUES.replace("30", "0").replace("8", "0"), "downlink: trace: cell.csv: nothing is ever sent again"),
        ("", "downlink: trace: cell.csv, line 1: no steps"),
    ],
)
def test_a_bad_trace_is_refused_in_one_line(tmp_path: Path, values: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        scenarios.load(written(tmp_path, values))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    (tmp_path / "cell.csv").unlink()
    with pytest.raises(UsageError, match=r"cell\.csv: no such file"):
        scenarios.load(file)


def test_a_plan_keeps_the_traces_that_its_scenario_names(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "plan.toml").write_text('scenario = "scenario.toml"\n[matrix]\nalgorithm = ["rfc7252", "cocoa-03"]\n')
    kept = kept_files(study.load(tmp_path))
    assert kept["study/cell.csv"] == tmp_path / "cell.csv"
    assert kept["study/cell.up"] == tmp_path / "cell.up"
