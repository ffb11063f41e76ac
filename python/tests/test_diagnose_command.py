"""`millpond diagnose`: the engine's where it is asked for no more; the laboratory's files, page and score on top."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import millpond
from manual import drawn
from millpond import MillpondError, UsageError, _engine, cli
from millpond.cli import diagnose as verb
from millpond.plan import scenario as scenarios
from millpond.run import capture


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of a drawn scenario at both ends."""
    found = tmp_path_factory.mktemp("captured") / "drawn.pcapng"
    capture.write(found, scenarios.build(drawn.scenario("development", 0), "drawn"), 1)
    return found


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "millpond", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def said(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(list(map(str, arguments)))
    out, err = capfd.readouterr()
    return end.value.code, out, err


def test_help_has_every_flag_of_the_engine(capfd: pytest.CaptureFixture[str]) -> None:
    assert _engine.live(["millpond", "diagnose", "--help"]) == 0
    engine = set(re.findall(r"--[a-z-]+", capfd.readouterr().out))
    code, ours, _ = said(capfd, "diagnose", "--help")
    assert code == 0
    flags = set(re.findall(r"--[a-z-]+", ours))
    assert engine <= flags
    assert {f"--{name}" for name in verb.OWN} <= flags


def test_without_more_it_is_the_engines_own(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for flags in ([], ["--json"], ["--times", "--devices"]):
        assert _engine.live(["millpond", "diagnose", "--side", "server", *flags, str(file)]) == 0
        engine = capfd.readouterr().out
        assert said(capfd, "diagnose", "--side", "server", *flags, file) == (0, engine, "")


def test_a_pipe_is_read_as_tcpdump_writes_it(file: Path) -> None:
    arguments = [sys.executable, "-m", "millpond", "diagnose", "--side", "server"]
    # in parts of any size
    with subprocess.Popen([*arguments, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as piped:
        assert piped.stdin is not None
        content = file.read_bytes()
        for at in range(0, len(content), 99_991):
            piped.stdin.write(content[at : at + 99_991])
            piped.stdin.flush()
        out, _ = piped.communicate()
    assert piped.returncode == 0
    assert out == subprocess.run([*arguments, file], capture_output=True, check=True).stdout


def test_the_call_finds_what_the_program_prints(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = millpond.diagnose(file, side="server")
    assert json.loads(said(capfd, "diagnose", "--side", "server", "--json", file)[1]) == found.figures
    assert said(capfd, "diagnose", "--side", "server", file)[1] == found.text
    assert found.exchanges.num_rows == found.figures["transmissions"]
    assert found.devices.num_rows == found.figures["devices"]
    again = found.column("verdict").tolist()
    assert {word: again.count(word) for word in found.figures["retransmissions"]} == found.figures["retransmissions"]


def test_a_capture_is_written_repeated_drawn_and_asked_about(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cell, page, rows = tmp_path / "cell", tmp_path / "cell.html", tmp_path / "rows.parquet"
    code, out, err = said(
        capfd,
        "diagnose",
        file,
        "--side",
        "server",
        "--write",
        cell,
        "--seeds",
        2,
        "--report",
        page,
        "--exchanges",
        rows,
    )
    assert (code, err) == (0, "")
    assert out.startswith(millpond.diagnose(file, side="server").text)
    assert "median of 2" in out
    assert "Runs of the written scenario with different seeds" in out
    assert f"report: {page}" in out
    assert {found.name for found in cell.iterdir()} == {"path.toml", "scenario.toml", "fleet.toml"}
    assert "What was written, run again" in page.read_text(encoding="utf-8")
    assert parquet.read_table(rows).column_names[:3] == ["peer", "server", "message_id"]
    told = json.loads(said(capfd, "fleet", "--from", cell, "--seeds", 2, "--no-report", "--json")[1])
    assert told["devices"] == 102
    assert said(capfd, "paths", cell / "path.toml")[0] == 0


def test_results_score_their_own_diagnosis(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = millpond.run(drawn.scenario("development", 0), out=tmp_path / "out", report=False)
    code, out, _ = said(capfd, "diagnose", "--truth", done.directory, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["true_devices"] == told["devices"] == 102
    assert sum(told["labels"]["true"].values()) == told["labels"]["seen"]
    code, out, _ = said(capfd, "diagnose", "--truth", done.directory, "--side", "devices")
    assert code == 0
    assert "captured at the devices" in out


def test_one_of_a_kind_is_written_as_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def sent(at_us: int, up: bool, message: bytes) -> bytes:
        ends = [bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])][:: 1 if up else -1]
        ports = [40_000, 5683][:: 1 if up else -1]
        udp = struct.pack(">HHHH", *ports, 8 + len(message), 0) + message
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + b"".join(ends) + udp
        return struct.pack("<IIII", at_us // 10**6, at_us % 10**6, len(packet), len(packet)) + packet

    asked, answered = bytes([0x41, 1, 0x12, 0x34, 7]), bytes([0x61, 0x45, 0x12, 0x34, 7, 0xFF, 1])
    once = [sent(0, True, asked), sent(100, False, answered)]
    twice = [sent(0, True, asked), sent(2_500_000, True, asked), sent(2_500_100, False, answered)]
    for number, packets in enumerate((once, twice)):
        file = tmp_path / f"{number}.pcap"
        file.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101) + b"".join(packets))
        code, out, _ = said(capfd, "diagnose", "--times", "--devices", file)
        assert (code, f"{number} retransmission" in out) == (0, True)
        assert "1 request of 1 device" in out
        assert not re.findall(r"(?<![\d.,])1 [a-z-]{2,}s\b", out), out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--report", "page.html"], "FILE is missing"),
        (["-", "--report", "page.html"], "a pipe is read once"),
        (["no.pcap", "--report", "page.html"], "no.pcap: No such file"),
        (["no.pcap", "--report", "page.txt"], "--report: page.txt: the name must end in .html"),
        (["no.pcap", "--exchange", "10.0.0.1:1/2"], "--exchange: goes with --report alone"),
        (["no.pcap", "--write", "out", "--anonymise", "a.pcap"], "--anonymise: goes alone"),
        (["no.pcap", "--write", "out", "--seeds", "0"], "--seeds: 0 makes no sense here"),
        (["no.pcap", "--write", "out", "--side", "sever"], "--side: unknown side 'sever': did you mean 'server'?"),
        (["no.pcap", "--truth", "results"], "--truth: results is captured anew: leave no.pcap out"),
        (["--truth", "results", "--write", "out"], "--truth: scores alone"),
        (["--truth", "nowhere"], "nowhere"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = said(capfd, "diagnose", *arguments)
    assert code in (1, 2)
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_capture_is_not_replaced_by_what_can_be_given_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "server.pcap"
    kept.write_bytes(b"a day's work")
    code, _, err = said(capfd, "diagnose", "--anonymise", tmp_path / "." / "server.pcap", kept)
    assert (code, "is what is read: name another file" in err) == (2, True)
    assert kept.read_bytes() == b"a day's work"


def test_what_is_no_capture_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture", encoding="utf-8")
    with pytest.raises(MillpondError, match=r"notes\.txt: neither pcap nor pcapng"):
        millpond.diagnose(text)
    with pytest.raises(UsageError, match="port: 70000 is no port"):
        millpond.diagnose(text, ports=[70000])


def test_a_fleet_is_not_found_where_none_was_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capfd, "fleet", "--from", tmp_path)
    assert (code, err) == (
        2,
        f"millpond: --from: {tmp_path} holds no fleet.toml: `millpond diagnose FILE --write {tmp_path}` writes one\n",
    )
