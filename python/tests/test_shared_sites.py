"""Fleets whose sites share links: the same on any number of cores, felt by all, resumed whole, never taken apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
import small_sweep

import millpond
from millpond import MillpondError, Results, UsageError, cli
from millpond.plan import study
from millpond.run import capture
from millpond.run.campaign import Watcher
from millpond.run.jobs import Job


def link(rate: str, delay: str, queue: str = "20 kB") -> dict[str, str]:
    return {"rate": rate, "delay": delay, "queue": queue}


def fleet(backbone: str = "60 kbit/s", shared: bool = True, **changes: Any) -> dict[str, Any]:
    """Six quiet sites and three busy ones behind one backbone."""
    tree = small_sweep.tree(name="shared-fleet", **changes)
    tree.pop("replications")
    tree.pop("vary")
    tree["scenario"] = {
        "network": {
            "up": ["cell-up", "backbone-up"],
            "down": ["backbone-down", "cell-down"],
            **({"shared": ["backbone-down", "backbone-up"]} if shared else {}),
            "links": {
                "cell-up": link("60 kbit/s", "100 ms"),
                "cell-down": link("30 kbit/s", "100 ms"),
                "backbone-up": link(backbone, "20 ms"),
                "backbone-down": link(backbone, "30 ms"),
            },
        },
        "clients": [{"controller": "rfc7252", "exchanges": 3, "count": 4}],
    }
    lists = {"algorithm": ["rfc7252", "cocoa-03"]}
    tree["matrix"] = [{**lists, "clients[0].count": [4], "sites": 6}, {**lists, "clients[0].count": [40], "sites": 3}]
    return tree


def tables(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.glob("*.parquet")}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return millpond.sweep(fleet(), out=tmp_path_factory.mktemp("fleet") / "out", jobs=1).results


def test_results_are_the_same_on_any_number_of_cores(results: Results, tmp_path: Path) -> None:
    millpond.sweep(fleet(), out=tmp_path / "out", jobs=3, report=False)
    assert tables(tmp_path / "out") == tables(results.directory)
    assert len(results.table("runs")) == 18


def test_sites_feel_each_other_and_not_where_there_is_room_for_all(results: Results, tmp_path: Path) -> None:
    def spans(done: Results) -> list[int]:
        return [int(span) for span in done.table("runs").column("makespan_us").to_pylist()]

    apart = millpond.sweep(fleet(shared=False), out=tmp_path / "apart", report=False).results
    assert all(here > there for here, there in zip(spans(results), spans(apart), strict=True))
    wide = millpond.sweep(fleet("1 Gbit/s"), out=tmp_path / "wide", report=False).results
    alone = millpond.sweep(fleet("1 Gbit/s", shared=False), out=tmp_path / "alone", report=False).results
    # parts of a microsecond that a packet takes on what is shared add up for all
    assert all(abs(here - there) <= 8 for here, there in zip(spans(wide), spans(alone), strict=True))


def test_rows_of_what_is_shared_are_the_sites_own(results: Results) -> None:
    links = results.table("links").to_pandas()
    runs = results.table("runs").to_pandas()
    for name in ("backbone-up", "backbone-down"):
        rows = links[links["link"] == name]
        mine = links[links["link"] == name.replace("backbone", "cell")]
        assert (rows["delivered_packets"].to_numpy() > 0).all()
        if name == "backbone-up":
            assert rows["offered_packets"].to_list() == mine["delivered_packets"].to_list()
        # one for each fleet: two algorithms
        assert rows["busy_us"].nunique() == 2
    assert (runs["answered"] == runs["arrivals"]).all()


def test_the_report_shows_such_a_fleet(results: Results) -> None:
    assert (results.directory / "report.html").is_file()


class Full(Exception):
    """What a disk says."""


class Stop(Watcher):
    """Fails after so many runs."""

    def __init__(self, runs: int) -> None:
        self.left = runs

    def finished(self, job: Job) -> None:
        assert job.run >= 0
        self.left -= 1
        if not self.left:
            raise Full


def test_a_fleet_that_was_stopped_is_resumed_whole(results: Results, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Full):
        millpond.sweep(fleet(), out=out, jobs=1, report=False, watcher=Stop(11))
    assert json.loads((out / "manifest.json").read_text())["runs_done"] == 11
    millpond.sweep(fleet(), out=out, jobs=2, report=False, resume=True)
    assert tables(out) == tables(results.directory)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on": "processes"}, "on: sites that share links are run together"),
        ({"shard": (1, 2)}, "shard: sites that share links are one fleet"),
    ],
)
def test_what_takes_sites_apart_is_refused(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        millpond.sweep(fleet(), out=tmp_path / "out", report=False, **options)
    assert not (tmp_path / "out").exists()


def test_kinds_of_sites_within_one_matrix_are_refused(tmp_path: Path) -> None:
    tree = fleet()
    tree["matrix"][0]["clients[0].count"] = [4, 8]
    with pytest.raises(UsageError, match=r"which of them share the links\? .* give each kind a \[\[matrix\]\]"):
        millpond.sweep(tree, out=tmp_path / "out", report=False)


def test_one_site_cannot_be_looked_at_alone(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="no runs of their own"):
        capture.of_results(results, results.cells[0].id, 0)
    with pytest.raises(UsageError, match="shared-fleet: sites that share links are no runs of their own"):
        millpond.evaluate(fleet(), ["rfc7252"], [1], metrics=("fct",))
    for words, code in ((["--runs", "0"], 0), ([], 2)):
        with pytest.raises(SystemExit) as ended:
            cli.main(["results", "verify", str(results.directory), *words])
        assert ended.value.code == code
    assert capsys.readouterr().err.count("\n") == 1


def test_sites_that_do_not_fit_the_memory_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = study.unfold(study.load(fleet()))

    class Little:
        available = 2 * max(planned.scenario.estimated_bytes() for planned in program.cells)

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(MillpondError, match="shared-fleet: sites that share links are in memory all at once"):
        millpond.sweep(fleet(), out=tmp_path / "out", jobs=1, report=False)
    millpond.sweep(fleet(shared=False), out=tmp_path / "out", jobs=1, report=False)


def test_links_that_differ_are_named(tmp_path: Path) -> None:
    tree = fleet()
    tree["vary"] = {"backbone": {"places": ["network.links.backbone-up.rate"]}}
    for matrix, rate in zip(tree["matrix"], ("60 kbit/s", "90 kbit/s"), strict=True):
        matrix["backbone"] = [rate]
    with pytest.raises(MillpondError, match=r"network\.shared: sites share links that are the same for all of them"):
        millpond.sweep(tree, out=tmp_path / "out", report=False)
