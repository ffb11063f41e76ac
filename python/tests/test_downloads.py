"""What the terminal shows of downloads, drawn from invented results."""

from __future__ import annotations

import io
import re

import pytest
from invented import Invented

import millpond
from millpond.measure.statistics import PERCENTILES
from millpond.show import terminal as tables
from millpond.studies.tcp20 import listings as downloads


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    out = tmp_path_factory.mktemp("downloads") / "out"
    return millpond.reproduce("tcp20", replications=2, out=out, report=False, on=Invented())


def printed(done: millpond.Reproduction) -> str:
    out = io.StringIO()
    tables.show(done.tables, out)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_downloads_fit_the_terminal(
    done: millpond.Reproduction, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = printed(done)
    assert max(map(len, text.splitlines())) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text, "a cell was cut off"


def test_every_published_percentile_stands_beside_ours_once(done: millpond.Reproduction) -> None:
    found = downloads.tabled(done.comparison)
    # Tables 6 to 9: five lines a buffer with one client, four with the others; BBR is not in Table 7
    lines = 3 * (2 + 2 * 4) + (2 + 4)
    # over TCP on both readings of the acknowledgements, over UDP once; with medium loss on both readings of its states
    assert len(found) == (lines + (3 * 2 * 4 + 4) + (2 + 2 * 4)) * len(PERCENTILES)
    assert len({(figure.id, figure.scenario.get("path")) for figure in found}) == len(found)
    text = printed(done)
    assert len(re.findall(r"published {2,}\d", text)) == lines
    assert len(re.findall(r"95th percentile +\d", text)) == 0, "a percentile is shown a second time"


def test_every_algorithm_has_a_median_and_the_dwell_a_table(done: millpond.Reproduction) -> None:
    text = printed(done)
    for name in ("Default CoAP", "CoCoA", "TCP New Reno", "TCP BBR", "Q-Block2", "FASOR + token", "Basic RTO"):
        assert re.search(rf"\n{re.escape(name.split()[0])}\b", text)
    heads = text.partition("mean stay in a bad state")[2].splitlines()
    assert re.search(r"memoryless +20 ms +100 ms +500 ms +2 s", " ".join(" ".join(heads[:4]).split()))


def test_short_exchanges_have_the_tables_of_other_studies(done: millpond.Reproduction) -> None:
    text = re.sub(r"\s+", " ", printed(done))
    short = text.partition("Flow completion time in s / unnecessary retransmissions, by place")[2]
    places = short.partition("The median client's time")[0]
    assert all(f" {workload} " in places for workload in ("continuous", "random"))
    assert "bulk" not in places
