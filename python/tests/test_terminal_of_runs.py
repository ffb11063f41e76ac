"""What the terminal and `--json` say of runs whose clients have no completion time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import small_sweep

import millpond
from millpond.api import redraw
from millpond.measure.reported import Reported
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
    assert "Birth of a request to its answer" in shown(done)
    assert "15 of 15 requests" in " ".join(shown(done).split())
    assert "Flow completion times, of" not in shown(done)
    redraw(done)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "no client has a completion time, because its work has no end" in page
    assert "no client finished" not in page


def test_who_had_nothing_to_ask_is_not_complete(tmp_path: Path) -> None:
    rare = {"kind": "poisson", "interval": "1 min", "for": "30 s"}
    done = run(tmp_path, clients=[{"count": 20, "controller": "rfc7252", "workload": rare}])
    (counted,) = done.table("runs").to_pylist()
    told = Reported(done.results).outcome(done.results.cells[0])
    assert told.silent > 0
    assert counted["clients_complete"] == told.complete == 20 - told.silent


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
    # the same counts as in the tables of runs, of the terminal and of the report
    (counted,) = done.table("runs").to_pylist()
    for name in ("arrivals", "answered", "failed", "never_finished", "delivered"):
        assert row[name] == counted[name]
    assert row["failed"] == row["arrivals"] - row["answered"] > 0
    assert row["clients_of_all_runs"] == 20
    assert "of the clients whose last request was answered" in " ".join(shown(done).split())
    assert f"{row['n']} of 20 clients" in " ".join(shown(done).split())


@pytest.mark.parametrize(("replications", "told"), [(1, ": 1 setting, 1 run"), (2, ": 1 setting, 2 runs")])
def test_runs_are_counted_over_all_cells(replications: int, told: str) -> None:
    clients = [{"count": 1, "controller": "rfc7252", "exchanges": 1}]
    plan = {
        "scenario": {"path": PATH, "clients": clients},
        "replications": replications,
        "matrix": {"path.uplink.delay": ["1 ms"]},
    }
    done = millpond.sweep(plan, out=None, report=False)
    assert done.results.runs == replications
    assert done.document.subtitle.endswith(told)


def test_a_proxy_has_a_row_of_its_own_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    scenario = Path(millpond.__file__).parent / "scenarios" / "proxy.toml"
    done = millpond.run(scenario, clients=[5], replications=2, out=tmp_path / "out", report=False)
    (row, again) = done.table("proxies").to_pylist()
    assert (row["requests"], again["requests"]) == (100, 100)
    told = " ".join(shown(done).split())
    assert "What each proxy was handed by clients, and sent to the server for them. Of one run, mean" in told
    sent = (row["transmissions"] + again["transmissions"]) / 2
    most = max(row["held_max"], again["held_max"])
    assert f"gateway 100 100 0 0 {sent:g}" in told
    redraw(done)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "What each proxy was handed" in page
    assert f"<td>{most}</td>" in page or f">{most}<" in page


def test_without_a_proxy_nothing_is_told_of_any(tmp_path: Path) -> None:
    done = run(tmp_path, clients=[{"count": 1, "controller": "rfc7252", "exchanges": 1}])
    assert "prox" not in shown(done)


def test_a_relay_tells_what_it_kept_back(tmp_path: Path) -> None:
    """Clients may repeat themselves a hundred times while the link is useful to the last byte: here is why."""
    scenario = Path(millpond.__file__).parent / "scenarios" / "gateway.toml"
    done = millpond.run(scenario, clients=[200], out=tmp_path / "out", report=False)
    (row,) = done.table("relays").to_pylist()
    assert row["withheld_packets"] > 1000
    told = " ".join(shown(done).replace("\N{NARROW NO-BREAK SPACE}", "").split())
    assert f"gateway uplink {row['passed_packets']} {row['withheld_packets']}" in told
    redraw(done)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Packets that each relay passed on" in page
    assert f"{row['withheld_packets']:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") in page


def test_who_asks_nothing_is_not_done_at_once(tmp_path: Path) -> None:
    """A client without a request was told to have had all its answers at 0 s, and counted beside what it is sent."""
    command = {"workload": {"kind": "continuous"}, "request_payload": "20 B"}
    silent = {"count": 7, "name": "sensors", "controller": "rfc7252", "workload": "none", "exchanges": 2}
    done = run(tmp_path, clients=[{**silent, "commands": command}], server={"controller": "rfc7252"})
    told = " ".join(shown(done).split())
    assert "sensors 7" + 7 * " \N{EN DASH}" in told
    assert "sensors, commands 7 7 0 0" in told
    assert {row["first_send_us"] for row in done.table("flows").to_pylist() if row["group"] == 0} == {None}
    redraw(done)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "sensors: no client asked anything." in page
    assert "14 of 14 clients" not in page


def test_a_queue_before_a_link_whose_rate_changes_is_told_in_bytes_alone(tmp_path: Path) -> None:
    clients = [{"count": 5, "controller": "rfc7252", "exchanges": 3}]
    slower = [{"at": "1 s", "kind": "rate", "link": name, "rate": "10 kbit/s"} for name in ("uplink", "downlink")]
    steady = run(tmp_path / "steady", clients=clients)
    changed = run(tmp_path / "changed", clients=clients, timeline=slower)
    for done, told in ((steady, True), (changed, False)):
        redraw(done)
        assert done.report is not None
        page = done.report.read_text(encoding="utf-8")
        assert "queue grew to" in page
        assert ("s of waiting" in page) == ("(right scale)" in page) == told


@pytest.mark.parametrize(("replications", "together"), [(1, False), (2, True)])
def test_times_of_all_runs_together_are_told_to_be_so(tmp_path: Path, replications: int, together: bool) -> None:
    clients = [{"count": 5, "controller": "rfc7252", "exchanges": 3}]
    done = millpond.run({"path": PATH, "clients": clients}, out=tmp_path / "run", replications=replications)
    assert ("Clients of all replications together" in " ".join(shown(done).split())) == together
    swept = millpond.sweep(small_sweep.tree(), out=tmp_path / "sweep", replications=replications)
    for made in (done, swept):
        assert made.report is not None
        assert ("Clients of all replications together" in made.report.read_text(encoding="utf-8")) == together
