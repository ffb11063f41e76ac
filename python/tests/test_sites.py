"""Fleets of sites: random streams of their own, no row of a device, the same on any machine, the worst first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import small_sweep

import millpond
from millpond import Results, UsageError, cli
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.sites import Sites
from millpond.plan import study
from millpond.results import store
from millpond.run import capture
from millpond.studies import pages as page

LISTS = {"queue": ["1 kB", "8 kB"], "clients[0].count": [40], "algorithm": ["rfc7252", "cocoa-03"]}


def fleet(**changes: Any) -> dict[str, Any]:
    tree = small_sweep.tree(name="small-fleet", **changes)
    tree.pop("replications")
    tree["matrix"] = [
        {**LISTS, "queue": ["8 kB"], "sites": 6},
        {**LISTS, "queue": ["1 kB"], "sites": 3},
    ]
    return tree


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return millpond.sweep(fleet(), out=tmp_path_factory.mktemp("fleet") / "out", report=False).results


def test_sites_of_the_next_matrix_have_further_random_streams_that_controllers_share(results: Results) -> None:
    runs = results.table("runs")
    assert len(results.manifest["seeds"]) == 9
    seeds = np.array(runs.column("seed").to_pylist())
    whole, cut = seeds[:12].reshape(2, 6), seeds[12:].reshape(2, 3)
    assert (whole[0] == whole[1]).all()
    assert (cut[0] == cut[1]).all()
    assert not set(whole[0]) & set(cut[0])


def test_no_row_of_a_device_is_kept_and_counts_are_those_of_the_run_itself(results: Results, tmp_path: Path) -> None:
    assert not results.has("flows")
    assert not results.has("arrivals")
    cell = results.cells[2]
    alone = millpond.run(cell.scenario, seed=int(results.manifest["seeds"][7]), out=tmp_path / "one", report=False)
    (told,) = alone.results.table("runs").to_pylist()
    here = results.table("runs").slice(cell.first_run + 1, 1).to_pylist()[0]
    same = ("seed", "events", "arrivals", "answered", "failed", "delivered", "clients_complete", "makespan_us")
    assert {name: here[name] for name in same} == {name: told[name] for name in same}


def test_a_fleet_is_the_same_whoever_runs_it(results: Results, tmp_path: Path) -> None:
    again = millpond.sweep(fleet(), out=tmp_path / "again", report=False, on="processes", jobs=2).results
    parts = [
        millpond.sweep(fleet(), out=tmp_path / "shards" / str(n), shard=(n, 2), report=False).directory for n in (1, 2)
    ]
    for name in ("runs", "links", "delays", "reported"):
        assert again.table(name).equals(results.table(name)), name
        assert Results.open(parts).table(name).equals(results.table(name)), name


def test_numbers_of_a_site_are_those_of_its_run(results: Results) -> None:
    sites = Sites(Measures(results))
    runs = results.table("runs").to_pandas()
    table = sites.to_table().to_pandas()
    assert table["run"].tolist() == runs["run"].tolist()
    assert table["seed"].tolist() == runs["seed"].tolist()
    assert np.allclose(table["requests_answered"], runs["answered"] / runs["arrivals"])
    delays = results.table("delays").to_pandas()
    for run, longest in zip(table["run"], table["answer_delay_max"], strict=True):
        mine = delays[(delays["run"] == run) & (delays["kind"] == "answer")]
        assert longest == mine["upper_us"].max() * 1e-6


def test_the_worst_sites_come_first(results: Results) -> None:
    sites = Sites(Measures(results))
    number = sites.numbers[0]
    assert number.name == "requests_answered"
    worst = sites.worst(18)
    keys = [tuple(s.value(n) * (1 if n.better == "more" else -1) for n in sites.numbers[:3]) for s in worst]
    assert keys == sorted(keys)
    assert len({site.kind.cell.first_run + site.place for site in worst}) == 18


def test_the_page_has_distributions_and_a_map_and_is_the_same_twice(results: Results) -> None:
    told = page.render(results)
    assert "Sites as distributions" in told
    assert "The worst is site" in told
    assert told == page.render(Results.open(results.directory))
    names = [picture.name for section in page.sections(results) for picture in section.pictures]
    for section in page.sections(results):
        for picture in section.pictures:
            plot = picture.plot()
            assert plot.rows.rows
            plot.draw()
    assert len(set(names)) == len(names)
    assert any(name.startswith("map-") for name in names)


def test_a_site_can_be_looked_at_and_verified(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    cell, seed, content = capture.of_results(results, results.cells[3].id, 2)
    assert seed == results.table("runs").column("seed").to_pylist()[cell.first_run + 2]
    assert content
    with pytest.raises(SystemExit) as ended:
        cli.main(["results", "verify", str(results.directory), "--runs", "18"])
    assert ended.value.code == 0
    assert "18 of 18 runs gave the same rows again" in capsys.readouterr().out


def test_candidates_meet_every_seed_on_every_site() -> None:
    table = millpond.evaluate(fleet(), ["rfc7252", "cocoa-03"], [1, 2], metrics=("fct",))
    assert table.num_rows == 2 * 2 * 2
    assert table.column("seed").to_pylist() == [1, 2] * 4
    assert table.column("fct").null_count == 0


def test_quick_and_replications_count_sites(tmp_path: Path) -> None:
    done = millpond.sweep(fleet(quick={"replications": 2}), quick=True, out=tmp_path / "out", report=False)
    assert done.results.manifest["runs"] == 2 * 2 * 2
    assert len(set(done.results.manifest["seeds"])) == 4
    assert done.summary.num_rows == 8


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"matrix": {**LISTS, "sites": 2, "replications": 2}}, "sites are counted where"),
        ({"matrix": [{**LISTS, "sites": 2}, LISTS]}, "some count sites and some replications"),
        ({"claims": "claims.toml"}, "sites are counted where nothing is published"),
        ({"matrix": {**LISTS, "sites": 0}}, "sites"),
    ],
)
def test_what_is_no_fleet_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        study.load({**fleet(), **change})


def test_rows_are_put_in_order_some_runs_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = millpond.sweep(small_sweep.tree(), out=tmp_path / "whole", report=False).results
    monkeypatch.setattr(store, "WINDOW_ROWS", 10)
    monkeypatch.setattr(store, "PART_ROWS", 50)
    done = millpond.sweep(small_sweep.tree(), out=tmp_path / "out", report=False).results
    assert pq.read_metadata(tmp_path / "out" / "flows.parquet").num_row_groups > 8
    for name in ("runs", "flows", "links", "histogram", "delays", "reported"):
        assert done.table(name).equals(whole.table(name)), name


def test_a_table_without_rows_stays_one(tmp_path: Path) -> None:
    parts = store.Parts(tmp_path)
    empty = (
        millpond.run(
            small_sweep.tree()["scenario"] | {"clients": [{"count": 1, "controller": "rfc7252", "exchanges": 1}]},
            out=tmp_path / "one",
            report=False,
        )
        .results.table("links")
        .slice(0, 0)
    )
    parts.add([0], {"links": empty})
    (merged,) = parts.merged("links")
    assert merged.equals(empty)


def test_the_numbers_of_sites_are_metrics_with_these_statistics() -> None:
    from millpond.measure.sites import NUMBERS

    assert all(number.metric in METRICS for number in NUMBERS)
    assert len({number.name for number in NUMBERS}) == len(NUMBERS)
