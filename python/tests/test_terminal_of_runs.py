"""What the terminal and `--json` say of runs whose clients have no completion time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import millpond
from millpond.api import redraw
from millpond.show import terminal

LINK = {"rate": "60 kbit/s", "delay": "100 ms", "queue": "20 kB"}
PATH = {"uplink": LINK, "downlink": LINK}


def shown(done: millpond.Run) -> str:
    told = io.StringIO()
    terminal.show(done.tables, told)
    return told.getvalue()


def run(folder: Path, **keys: Any) -> millpond.Run:
    return millpond.run({"path": PATH, **keys}, out=folder / "out", report=False)


def test_a_workload_without_end_leaves_nobody_unfinished_and_is_told_by_its_requests(tmp_path: Path) -> None:
    hourly = {"kind": "periodic", "period": "1 h"}
    done = run(tmp_path, clients=[{"count": 5, "controller": "rfc7252", "workload": hourly}], run={"for": "3 h"})
    (row,) = done.summary.to_pylist()
    assert (row["n"], row["unfinished"], row["unfinished_clients"]) == (0, 0, 0.0)
    assert "Birth of a request to its answer in s" in shown(done)
    assert "15/15" in shown(done)
    assert "Flow completion time" not in shown(done)
    redraw(done)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "no client has a completion time, because its work has no end" in page
    assert "no client finished" not in page


def test_who_lost_the_last_request_is_not_unfinished(tmp_path: Path) -> None:
    lossy = {**LINK, "loss": {"kind": "bernoulli", "rate": "60 %"}}
    done = run(
        tmp_path,
        path={**PATH, "uplink": lossy},
        clients=[{"count": 20, "controller": "rfc7252", "exchanges": 3, "max_retransmit": 1}],
    )
    (row,) = done.summary.to_pylist()
    assert 0 < row["n"] < 20
    assert (row["unfinished"], row["unfinished_clients"]) == (0, 0.0)
    assert "of the clients whose last request was answered" in shown(done)
    assert f"{row['n']}/20" in shown(done)
