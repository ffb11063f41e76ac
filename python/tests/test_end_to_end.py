"""The study itself, by the engine that ships: the figures that must come out, and that they come out the same again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import millpond
from millpond.judge.compare import Figure, Verdict
from millpond.measure.population import Population

EXACT = ("min", "p10", "p25", "median", "p75", "p90", "max")


@pytest.fixture(scope="session")
def exact(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """1 and 50 clients, the two small buffers, 20 replications."""
    return millpond.reproduce(
        "anrw18",
        controllers=["default", "cocoa"],
        clients=[1, 50],
        buffers=[2500, 14100],
        out=tmp_path_factory.mktemp("exact") / "out",
        report=False,
    )


@pytest.fixture(scope="session")
def collapse(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """400 clients, the buffers of 28200 B and infinite, every controller, 20 replications."""
    return millpond.reproduce(
        "anrw18",
        clients=[400],
        buffers=[28200, 1410000],
        out=tmp_path_factory.mktemp("collapse") / "out",
        report=False,
    )


def figures(done: millpond.Reproduction, **wanted: object) -> list[Figure]:
    """The figures measured whose scenario, metric or statistic are as wanted."""
    found = []
    for figure in done.comparison.figures:
        told = {"metric": figure.metric, "statistic": figure.statistic, **figure.scenario}
        if figure.ours is not None and all(told.get(key) == value for key, value in wanted.items()):
            found.append(figure)
    return found


def verdict(done: millpond.Reproduction, name: str) -> Verdict:
    return next(claim for claim in done.comparison.claims if claim.id == f"anrw18-{name}")


# ----------------------------------------------------------------------------------------------- exact rows


def test_one_client_takes_fifty_round_trips(exact: millpond.Reproduction) -> None:
    found = figures(exact, clients=1, metric="fct", statistic="min")
    assert [figure.scenario["algorithm"] for figure in found] == ["default", "cocoa"]
    for figure in found:
        assert figure.ours == pytest.approx(33.007, abs=0.005)


@pytest.mark.parametrize(("buffer_bytes", "tolerance"), [(14100, 0.001), (2500, 0.005)])
def test_fifty_clients_every_printed_percentile(
    exact: millpond.Reproduction, buffer_bytes: int, tolerance: float
) -> None:
    found = [f for f in figures(exact, clients=50, buffer_bytes=buffer_bytes, metric="fct") if f.statistic in EXACT]
    assert len(found) == 2 * len(EXACT)
    for figure in found:
        assert figure.ours == pytest.approx(figure.published, rel=tolerance), figure


@pytest.mark.parametrize("name", ["c02", "c05", "c06"])
def test_claims_about_few_clients_hold(exact: millpond.Reproduction, name: str) -> None:
    if name == "c02":
        # the other buffers and 10 clients were not run here, so it must not be called held
        assert verdict(exact, name).verdict == "unjudged"
    else:
        assert verdict(exact, name).verdict == "holds"


# ----------------------------------------------------------------------------------------------- collapse


def test_default_collapses(collapse: millpond.Reproduction) -> None:
    (median,) = figures(collapse, metric="fct", statistic="median", workload="random", algorithm="default")
    assert median.ours == pytest.approx(2425, rel=0.005)
    here = Population.of("default", clients=400, buffer_bytes=1410000, workload="continuous", path="fixed")
    assert collapse.measures.sample("fct", here).take("median") == pytest.approx(2425, rel=0.005)


# Both sides are one draw of 20 runs. By runs with other seeds, one standard error of ours is 2.6 % and 3.7 % in CoCoA's
# bins 3 and 4, and the mean of 200 runs lies 2.1 % and 2.8 % above the published counts; other seeds may miss the 3 %.
@pytest.mark.parametrize(
    ("algorithm", "workload", "bins"),
    [("default", "continuous", 5), ("default", "random", 5), ("cocoa", "continuous", 5)],
)
def test_histogram_bins_above_1000_within_3_percent(
    collapse: millpond.Reproduction, algorithm: str, workload: str, bins: int
) -> None:
    found = figures(collapse, metric="exchanges_by_retransmissions", algorithm=algorithm, workload=workload)
    full = [figure for figure in found if figure.published > 1000]
    assert len(full) == bins
    for figure in full:
        assert figure.ours == pytest.approx(figure.published, rel=0.03), figure
    for figure in found:
        if figure.published == 0:
            assert figure.ours == 0, figure


def test_cocoa_collapses_with_random_clients(collapse: millpond.Reproduction) -> None:
    (median,) = figures(collapse, metric="fct", statistic="median", workload="random", algorithm="cocoa")
    assert median.ours == pytest.approx(2898, rel=0.01)
    # almost all exchanges take 5 or 6 retransmissions: about 245000 and 97000 of 400000
    counts = collapse.measures.histogram(
        Population.of("cocoa", clients=400, buffer_bytes=1410000, workload="random", path="fixed")
    )
    assert sum(counts.values()) == 400_000
    assert counts[5] == pytest.approx(244_000, rel=0.05)
    assert counts[6] == pytest.approx(98_000, rel=0.05)
    assert max(counts) == 6


def test_full_backoff_is_the_remedy(collapse: millpond.Reproduction) -> None:
    found = [f for f in figures(collapse, metric="unnecessary_retx_per_client") if f.unit == "percent"]
    assert [figure.published for figure in found] == [68, 47]
    for figure in found:
        assert figure.ours == pytest.approx(figure.published, abs=5), figure


@pytest.mark.parametrize("name", ["c22", "c25", "c26", "c27", "c28", "c30", "c41"])
def test_claims_about_the_collapse_hold(collapse: millpond.Reproduction, name: str) -> None:
    found = verdict(collapse, name)
    assert found.verdict == "holds", found


def test_nothing_is_lost_from_the_count(collapse: millpond.Reproduction) -> None:
    flows = collapse.table("flows")
    assert flows.num_rows == collapse.results.manifest["runs"] * 400
    assert set(flows.column("completed").to_pylist()) == {50}
    assert collapse.results.manifest["unfinished_flows"] == 0


def test_the_trace_shows_the_queue_of_the_collapse(collapse: millpond.Reproduction) -> None:
    trace = collapse.table("queue_trace").to_pandas()
    default = trace[(trace.algorithm == "default") & (trace.workload == "continuous") & (trace.link == "downlink")]
    assert default.bytes.max() > 100_000
    shares = collapse.table("share_trace").to_pandas()
    late = shares[(shares.algorithm == "default") & (shares.link == "downlink") & (shares.t_us > 600_000_000)]
    late = late[late.carried_bytes > 0]
    assert late.useful_bytes.sum() / late.carried_bytes.sum() < 0.25


# ----------------------------------------------------------------------------------------------- the same again


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    for jobs in (1, 2):
        millpond.reproduce(
            "anrw18",
            controllers=["default", "cocoa"],
            clients=[10, 100],
            buffers=[2500],
            replications=3,
            jobs=jobs,
            out=tmp_path / str(jobs),
            report=False,
        )
    names = sorted(file.name for file in (tmp_path / "1").glob("*.parquet"))
    assert {"runs.parquet", "flows.parquet", "histogram.parquet", "links.parquet"} <= set(names)
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_a_traced_run_is_the_same_run(tmp_path: Path) -> None:
    """Replication 0 of the largest cell is traced; alone it is as among others."""
    options = {"controllers": ["cocoa"], "buffers": [14100], "report": False}
    small = millpond.reproduce("anrw18", clients=[50], replications=1, out=tmp_path / "a", **options)  # type: ignore[arg-type]
    large = millpond.reproduce("anrw18", clients=[50, 100], replications=2, out=tmp_path / "b", **options)  # type: ignore[arg-type]
    here = Population.of("cocoa", clients=50, buffer_bytes=14100, workload="random", path="fixed")
    traced = small.measures.flow_column(here, "fct_us")
    untraced = large.measures.flow_column(here, "fct_us")[:50]
    assert small.results.has("queue_trace")
    assert np.array_equal(traced, untraced)


# ----------------------------------------------------------------------------------------------- from a notebook


def test_results_as_data_frames(exact: millpond.Reproduction) -> None:
    flows = exact.to_pandas("flows")
    here = flows[(flows.clients == 50) & (flows.buffer_bytes == 14100) & (flows.algorithm == "cocoa")]
    assert len(here) == 2 * 20 * 50
    assert here.fct_us.median() == pytest.approx(62.69e6, rel=0.001)
    assert {"min", "median"} <= {name.split("_")[1] for name in exact.summary.column_names if name.startswith("fct_")}
    assert len(exact.tables) > 3


def test_a_mix_names_the_algorithm_of_each_client(collapse: millpond.Reproduction) -> None:
    flows = collapse.to_pandas("flows")
    cells = [cell for cell in collapse.results.cells if cell.mixed]
    assert len(cells) == 4 * 2 * 2
    runs = collapse.to_pandas("runs")
    mine = runs[runs.cell == cells[0].number].run
    assert set(flows[flows.run.isin(mine)].algorithm) == {"default", "default_fb1"}


def test_run_gives_a_summary(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    link = 'rate = "30 kbit/s"\ndelay = "100 ms"\nqueue = "2500 B"\n'
    file.write_text(
        f'[path.uplink]\n{link}[path.downlink]\n{link}[[clients]]\ncount = 3\ncontroller = "rfc7252"\nexchanges = 10\n'
    )
    done = millpond.run(file, replications=2, out=tmp_path / "out", report=False)
    (row,) = done.summary.to_pylist()
    assert (row["n"], row["unfinished"], row["algorithm"]) == (6, 0, "rfc7252")
    assert 2 < row["fct_median_s"] < 4
