"""The figures of `docs/appendix/oscore-congestion.md`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import millpond
from millpond.measure.population import Population
from millpond.plan.toml_file import parse

ROOT = Path(__file__).parents[2]
WORDS = " ".join((ROOT / "docs/appendix/oscore-congestion.md").read_text(encoding="utf-8").split())
PLAN = ROOT / "scenarios/sweeps/oscore.toml"


def test_the_collapse_begins_where_the_page_says(tmp_path: Path) -> None:
    told = {"none": 79, "oscore": 71}
    assert f"with {told['none']} devices in the clear and with {told['oscore']} under OSCORE" in WORDS
    found = millpond.sweep(
        PLAN,
        factors={"devices": [70, 71, 78, 79], "server": "stored"},
        controllers="rfc7252",
        replications=1,
        out=tmp_path / "out",
        report=False,
    )
    for protection, first in told.items():
        useful = {
            devices: found.measures.usual(
                "useful_share",
                Population.of("rfc7252", devices=devices, server="stored", protection=protection, path="fixed"),
            )
            for devices in (first - 1, first)
        }
        assert useful[first - 1] > 0.99, (protection, useful)
        assert useful[first] < 0.6, (protection, useful)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, millpond.Run]:
    out = tmp_path_factory.mktemp("oscore") / "out"
    return out, millpond.sweep(PLAN, out=out, report=False)


def who(algorithm: str, devices: int, server: str, protection: str) -> Population:
    return Population.of(algorithm, devices=devices, server=server, protection=protection, path="fixed")


def test_with_400_devices_all_takes_as_long_as_the_page_says(swept: tuple[Path, millpond.Run]) -> None:
    measures = swept[1].measures

    def value(metric: str, algorithm: str, server: str, protection: str) -> float:
        return measures.usual(metric, who(algorithm, 400, server, protection))

    def done(algorithm: str, server: str) -> str:
        clear, protected = (round(value("makespan", algorithm, server, how)) for how in ("none", "oscore"))
        return f"{clear:,} and {protected:,} s"

    assert f"{done('rfc7252', 'stored')} with the standard timer, {done('calm', 'stored')} with `calm`" in WORDS
    assert f"{done('fasor', 'stored')} with FASOR" in WORDS
    assert f"the last device is done after {done('rfc7252', 'calm')}" in WORDS
    shares = [100 * value("useful_share", "rfc7252", "stored", how) for how in ("none", "oscore")]
    assert f"{shares[0]:.1f} % in the clear and {shares[1]:.1f} % under OSCORE" in WORDS
    queues = {how: value("queue", "rfc7252", "stored", how) / 1000 for how in ("none", "oscore")}
    assert "the queue stays at 190 kB in the clear and 215 kB under OSCORE" in WORDS
    assert queues == {"none": pytest.approx(190, rel=0.06), "oscore": pytest.approx(215, rel=0.06)}
    calm = [value("queue", "rfc7252", "calm", how) / 1000 for how in ("none", "oscore")]
    assert calm == pytest.approx([40, 40], rel=0.12)


def test_where_nothing_collapses_nearly_all_is_useful(swept: tuple[Path, millpond.Run]) -> None:
    devices = parse(PLAN.read_text(encoding="utf-8"), "oscore")["matrix"]["devices"]
    assert "with calm, or a calm server, at least 93 % is useful everywhere" in WORDS
    for algorithm, server in (("calm", "stored"), ("calm", "calm"), ("rfc7252", "calm")):
        for count, how in itertools.product(devices, ("none", "oscore")):
            useful = swept[1].measures.usual("useful_share", who(algorithm, count, server, how))
            assert useful >= 0.93, (algorithm, server, count, how)
    at_75 = [swept[1].measures.usual("useful_share", who("rfc7252", 75, "stored", how)) for how in ("none", "oscore")]
    assert at_75 == [pytest.approx(1, abs=0.01), pytest.approx(0.54, abs=0.02)]


def test_one_queue_is_full_at_both_beginnings(swept: tuple[Path, millpond.Run]) -> None:
    out = swept[0]
    cells = parquet.read_table(out / "cells.parquet").to_pylist()
    links = parquet.read_table(out / "links.parquet").to_pylist()
    lengths = {}
    for how in ("none", "oscore"):
        told = {"devices": 50, "server": "stored", "protection": how, "algorithm": "rfc7252"}
        run = next(cell["first_run"] for cell in cells if told.items() <= cell.items())
        down = next(row for row in links if row["run"] == run and row["link"] == "downlink")
        lengths[how] = down["offered_bytes"] / down["offered_packets"]
    assert lengths == {"none": 96, "oscore": 107}
    assert "79 responses of 96 bytes of IP, or 71 of 107" in WORDS
    assert [round(79 * lengths["none"], -2), round(71 * lengths["oscore"], -2)] == [7600, 7600]
    path = parse(PLAN.read_text(encoding="utf-8"), "oscore")["scenario"]["path"]
    assert (path["uplink"]["delay"], path["downlink"]["delay"], path["downlink"]["rate"]) == (
        "215 ms", "415 ms", "30 kbit/s",
    )  # fmt: skip
    assert round(7600 * 8 / 30_000 + 0.215 + 0.415, 1) == pytest.approx(2.7)
