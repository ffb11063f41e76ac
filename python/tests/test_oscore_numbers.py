"""The figures of `docs/appendix/oscore-congestion.md`."""

from __future__ import annotations

from pathlib import Path

import pytest

import millpond
from millpond.measure.population import Population

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


def test_with_400_devices_all_takes_as_long_as_the_page_says(tmp_path: Path) -> None:
    found = millpond.sweep(PLAN, factors={"devices": 400}, out=tmp_path / "out", report=False)

    def value(metric: str, algorithm: str, server: str, protection: str) -> float:
        who = Population.of(algorithm, devices=400, server=server, protection=protection, path="fixed")
        return found.measures.usual(metric, who)

    def done(algorithm: str, server: str) -> str:
        clear, protected = (round(value("makespan", algorithm, server, how)) for how in ("none", "oscore"))
        return f"{clear:,} and {protected:,} s"

    assert f"{done('rfc7252', 'stored')} with the standard timer, {done('calm', 'stored')} with `calm`" in WORDS
    assert f"{done('fasor', 'stored')} with FASOR" in WORDS
    assert f"the last device is done after {done('rfc7252', 'calm')}" in WORDS
    shares = [100 * value("useful_share", "rfc7252", "stored", how) for how in ("none", "oscore")]
    assert f"{shares[0]:.1f} % in the clear and {shares[1]:.1f} % under OSCORE" in WORDS
    for how in ("none", "oscore"):
        assert value("useful_share", "calm", "stored", how) > 0.93
        assert value("useful_share", "rfc7252", "calm", how) > 0.93


def test_one_queue_is_full_at_both_beginnings() -> None:
    clear, protected = 79 * 96, 71 * 107
    assert "79 responses of 96 bytes of IP, or 71 of 107" in WORDS
    assert round(clear, -2) == round(protected, -2) == 7600
    assert round(7600 * 8 / 30_000 + 0.215 + 0.415, 1) == pytest.approx(2.7)
