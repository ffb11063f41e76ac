"""Captures: Wireshark reads them, their clock is the run's, and every loss says why."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from millpond import api, cli
from millpond.errors import MillpondError, UsageError
from millpond.results.directory import Results
from millpond.run import capture

FIRMWARE = Path(__file__).parents[1] / "millpond" / "scenarios" / "firmware.toml"
TSHARK = shutil.which("tshark")
FIELDS = ("frame.time_epoch", "frame.interface_name", "frame.comment", "_ws.col.Protocol", "_ws.col.Info", "frame.len")

needs_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


@dataclass(frozen=True)
class Seen:
    """One packet as tshark tells it."""

    at: float
    place: str
    comment: str
    protocol: str
    told: str
    length: int


def dissected(file: Path) -> list[Seen]:
    assert TSHARK is not None
    wanted = [word for field in FIELDS for word in ("-e", field)]
    command = [TSHARK, "-r", str(file), "-T", "fields", "-E", "separator=/t", *wanted]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for line in lines:
        at, place, comment, protocol, told, length = line.split("\t")
        found.append(Seen(float(at), place, comment, protocol, told, int(length)))
    return found


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    """The scenario of the manual, with some losses and a smaller image."""
    folder = tmp_path_factory.mktemp("captured")
    lossy = 'delay = "415 ms"\nloss = { kind = "bernoulli", rate = 0.03 }'
    text = FIRMWARE.read_text(encoding="utf-8").replace('delay = "415 ms"', lossy)
    (folder / "small.toml").write_text(text.replace("102400 B", "30000 B").replace("14100 B", "4000 B"))
    file = folder / "small.pcapng"
    done = api.run(folder / "small.toml", out=folder / "out", capture=file, report=False)
    return done.results, file


@needs_tshark
def test_wireshark_dissects_coap_over_both_transports(captured: tuple[Results, Path]) -> None:
    found = dissected(captured[1])
    coap = [packet for packet in found if packet.protocol.startswith("CoAP")]
    assert {"CON", "ACK"} <= {packet.told.split(",")[0].strip() for packet in coap if "MID" in packet.told}
    assert any("MID" not in packet.told and "GET" in packet.told for packet in coap)
    assert any("CSM" in packet.told for packet in found)
    assert not [packet for packet in found if "alformed" in packet.told]
    blocks = [packet for packet in coap if "Block #" in packet.told]
    assert len(blocks) >= 2 * 118  # 30,000 B in blocks of 256 B: each request, and each answer


@needs_tshark
def test_the_clock_is_that_of_the_run(captured: tuple[Results, Path]) -> None:
    results, file = captured
    found = dissected(file)
    times = [packet.at for packet in found]
    assert times == sorted(times)
    assert times[0] == 0.0
    row = results.table("runs").to_pylist()[0]
    assert times[-1] <= row["simulated_us"] / 1e6 + 1e-9


@needs_tshark
def test_every_packet_of_the_trace_is_in_the_capture(captured: tuple[Results, Path]) -> None:
    results, file = captured
    found = dissected(file)
    rows = results.table("packets").to_pylist()
    arrived = [row for row in rows if row["event"] == "recv"]
    lost = [row for row in rows if row["event"].startswith("drop")]
    assert arrived
    assert lost
    # at the end that sends it, and again where it arrives
    assert len(found) == 2 * len(arrived) + len(lost)
    # segments that open a connection carry options that say nothing here
    lengths = sorted(packet.length for packet in found if "[SYN" not in packet.told)
    opening = [row for row in arrived if row["offset"] is None and row["length"] == 0 and row["ack"] is None]
    carried = [row["bytes"] for row in (*arrived, *arrived, *lost) if row not in opening or row["flow"] == 1]
    assert lengths == sorted(carried)
    assert {packet.place for packet in found} == {"clients", "server"}


@needs_tshark
def test_every_loss_says_why(captured: tuple[Results, Path]) -> None:
    results, file = captured
    comments = [packet.comment for packet in dissected(file) if packet.comment]
    events = [row["event"] for row in results.table("packets").to_pylist()]
    assert len(comments) == events.count("drop_queue") + events.count("drop_radio")
    assert sum("queue" in comment for comment in comments) == events.count("drop_queue") > 0
    assert sum("radio" in comment for comment in comments) == events.count("drop_radio") > 0


def test_a_run_of_earlier_results_gives_the_same_bytes_again(captured: tuple[Results, Path]) -> None:
    results, file = captured
    cell, seed, content = capture.of_results(results, None, 0)
    assert (cell.id, seed) == ("small", 1)
    assert content == file.read_bytes()


def test_one_point_of_a_study_can_be_captured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = api.reproduce(
        "anrw18",
        controllers=["default"],
        clients=[50],
        buffers=[2500, 14100],
        replications=2,
        out=tmp_path / "out",
        report=False,
    )
    names = [cell.id for cell in done.results.cells]
    name = next(name for name in names if "random" in name and "2500" in name)
    called = ["capture", str(done.directory), str(tmp_path / "one.pcapng"), "--cell", name, "--replication", "1"]
    with pytest.raises(SystemExit) as ended:
        cli.main(called)
    assert ended.value.code == 0
    assert f"cell: {name}   seed: {done.results.manifest['seeds'][1]}" in capfd.readouterr().out
    first = capture.of_results(done.results, name, 0)[2]
    assert (tmp_path / "one.pcapng").read_bytes() != first


# ----------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("run.pcap", r"the name must end in \.pcapng"),
        ("nowhere/run.pcapng", "there is no folder nowhere"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told):
        api.run(FIRMWARE, out="out", capture=name)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("cell", "replication", "told"),
    [
        ("smal1", 0, "no cell 'smal1': did you mean 'small'"),
        (None, 1, "--replication: 1 was not run: 0 to 0"),
        (None, -1, "--replication: -1 was not run"),
    ],
)
def test_a_run_that_was_not_run_is_refused(
    captured: tuple[Results, Path], cell: str | None, replication: int, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        capture.of_results(captured[0], cell, replication)


def test_results_of_another_version_may_be_another_run(captured: tuple[Results, Path]) -> None:
    results = Results(captured[0].directory, {**captured[0].manifest, "version": "0.0.1"})
    with pytest.raises(MillpondError, match=r"results of version 0\.0\.1"):
        capture.of_results(results, None, 0)
