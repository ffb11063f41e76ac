"""Single scenarios as programs: what their groups are called, and what is recorded of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan import single
from millpond.plan.program import Program, groups_of

PATH = """\
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "2500 B"
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "8 packets"
"""
PLAIN = '[[clients]]\ncount = 2\ncontroller = "rfc7252"\n'
STREAM = '[[clients]]\ncount = 1\ntransport = "tcp"\n'
BBR = '[[clients]]\ncount = 1\ntransport = { kind = "tcp", congestion = "bbr" }\n'
BLOCKS = '[[clients]]\ncount = 1\ncontroller = "cocoa-03"\ntransfer = { kind = "blocks", size = "64 B" }\n'
BURSTS = '[[clients]]\ncount = 1\ncontroller = "rfc7252"\ntransfer = { kind = "bursts", size = "64 B" }\n'


def program(folder: Path, *groups: str, **options: object) -> Program:
    file = folder / "some.toml"
    file.write_text(PATH + "".join(groups))
    return single.program(file, **options)  # type: ignore[arg-type]


def test_groups_are_called_after_what_controls_them(tmp_path: Path) -> None:
    cell = program(tmp_path, PLAIN, STREAM, BBR, BLOCKS, BURSTS, STREAM).cells[0].cell
    names = [group.algorithm for group in cell.groups]
    assert names == ["rfc7252", "tcp-new-reno, group 2", "tcp-bbr", "cocoa-03", "q-block2", "tcp-new-reno, group 6"]


def test_groups_of_one_controller_are_told_apart_by_the_keys_that_differ(tmp_path: Path) -> None:
    """By settings of the controller if these do, else by one other key, else by where they stand."""

    def names(*groups: str) -> list[str]:
        return [group.algorithm for group in program(tmp_path, *groups).cells[0].cell.groups]

    slow = PLAIN.replace('"rfc7252"', '{ preset = "rfc7252", ack-timeout = "20 s" }')
    assert names(PLAIN, slow) == ["rfc7252", "rfc7252, ack-timeout 20 s"]
    assert names(PLAIN + 'request_payload = "99 B"\n', PLAIN) == [
        "rfc7252, request payload 99 B",
        "rfc7252, request payload 0 B",
    ]
    often = PLAIN + 'workload = { kind = "periodic", period = "1 s", requests = 3 }\n'
    assert names(PLAIN, often) == ["rfc7252, workload continuous", "rfc7252, workload periodic"]
    two = PLAIN + "max_retransmit = 2\ntoken_length = 1\n"
    assert names(two, PLAIN) == ["rfc7252, max retransmit 2", "rfc7252, max retransmit 4"]
    assert names(two, PLAIN, PLAIN) == ["rfc7252, group 1", "rfc7252, group 2", "rfc7252, group 3"]
    assert names(PLAIN, PLAIN.replace("count = 2", "count = 5")) == ["rfc7252, group 1", "rfc7252, group 2"]


def test_what_the_server_sends_is_called_after_whom_it_is_for() -> None:
    every_hour = {"workload": {"kind": "periodic", "period": "1 h"}}
    clients = [
        {"count": 2, "controller": "rfc7252", "commands": every_hour},
        {
            "count": 3,
            "controller": "cocoa-03",
            "name": "valves",
            "token_length": 2,
            "notifications": every_hour,
            "commands": every_hour,
        },
    ]
    server = {"controller": "rfc7252"}
    scenario = scenarios.build(
        {"path": "nbiot-anrw18", "clients": clients, "server": server, "run": {"for": "1 d"}}, "here"
    )
    told = [
        (group.index, group.count, group.algorithm, group.name, group.traffic)
        for group in groups_of(scenarios.in_full(scenario), scenario.groups())
    ]
    assert told == [
        (0, 2, "rfc7252", "", "requests"),
        (1, 3, "valves", "valves", "requests"),
        (2, 2, "rfc7252, commands", "", "commands"),
        (3, 3, "valves, commands", "valves, commands", "commands"),
        (4, 3, "valves, notifications", "valves, notifications", "notifications"),
    ]


@pytest.mark.parametrize(
    ("groups", "tables"),
    [
        ((PLAIN,), single.USUAL_TRACES),
        ((PLAIN, STREAM), single.TRANSFER_TRACES),
        ((BLOCKS,), single.TRANSFER_TRACES),
        ((STREAM.replace("count = 1", f"count = {single.FEW + 1}"),), single.USUAL_TRACES),
    ],
)
def test_packets_are_recorded_where_few_clients_transfer_bodies(
    tmp_path: Path, groups: tuple[str, ...], tables: tuple[str, ...]
) -> None:
    assert program(tmp_path, *groups).trace.tables == tables
    # what is asked for comes beside what the report draws
    more = program(tmp_path, *groups, trace=("exchanges", "queue")).trace.tables
    assert more == (*tables, "exchanges")
    assert program(tmp_path, *groups, trace=single.NO_TRACES).trace.tables == ()


def test_another_controller_is_for_those_that_have_one(tmp_path: Path) -> None:
    cell = program(tmp_path, PLAIN, STREAM, BLOCKS, controllers=["fasor", "cocoa-fb1"]).cells[0].cell
    assert [group.algorithm for group in cell.groups] == ["fasor", "tcp-new-reno", "cocoa-fb1"]
    with pytest.raises(UsageError, match=r"3 for 2 group\(s\) of clients: give one, or 2"):
        program(tmp_path, PLAIN, STREAM, BLOCKS, controllers=["fasor", "cocoa-fb1", "rfc7252"])
    with pytest.raises(UsageError, match="all clients ask over TCP"):
        program(tmp_path, STREAM, controllers=["fasor"])


def test_what_follows_from_a_key_follows_from_its_change(tmp_path: Path) -> None:
    """Periods of a group together, how many clients a mesh has, and events that come again, whatever is changed."""
    file = tmp_path / "mesh.toml"
    written = """\
[mesh]
topology = "grid-6x6"
[[clients]]
controller = "rfc7252"
sink = "primary"
uri_path = "s"
workload = [ { kind = "periodic", period = { together = "256 ms" }, for = "50 s" }, { kind = "after-event" } ]
[[timeline]]
at = "10 s"
kind = "alarm"
every = "10 s"
[run]
for = "60 s"
"""
    file.write_text(written)
    changes = {"mesh.topology": "chain-17", "run.for": "100 s"}
    [changed] = single.program(file, changes=changes).cells
    file.write_text(written.replace("grid-6x6", "chain-17").replace('"60 s"', '"100 s"'))
    [rewritten] = single.program(file).cells
    assert changed.cell.scenario == rewritten.cell.scenario
    group = scenarios.in_full(changed.scenario)["clients"][0]
    assert (group["count"], group["workload"][0]["period"]) == (14, {"together": "256 ms"})
