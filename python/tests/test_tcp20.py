"""The study of firmware updates over TCP and UDP, by the engine that ships: a slice of it, judged for real."""

from __future__ import annotations

from pathlib import Path

import pytest

import millpond
from millpond.judge.compare import Figure
from millpond.judge.published import read
from millpond.measure.population import Population
from millpond.plan import study
from millpond.studies.tcp20 import listings as downloads

ALGORITHMS = ["default", "cocoa", "tcp_newreno", "tcp_bbr"]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """One client, every buffer and error profile, on every reading of the test bed."""
    out = tmp_path_factory.mktemp("one") / "out"
    return millpond.reproduce("tcp20", quick=True, clients=[1], replications=3, out=out, report=False)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """Four clients of New Reno."""
    out = tmp_path_factory.mktemp("four") / "out"
    names = ["tcp_newreno"]
    return millpond.reproduce(
        "tcp20", quick=True, controllers=names, clients=[4], replications=10, out=out, report=False
    )


def percentiles(done: millpond.Reproduction, **wanted: object) -> list[Figure]:
    return [f for f in downloads.tabled(done.comparison) if all(f.scenario.get(k) == v for k, v in wanted.items())]


def error_free(algorithm: str, buffer_bytes: int, path: str = "as-printed", clients: int = 1) -> Population:
    return Population.of(algorithm, clients=clients, buffer_bytes=buffer_bytes, workload="bulk", path=path).but(
        error_profile="none"
    )


@pytest.mark.parametrize("algorithm", ["default", "cocoa"])
def test_four_hundred_blocks_take_as_long_as_published(one: millpond.Reproduction, algorithm: str) -> None:
    found = percentiles(one, algorithm=algorithm, error_profile="none")
    assert len(found) == 8
    for figure in found:
        assert figure.ours == pytest.approx(figure.published, rel=0.0005), figure


@pytest.mark.parametrize(
    ("algorithm", "buffer_bytes", "path", "tolerance"),
    [
        ("tcp_newreno", 1410000, "as-printed", 0.01),
        ("tcp_newreno", 28200, "as-printed", 0.05),
        ("tcp_newreno", 14100, "linux-acks", 0.1),
        ("tcp_newreno", 2500, "as-printed", 3.6),  # one packet more or less in this buffer moves it by seconds
        ("tcp_bbr", 14100, "as-printed", 0.1),
        ("tcp_bbr", 28200, "as-printed", 0.1),
        ("tcp_bbr", 1410000, "as-printed", 0.1),
    ],
)
def test_one_client_over_tcp_takes_as_long_as_published(
    one: millpond.Reproduction, algorithm: str, buffer_bytes: int, path: str, tolerance: float
) -> None:
    found = percentiles(one, algorithm=algorithm, buffer_bytes=buffer_bytes, error_profile="none", path=path)
    assert [figure.statistic for figure in found] == ["min", "p10", "p25", "median", "p75", "p90", "p95", "max"]
    for figure in found:
        assert figure.ours == pytest.approx(figure.published, abs=tolerance), figure


def test_slow_start_loses_as_many_segments_as_published(one: millpond.Reproduction) -> None:
    (figure,) = [f for f in one.comparison.figures if f.id == "tcp20-r0730" and f.scenario["path"] == "as-printed"]
    assert (figure.metric, figure.published, figure.ours) == ("lost_segments", 99, 99)
    for algorithm, buffer_bytes, lost in (("tcp_newreno", 1410000, 0), ("tcp_bbr", 14100, 0)):
        sample = one.measures.sample("lost_segments", error_free(algorithm, buffer_bytes))
        assert sample.take("max") == lost


def test_acknowledgements_read_in_two_ways_are_two_results(one: millpond.Reproduction) -> None:
    printed, linux = (
        one.measures.sample("fct", error_free("tcp_newreno", 14100, path)).take("median")
        for path in ("as-printed", "linux-acks")
    )
    assert 0.3 < linux - printed < 1
    # blocks know nothing of them
    found = percentiles(one, algorithm="default", error_profile="low")
    assert len(found) == 8


def test_every_flow_ends_and_is_counted(one: millpond.Reproduction, four: millpond.Reproduction) -> None:
    for done in (one, four):
        assert done.results.manifest["unfinished_flows"] == 0
        assert set(done.table("flows").column("body_bytes").to_pylist()) == {102400}


def test_four_flows_share_the_link_as_published(four: millpond.Reproduction) -> None:
    found = [
        figure for figure in percentiles(four, error_profile="none", path="as-printed") if figure.statistic == "median"
    ]
    assert [figure.scenario["buffer_bytes"] for figure in found] == [2500, 14100, 28200, 1410000]
    for figure in found:
        assert figure.ours == pytest.approx(figure.published, rel=0.10), figure
    # nothing is lost with the infinite buffer, and hardly anything is spurious: the last flow ends with the last byte
    roomy = error_free("tcp_newreno", 1410000, clients=4)
    assert four.measures.sample("lost_segments", roomy).take("max") == 0
    assert four.measures.sample("retransmitted_segments", roomy).take("median") == 0
    assert four.measures.sample("fct", roomy).take("max") == pytest.approx(126.7, rel=0.03)


@pytest.mark.parametrize("name", ["c42", "c44", "c47", "c48"])
def test_claims_about_one_client_without_errors_hold(one: millpond.Reproduction, name: str) -> None:
    found = next(claim for claim in one.comparison.claims if claim.id == f"tcp20-{name}")
    assert found.verdict == "holds", found


def test_a_claim_about_four_clients_is_not_judged_by_one(one: millpond.Reproduction) -> None:
    found = next(claim for claim in one.comparison.claims if claim.id == "tcp20-c49")
    assert (found.verdict, found.reason) == ("unjudged", "not run: 4 clients")


def test_every_published_figure_of_a_result_is_placed(one: millpond.Reproduction) -> None:
    plan = study.load(study.find("tcp20"))
    assert plan.published is not None
    numbered = {row.id for row in read(plan.published).rows if row["category"] == "result" and row.value is not None}
    assert {figure.id for figure in one.comparison.figures} >= numbered
    assert all(figure.note for figure in one.comparison.figures if figure.ours is None)


def test_traces_are_kept_for_the_graphs_of_sequence_numbers(one: millpond.Reproduction) -> None:
    traced = {cell.number for cell in one.results.cells if cell.first_run in one.results.manifest["trace"]["runs"]}
    places = {
        (cell.columns["algorithm"], cell.columns["buffer_bytes"], cell.columns["error_profile"])
        for cell in one.results.cells
        if cell.number in traced
    }
    algorithms, buffers = ("default", "tcp_newreno", "tcp_bbr"), (2500, 14100, 28200, 1410000)
    assert places == {(name, size, error) for name in algorithms for size in buffers for error in ("none", "low")}
    for table in ("packets", "tcp_trace", "queue_trace", "rto_trace"):
        assert one.results.has(table)


def test_a_preset_of_no_study_joins_the_downloads_over_udp(tmp_path: Path) -> None:
    done = millpond.reproduce(
        "tcp20",
        quick=True,
        controllers=["basic-rto"],
        clients=[1],
        buffers=[2500],
        replications=1,
        out=tmp_path / "out",
        report=False,
    )
    found = {population.algorithm for population in done.measures.populations()}
    assert found == {"basic_rto"}
    assert done.measures.sample("fct", error_free("basic_rto", 2500)).take("median") == pytest.approx(285.695, abs=0.02)


def test_scenarios_say_what_the_thesis_does() -> None:
    program = study.unfold(study.load(study.find("tcp20")))
    cells = {planned.cell.id: planned.cell for planned in program.cells}
    stream = cells["tcp_bbr-4-28200-bulk-high-as-printed"].scenario
    assert stream["clients"][0]["start_spread"] == "1 s"
    assert stream["clients"][0]["transport"]["congestion"] == "bbr"
    assert "controller" not in stream["clients"][0]
    blocks = cells["default-1-28200-bulk-none-as-printed"].scenario
    assert blocks["clients"][0]["transfer"]["size"] == "256 B"
    assert (blocks["clients"][0]["start_spread"], blocks["server"]["host_time"]) == ("0 s", "650 us")
    short = cells["coap_over_tcp-400-2500-random-60-as-printed"].scenario
    assert short["clients"][0]["transport"].get("open_ahead", "0 s") == "0 s"
