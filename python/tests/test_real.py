"""Real programs beside a study: what is to be run, running it over a relay and in namespaces, the three columns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from millpond import api
from millpond.errors import MillpondError, UsageError
from millpond.measure.population import Population
from millpond.real import campaign, columns, description, kept, programs
from millpond.real.kernel_tcp import REQUEST
from millpond.real.programs import MILLPOND, Clients, Stack, Tcp
from millpond.show.report import real as shown
from millpond.studies import pages as page

SCENARIO = """
[path]
header = "28 B"
[path.uplink]
rate = "1 Mbit/s"
delay = "5 ms"
queue = "9 kB"
[path.downlink]
rate = "1 Mbit/s"
delay = "5 ms"
queue = "9 kB"
[[clients]]
count = 1
controller = "rfc7252"
exchanges = 4
[server]
payload = "60 B"
[run]
until = "1 h"
"""

PLAN = """
name = "small"
title = "A small study"
source = "nobody"
scenario = "scenario.toml"
published = "published.csv"
replications = 1
[matrix]
clients = [2, 3]
algorithm = ["default"]
[vary.clients]
places = ["clients[0].count"]
[algorithms.default]
label = "Default CoAP"
controller = "rfc7252"
[reading]
replications = 1
algorithms = ["default"]
"""

LIVE = """
runs = 2
at_once = 2
stated = ["tokens are longer"]
[quick]
runs = 1
[[setting]]
where = { clients = [2, 7], algorithm = "default" }
[setting.clients]
exchanges = 4
file_bytes = 46
[[setting]]
where = { clients = 3, algorithm = "default" }
quick = false
label = "more"
[setting.clients]
exchanges = 4
file_bytes = 46
"""

HEAD = (
    "id,source,locator,category,kind,claim_id,clients,buffer_bytes,workload,error_profile,payload,topology,ldr,mac_retx,"
    "traffic,config,algorithm,offered_kbps,metric,bin,statistic,qualifier,value,unit,baseline,comparator,direction,"
    "relative_change,raw,suspect,note"
)
ROW = "small-r0001,small,Table 1,result,table,,2,,,,,,,,,,default,,fct,,median,,0.05,s,,,,,0.05,0,"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    folder.mkdir()
    for name, text in {
        "plan.toml": PLAN,
        "scenario.toml": SCENARIO,
        "published.csv": f"{HEAD}\n{ROW}\n",
        "live.toml": LIVE,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def simulated(study: Path, tmp_path: Path) -> api.Reproduction:
    return api.reproduce(str(study), out=tmp_path / "out", report=False)


def test_settings_are_cells_of_the_plan_and_those_that_were_not_simulated_are_named(
    study: Path, simulated: api.Reproduction
) -> None:
    cells = simulated.results.cells
    told = description.read(study, cells)
    assert [(one.cell.columns["clients"], one.label, one.runs) for one in told.settings] == [(2, "", 2), (3, "more", 2)]
    assert told.left_out == ("clients=7 algorithm=default",)
    assert told.settings[0].stated == ("tokens are longer",)
    assert [one.runs for one in description.read(study, cells, quick=True).settings] == [1]
    assert [one.runs for one in description.read(study, cells, runs=5).settings] == [5, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'runs' is missing"),
        ("runs = 0\nsetting = []\n", "at least 1"),
        ("runs = 1\n[[setting]]\nwhere = { clients = 1 }\n", "one of clients, tcp and stack"),
        ("runs = 1\nfoo = 1\nsetting = []\n", "unknown key 'foo'"),
    ],
)
def test_a_description_that_cannot_be_used_is_one_line(study: Path, text: str, said: str) -> None:
    (study / "live.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=said) as refused:
        description.check(study)
    assert len(str(refused.value).splitlines()) == 1
    (study / "live.toml").unlink()
    with pytest.raises(UsageError, match=r"it has no live\.toml"):
        api.reproduce(str(study), live=True)


def test_clients_over_a_relay_end_up_beside_what_was_published_and_simulated(
    study: Path, simulated: api.Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a busy machine a program begins to listen later than in the second that is waited for it
    heard = campaign._heard
    monkeypatch.setattr(campaign, "_heard", lambda address: [heard(address) for _ in range(30)])
    said: list[str] = []
    told = description.read(study, simulated.results.cells, quick=True)
    campaign.carry_out(told, simulated.directory, lambda _: 1.0, relayed=True, say=said.append)
    # on a busy machine it may have been late, once or more often
    run = kept.read(simulated.directory)[0]
    assert (run.over, len(run.fct_us), run.unfinished, run.exchanges) == ("relay", 2, 0, 8)
    assert run.copies is not None
    assert run.copies >= 8
    # four round trips of 10 ms at the least
    assert min(run.fct_us) >= 40_000
    assert [link["link"] for link in run.links] == ["uplink", "downlink"]
    assert any("of 1 valid" in line for line in said)

    if not run.valid:  # that is told, and nothing of it counted
        assert run.why.startswith("late")
        assert run.name.endswith("-late-1")
        run.valid, run.name = True, run.name.removesuffix("-late-1")
        kept.write(simulated.directory, run)
    done = api.Reproduction(simulated.results)
    assert done.live is not None
    beside = done.live.settings[0]
    median = next(line for line in beside.lines if line.statistic == "median")
    assert median.published == 0.05
    assert median.simulated[0] == pytest.approx(done.measures.sample("fct", _population(done)).take("median"))
    assert median.live is not None
    assert median.relative == pytest.approx(median.live / 0.05 - 1)
    assert done.to_json()["live"]["settings"][0]["copies_per_exchange"] >= 1
    assert "tokens are longer" in " ".join(shown.section(done.live, done.measures).paragraphs)
    assert 'id="live"' in page.render(done.results, done.comparison)

    said.clear()
    before = [(run.name, run.fct_us) for run in kept.read(simulated.directory)]
    campaign.carry_out(told, simulated.directory, lambda _: 1.0, relayed=True, resume=True, say=said.append)
    assert said == ["live: 1 runs are there already, 0 to go"]
    assert [(run.name, run.fct_us) for run in kept.read(simulated.directory)] == before


def test_late_runs_are_named_and_not_counted(study: Path, simulated: api.Reproduction) -> None:
    told = description.read(study, simulated.results.cells)
    cell = told.settings[0].cell
    for number, (times, valid) in enumerate([((50_000, 60_000), True), ((5_000_000, 6_000_000), False)]):
        made = kept.LiveRun(
            name=f"{cell.id}-{number}", cell=cell.id, columns=dict(cell.columns), label="", variants=[""],
            number=number, seed=1, over="relay", valid=valid, why="" if valid else "late: by much", fct_us=list(times),
            unfinished=0, limit_s=None, copies=9, exchanges=8, answered=8, lateness={},
            links=[{"link": "downlink", "delivered_packets": 10}], left_out=[], hindrances=[], stated=[], system="",
        )  # fmt: skip
        (simulated.directory / kept.FOLDER).mkdir(exist_ok=True)
        kept.write(simulated.directory, made)
    live = columns.read(simulated.directory, simulated.measures, simulated.comparison)
    assert live is not None
    (beside,) = live.settings
    found = {line.statistic: line.live for line in beside.lines}
    assert (found["min"], found["max"]) == pytest.approx((0.05, 0.06))
    assert (beside.clients, beside.copies, beside.needed) == (2, 9 / 8, 8 / 10)
    told_of = " ".join(shown.section(live, simulated.measures).paragraphs)
    assert "Not valid and not counted" in told_of
    assert "late: by much" in told_of
    # what was late is run again, what was not is kept
    said: list[str] = []
    (simulated.directory / kept.FOLDER / f"{cell.id}-1.json").write_text("{", encoding="utf-8")
    with pytest.raises(MillpondError, match="no run of real programs"):
        campaign.carry_out(told, simulated.directory, lambda _: 1.0, resume=True, say=said.append)


def test_programs_that_are_not_installed_are_skipped_by_name(
    study: Path, simulated: api.Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clients, "missing", lambda _: "no such program (install it)")
    said: list[str] = []
    told = description.read(study, simulated.results.cells, quick=True)
    campaign.carry_out(told, simulated.directory, lambda _: 1.0, say=said.append)
    assert said == ["live: skipped: no such program (install it)"]
    live = columns.read(simulated.directory, simulated.measures, None)
    assert live is not None
    assert live.skipped[0].why == "no such program (install it)"
    assert "Skipped: " in " ".join(shown.section(live, simulated.measures).paragraphs)


def test_the_request_over_tcp_is_the_frame_that_it_says_it_is() -> None:
    length, token = REQUEST[0] >> 4, REQUEST[0] & 15
    assert (length, token, REQUEST[1], REQUEST[2:]) == (6, 0, 1, b"\xb5hello")


def _population(done: api.Reproduction) -> Population:
    return next(p for p in done.measures.populations() if p.column("clients") == 2)


def test_a_directory_without_real_programs_has_none(tmp_path: Path) -> None:
    assert kept.read(tmp_path) == []
    assert kept.skipped(tmp_path) == []


def _namespaces() -> str:
    """Why programs cannot be put into namespaces here; empty if they can."""
    told = subprocess.run([*MILLPOND, "emulate", "nbiot-anrw18", "-q", "--", "true"], capture_output=True, text=True)
    return told.stderr.strip() if told.returncode else ""


def test_the_kernels_own_tcp_runs_in_namespaces_with_what_was_set(study: Path, tmp_path: Path) -> None:
    if why := _namespaces():
        pytest.skip(f"not shown here: a download over the kernel's TCP between namespaces: {why}")
    (study / "live.toml").write_text(
        "runs = 1\n[[setting]]\nwhere = { clients = 2, algorithm = 'default' }\n[setting.tcp]\n"
        "congestion = { default = 'reno' }\nbytes = 20000\nmtu = 296\ninitial_window = 4\n"
        "sysctl = { tcp_sack = '0', tcp_timestamps = '0' }\n",
        encoding="utf-8",
    )
    done = api.reproduce(str(study), out=tmp_path / "out", live=True, report=False)
    run = kept.read(done.directory)[0]
    assert (run.over, len(run.fct_us), run.unfinished) == ("emulate", 2, 0)
    # 20 kB at 1 Mbit/s, with a header of 40 B before every 256 B
    assert min(run.fct_us) >= 20_000 * 296 / 256 * 8
    down = next(link for link in run.links if link["link"] == "downlink")
    # full segments, for the most part: neither SACK nor timestamps take of them
    assert down["delivered_bytes"] / down["delivered_packets"] > 270


def test_a_congestion_control_that_the_kernel_lacks_is_named() -> None:
    lacking = Tcp(congestion={"a": "nosuch"}, bytes=1, mtu=296).missing()
    assert "nosuch" in lacking
    assert "modprobe tcp_nosuch" in lacking


def _flow(client: str, since: int, fct: int | None, sent: int, received: int) -> dict[str, object]:
    return {
        "client": client, "transport": "udp", "first_send_us": since, "fct_us": fct, "sent_packets": sent,
        "received_packets": received,
    }  # fmt: skip


def test_a_libcoap_client_is_a_device_whatever_ports_it_asks_from(tmp_path: Path, simulated: api.Reproduction) -> None:
    cell = next(cell for cell in simulated.results.cells if cell.columns["clients"] == 2)
    stack = Stack(name="libcoap", exchanges=2, payload=60)
    flows = [
        _flow("10.77.1.1:4000", 100, 50, 1, 1),
        _flow("10.77.1.1:4001", 200, 70, 3, 2),
        _flow("10.77.1.2:4000", 110, 40, 1, 1),
        # never answered
        _flow("10.77.1.2:4001", 160, None, 5, 0),
        {**_flow("10.77.1.2", 170, None, 9, 0), "transport": "icmp"},
    ]
    found = stack.outcome(cell, tmp_path, {"flows": flows})
    # the second ended with what it was handed last
    assert (found.fct_us, found.unfinished) == ((50, 170), 0)
    assert (found.copies, found.exchanges, found.answered) == (10, 4, 3)


def test_other_stacks_leave_how_many_were_answered(tmp_path: Path, simulated: api.Reproduction) -> None:
    cell = next(cell for cell in simulated.results.cells if cell.columns["clients"] == 2)
    stack = Stack(name="aiocoap", exchanges=2, payload=60)
    with pytest.raises(MillpondError, match="aiocoap left no figures"):
        stack.outcome(cell, tmp_path, {"flows": []})
    (tmp_path / "stack.json").write_text('{"answered": 3}', encoding="ascii")
    found = stack.outcome(cell, tmp_path, {"flows": [_flow("10.77.1.1:4000", 100, 50, 3, 2)]})
    assert (found.fct_us, found.unfinished, found.answered) == ((50,), 1, 3)


@pytest.mark.parametrize("name", ["libcoap", "aiocoap", "Californium"])
def test_a_stack_that_is_not_installed_is_named_with_the_fix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PEERS", Path("/nowhere"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    lacking = Stack(name=name, exchanges=1, payload=1).missing()  # type: ignore[arg-type]
    assert lacking.startswith(f"{name} is missing (")


@pytest.mark.parametrize("name", ["libcoap", "aiocoap", "Californium"])
def test_a_stack_asks_and_answers_over_a_path(study: Path, tmp_path: Path, name: str) -> None:
    if why := Stack(name=name, exchanges=1, payload=1).missing() or _namespaces():  # type: ignore[arg-type]
        pytest.skip(f"not shown here: clients and server of {name} over a path: {why}")
    (study / "live.toml").write_text(
        "runs = 1\n[[setting]]\nwhere = { clients = 2, algorithm = 'default' }\n"
        f"stack = {{ name = '{name}', exchanges = 3, payload = 60 }}\n",
        encoding="utf-8",
    )
    done = api.reproduce(str(study), out=tmp_path / "out", live=True, report=False)
    run = kept.read(done.directory)[0]
    assert (len(run.fct_us), run.exchanges, run.answered) == (2, 6, 6)
    assert run.copies is not None
    assert run.copies >= 6
