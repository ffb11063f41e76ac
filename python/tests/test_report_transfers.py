"""Time-sequence graphs, windows and boxes of downloads: what stands in them is what the tables say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing
from picture_checks import check_texts, laid_out, panels

import millpond
from manual import pictures
from millpond.judge.compare import Comparison, Figure
from millpond.results.directory import MANIFEST, Results
from millpond.results.factor import Value
from millpond.show.document import Missing
from millpond.show.report import style, transfers
from millpond.show.report.figures import sequence, windows
from millpond.show.report.grid import Grid
from millpond.show.report.transfers import Transfer
from millpond.studies.pages import write_report
from millpond.studies.tcp20 import errors, nearness

SCENARIOS = Path(__file__).parents[2] / "scenarios"
PUBLISHED = {"min": 30.0, "p10": 32.0, "p25": 36.0, "median": 44.0, "p75": 52.0, "p90": 60.0, "max": 88.0}


def firmware(out: Path, payload: str = "102400 B") -> Results:
    """Two devices that fetch an image over a lossy path, one over TCP and one in blocks, every packet traced."""
    loss = {"kind": "bernoulli", "rate": 0.02}
    changes = {"path.uplink.loss": loss, "path.downlink.loss": loss, "path.downlink.queue": "2500 B"}
    traced = ("packets", "tcp", "rto", "queue")
    return millpond.run(
        SCENARIOS / "firmware.toml", changes={**changes, "server.payload": payload}, trace=traced, out=out, report=False
    ).results


def downloads(out: Path, *, errors: Sequence[str], clients: Sequence[int] = (1,), replications: int = 1) -> Results:
    """A part of the study."""
    factors = {"workload": "bulk", "error_profile": errors}
    return millpond.reproduce(
        "tcp20", clients=clients, buffers=(14100, 28200), factors=factors, out=out, report=False,
        controllers=("default", "tcp_newreno", "tcp_bbr"), replications=replications,
    ).results  # fmt: skip


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return firmware(tmp_path_factory.mktemp("single") / "out")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return downloads(tmp_path_factory.mktemp("study") / "out", errors=("none", "low"), clients=(1, 4), replications=2)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    where: dict[str, Value] = {"clients": 1, "buffer_bytes": 14100, "workload": "bulk", "algorithm": "tcp_newreno"}
    return Comparison(
        "tcp20",
        "0.1.0",
        [
            Figure(f"r{k}", {**where, "error_profile": "low"}, "fct", name, "", "", "s", value, value)
            for k, (name, value) in enumerate(PUBLISHED.items())
        ],
    )


def flows(results: Results) -> list[Transfer]:
    grid = Grid(results)
    return transfers.of_run(grid, grid.cells[0], 0)


def graphs(results: Results) -> list[Transfer]:
    grid = Grid(results)
    traced = transfers.traced(grid, grid.cells)
    return [transfers.of_run(grid, cell, run, 1)[0] for cell, run in traced]


# ----------------------------------------------------------------------------------------------- what is read


def test_every_data_packet_is_sent_first_or_again_and_every_loss_is_one_of_them(single: Results) -> None:
    for transfer in flows(single):
        told = [
            row
            for row in single.table("packets").to_pylist()
            if row["flow"] == transfer.flow and row["link"] == "downlink" and row["length"]
        ]
        left = [row for row in told if row["event"] in ("enq", "drop_queue")]
        assert transfer.packets == len(left)
        assert transfer.again[0].size == sum(row["again"] for row in left)
        for points, event in ((transfer.dropped_queue, "drop_queue"), (transfer.dropped_radio, "drop_radio")):
            lost = sorted((row["t_us"] / 1e6, row["offset"]) for row in told if row["event"] == event)
            assert sorted(zip(*(values.tolist() for values in points), strict=True)) == lost


def test_what_is_acknowledged_only_rises_and_ends_with_the_body(single: Results) -> None:
    for transfer in flows(single):
        assert np.all(np.diff(transfer.reached[1]) > 0)
        assert transfer.reached[1][-1] == transfer.size >= 400 * 256


def test_a_client_over_udp_has_nothing_behind_a_gap(single: Results) -> None:
    udp = next(transfer for transfer in flows(single) if transfer.transport == "udp")
    arrived = {
        row["offset"]: row["t_us"] / 1e6
        for row in reversed(single.table("packets").to_pylist())
        if row["flow"] == udp.flow and row["link"] == "downlink" and row["event"] == "recv"
    }
    for time, reached in zip(*udp.reached, strict=True):
        assert all(arrived[offset] <= time for offset in range(0, int(reached), 256))


def test_packets_that_never_came_to_the_queue_count_as_sent(tmp_path: Path) -> None:
    results = firmware(tmp_path / "out")
    before = [transfer.packets for transfer in flows(results)]
    file = tmp_path / "out" / MANIFEST
    manifest = json.loads(file.read_text())
    manifest["cells"][0]["scenario"]["path"]["downlink"]["loss_at"] = "before-rate"
    file.write_text(json.dumps(manifest))
    after = flows(Results.open(file.parent))
    lost = [transfer.dropped_radio[0].size for transfer in after]
    assert [transfer.packets for transfer in after] == [n + k for n, k in zip(before, lost, strict=True)]


def test_bands_cover_just_the_time_in_their_state(single: Results) -> None:
    grid = Grid(single)
    tcp = next(transfer for transfer in flows(single) if transfer.transport == "tcp")
    sender = windows.Sender.of(grid, tcp)
    assert sender is not None
    spans = sender.spans("recovery", tcp.end)
    assert spans
    for at, state in zip(sender.times, sender.states, strict=True):
        inside = any(begin <= at < until for begin, until in spans)
        assert inside or state != "recovery"


# ----------------------------------------------------------------------------------------------- what is drawn


DRAWN: dict[str, Callable[[Results, Results], Drawing]] = {
    "side by side": lambda single, _: sequence.flows_side_by_side(flows(single)).draw(),
    "one flow": lambda single, _: sequence.flows_side_by_side(flows(single)[:1]).draw(),
    "over tcp": lambda single, _: windows.flow_over_time(Grid(single), flows(single)[0]).draw(),
    "over udp": lambda single, _: windows.flow_over_time(Grid(single), flows(single)[1]).draw(),
    "grid": lambda _, study: sequence.grid(graphs(study)).draw(),
    "everyone": lambda _, study: errors.everyone_by_error(Grid(study), errors.Scene("bulk", 1, "as-printed")).draw(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_lies_on_another_or_outside(name: str, single: Results, study: Results) -> None:
    check_texts(DRAWN[name](single, study))


def test_boxes_beside_the_published_ones_are_legible(study: Results, comparison: Comparison) -> None:
    check_texts(errors.completion_by_error(Grid(study), errors.Scene("bulk", 1, "as-printed"), comparison).draw())


def test_two_thousand_packets_stay_one_path_a_colour(tmp_path: Path) -> None:
    results = firmware(tmp_path / "out", "512000 B")
    found = flows(results)
    assert found[0].packets > 2000
    figure = sequence.flows_side_by_side(found).draw()
    laid_out(figure)
    assert all(len(panel.patches) <= 2 for panel in panels(figure))


def test_all_panels_of_a_flow_share_the_time(single: Results) -> None:
    figure = windows.flow_over_time(Grid(single), flows(single)[0]).draw()
    laid_out(figure)
    assert len(panels(figure)) == 4
    assert len({panel.get_xlim() for panel in panels(figure)}) == 1


def test_kinds_of_loss_differ_without_colour() -> None:
    assert len({how["marker"] for how in sequence._DROPS.values()}) == len(sequence._DROPS)
    assert len({hatch for _, _, hatch in windows.BANDS.values()}) == len(windows.BANDS)
    assert len({style.RECOVERY, style.LOSS, style.PROBE}) == 3


def test_published_boxes_stand_beside_ours(study: Results, comparison: Comparison) -> None:
    scene = errors.Scene("bulk", 1, "as-printed")
    rows = errors.completion_by_error(Grid(study), scene, comparison).rows
    row = next(
        dict(zip(rows.header, row, strict=True)) for row in rows.rows if row[1:4] == ("low", 14100, "tcp_newreno")
    )
    assert {name: row[f"published_{name}"] for name in PUBLISHED} == PUBLISHED
    assert row["n"] == 2
    figure = errors.completion_by_error(Grid(study), scene, comparison).draw()
    heights = [
        float(y)
        for panel in figure.axes
        for line in panel.lines
        if line.get_marker() == "d"
        for y in np.asarray(line.get_ydata())
    ]
    assert heights == [PUBLISHED["median"]]


def test_only_controllers_of_which_figures_were_published_have_boxes(study: Results, comparison: Comparison) -> None:
    figure = errors.completion_by_error(Grid(study), errors.Scene("bulk", 1, "as-printed"), comparison).draw()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["TCP New Reno", "published"]


def test_a_scene_that_was_not_run_is_missing(study: Results) -> None:
    with pytest.raises(Missing, match="no client finished with 7 clients"):
        errors.everyone_by_error(Grid(study), errors.Scene("bulk", 7, "as-printed")).draw()


def test_the_length_of_losses_is_drawn_where_it_was_varied(tmp_path: Path, comparison: Comparison) -> None:
    profiles = ("none", "medium", "medium-20ms", "medium-2s", "medium-500ms", "medium-memoryless", "medium-1.5packets")
    results = downloads(tmp_path / "out", errors=profiles)
    grid, scene = Grid(results), errors.Scene("bulk", 1, "as-printed")
    check_texts(errors.completion_by_dwell(grid, scene, comparison).draw())
    rows = errors.completion_by_dwell(grid, scene, comparison).rows.rows
    assert {row[1] for row in rows} == {"memoryless", "20 ms", "100 ms", "500 ms", "2 s", "1.5 packets"}
    assert {row[0] for row in rows} == {"medium"}


def test_the_length_of_losses_is_missing_where_it_was_not_varied(study: Results) -> None:
    with pytest.raises(Missing, match="was not varied"):
        errors.completion_by_dwell(Grid(study), errors.Scene("bulk", 1, "as-printed"), None).draw()


def test_nearness_is_told_by_the_typical_difference_and_exceptions_by_buffer(study: Results) -> None:
    where: dict[str, Value] = {"clients": 1, "workload": "bulk", "algorithm": "tcp_bbr", "error_profile": "none"}
    figures = [
        Figure(f"r{k}", {**where, "buffer_bytes": size}, "fct", "median", "", "", "s", 100.0, ours)
        for k, (size, ours) in enumerate({2500: 150.0, 14100: 101.0, 28200: 99.0, 1410000: 104.0}.items())
    ]
    grid = Grid(study)
    found = nearness.of(Comparison("tcp20", "0.1.0", figures), grid.paths[:1])
    assert [one.met for one in found] == [3]
    assert found[0].typical == pytest.approx(0.025)
    size = "2\N{NARROW NO-BREAK SPACE}500\N{NARROW NO-BREAK SPACE}B"
    told = f"TCP BBR (1 client, no errors, but not with a buffer of {size})"
    assert nearness.story(found, grid) == [f"Published completion times come out, typically within 5 %, for {told}."]
    rows = nearness.table(found, grid).rows
    assert rows[1][:3] == ("no errors", "TCP BBR", "3 of 4")


# ----------------------------------------------------------------------------------------------- the pages


def test_a_single_run_is_followed_packet_by_packet(single: Results) -> None:
    page = write_report(single.directory).read_text(encoding="utf-8")
    assert '<section id="packets">' in page
    for name in ("sequence", "flow-1", "flow-2"):
        assert f'<figure id="{name}">' in page
    transfer = flows(single)[0]
    assert f"{transfer.dropped_queue[0].size} found the queue full" in page


def test_the_picture_of_the_manual_is_small_and_always_the_same(single: Results, tmp_path: Path) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        assert pictures.main(["firmware", str(single.directory), str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size < 250_000
    assert pictures.main(["firmware"]) == 2


def test_the_study_tells_its_story_in_order(study: Results, comparison: Comparison) -> None:
    page = write_report(study.directory, comparison).read_text(encoding="utf-8")
    found = [part.split('"')[0] for part in page.split('<section id="')[1:]]
    assert found == [
        "summary", "reported", "completion", "sequence", "closely", "together", "everyone", "figures", "claims", "run",
    ]  # fmt: skip
    for name in ("fct-1-as-printed", "fct-4-as-printed", "sequence-none", "flow-tcp_newreno-28200-none", "everyone-1"):
        assert f'<figure id="{name}">' in page
    assert 'class="missing"' not in page


def test_without_traces_the_study_says_what_it_lacks(tmp_path: Path, comparison: Comparison) -> None:
    results = downloads(tmp_path / "out", errors=("medium",))
    page = write_report(results.directory, comparison).read_text(encoding="utf-8")
    assert "no packets were traced in these runs" in page
    assert "fct-1-as-printed" in page
