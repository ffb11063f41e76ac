"""Descriptions of fleets: every key has its default in the example, and what makes no sense is one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from millpond import _engine
from millpond.errors import UsageError
from millpond.fleet import description, scenario
from millpond.fleet.change import AS_IT_IS, Change, Effort
from millpond.fleet.description import LINKS
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import Declared, parse

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"


def fleet(**changes: Any) -> description.Fleet:
    return description.read(None, {place.replace("__", "."): value for place, value in changes.items()})


def tables() -> dict[str, type[Declared]]:
    return {
        "": description.Keys, "cell": description.CellKeys, "group": description.GroupKeys,
        "everyday": description.EverydayKeys, "event": description.EventKeys, "waking": description.WakingKeys,
        "server": description.ServerKeys, "goal": description.GoalKeys,
    }  # fmt: skip


def test_the_example_has_every_key_with_its_default_and_where_that_comes_from() -> None:
    text = description.example()
    for table, kind in tables().items():
        part = text if not table else re.split(r"^\[", text[text.index(f"[{table}]") :][1:], flags=re.MULTILINE)[0]
        for field in msgspec.structs.fields(kind):
            if field.encode_name not in tables():
                assert re.search(rf"^(# )?{field.encode_name} = .*", part, re.MULTILINE), (table, field.encode_name)
    read = description.understood(parse(text, "example"), "example").keys
    usual = description.understood({}, "usual").keys
    assert read.event.arrival == scenario.SYNCHRONISED
    assert msgspec.structs.replace(read, title="", event=usual.event) == usual


def test_the_manual_explains_every_key() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [
        (table, field.encode_name)
        for table, kind in tables().items()
        for field in msgspec.structs.fields(kind)
        if field.encode_name not in tables() and f"`{field.encode_name}`" not in text
    ]
    assert missing == []


@pytest.mark.parametrize("kind", ["power-cut", "hourly", "command", "firmware"])
@pytest.mark.parametrize("security", ["none", "dtls-psk", "dtls-resumed", "dtls-cid", "oscore"])
def test_every_event_is_a_scenario(kind: str, security: str) -> None:
    told = fleet(event__kind=kind, security=security, devices=10)
    tree = scenario.tree(told, AS_IT_IS, others_every_s=20.0)
    full = scenarios.in_full(scenarios.build(tree, "tree"))
    assert [table["count"] for table in full["clients"]] == [10, 20]
    assert [event["at"] for event in full["timeline"]] == ["1 min"]


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ({"devcies": 3}, "--set devcies: unknown key 'devcies': did you mean 'devices'?"),
        ({"cell.bufer": "3 kB"}, "--set cell.bufer: cell: unknown key 'bufer': did you mean 'buffer'?"),
        ({"cell.buffer": "12 kb"}, "--set cell.buffer: unknown unit `kb`"),
        ({"cell.delay": 3}, "--set cell.delay: expected text"),
        ({"cell.loss": "120 %"}, "--set cell.loss: 120 % is no share"),
        ({"cell.profile": "nbiot-anrw"}, "--set cell.profile: unknown path 'nbiot-anrw': did you mean 'nbiot-anrw18'?"),
        ({"goal.done": "soon"}, "--set goal.done: 'soon' is no goal: write a share and a time"),
        ({"goal.done": "99 % in 5 mim"}, "--set goal.done: unknown unit `mim`"),
        ({"goal.done": "99 % in 100 d"}, '1 h ends before the time that the goal gives: write at least "8640000 s"'),
        ({"goal.useful": "most"}, "--set goal.useful: 'most' is no share"),
        ({"event.kind": "power"}, "--set event.kind: unknown word 'power': did you mean 'power-cut'?"),
        ({"group[0].reconnect": "by-lod"}, "--set group[0].reconnect: unknown rule 'by-lod': did you mean 'by-load'?"),
        ({"group[0].name": "others"}, "--set group[0].name: group: 'others' is no name for a group of the fleet"),
        ({"group[0].controller": "rfc7253"}, "did you mean `rfc7252`"),
        ({"try_controllers": ["cocoa"]}, "--set try_controllers: unknown controller 'cocoa'"),
        ({"devices": 0}, "--set devices: expected a whole number >= 1"),
        ({"old_firmware": 2.0}, "--set old_firmware: expected"),
        ({"waking.registration": "0 B", "waking.observations": 0, "waking.readings": 0}, "a device that does nothing"),
        ({"clients": []}, "a scenario, which `millpond run` takes"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line(places: dict[str, Any], told: str) -> None:
    def read_and_build() -> None:
        known = description.read(None, places)
        scenarios.build(scenario.tree(known, AS_IT_IS), known.origin)

    with pytest.raises(UsageError) as caught:
        read_and_build()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mistake_in_the_file_is_the_files_and_one_of_an_option_is_the_options(tmp_path: Path) -> None:
    half = tmp_path / "half.toml"
    half.write_text('devices = 5\n[goal]\ndone = "half"\n', encoding="utf-8")
    for changes, blamed in (
        ({}, f"{half}: goal.done"),
        ({"devices": 0}, "--devices"),
        ({"goal.done": "soon"}, "--within"),
    ):
        with pytest.raises(UsageError) as caught:
            description.read(half, changes, {"devices": "--devices", "goal.done": "--within"})
        assert str(caught.value).startswith(f"{blamed}: "), changes


def test_the_cell_may_be_a_file_as_of_emulate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {profile[0]: profile[3] for profile in _engine.profiles()}
    (tmp_path / "cell.toml").write_text(found["nbiot-anrw18"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    named, filed = (fleet(cell__profile=name, cell__loss="1 %") for name in ("nbiot-anrw18", "cell.toml"))
    full = [scenarios.in_full(scenarios.build(scenario.tree(one, AS_IT_IS), "tree")) for one in (named, filed)]
    assert full[0]["path"] == full[1]["path"]
    assert filed.title == "400 devices after a power cut, cell cell.toml"
    # what a description names lies beside it
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "meters.toml").write_text('cell.profile = "other.toml"\n', encoding="utf-8")
    (tmp_path / "elsewhere" / "other.toml").write_text('path = "nbiot-upc"\n', encoding="utf-8")
    assert description.read(Path("elsewhere/meters.toml"), {}).path == {"profile": "nbiot-upc"}
    (tmp_path / "cell.toml").write_text('[uplink]\nrate = "60 kbit/s"\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"cell.toml: uplink: missing key `delay`"):
        fleet(cell__profile="cell.toml")


def test_buffer_loss_and_delay_may_differ_between_the_directions() -> None:
    each = fleet(
        cell__buffer={"uplink": "2 kB", "downlink": "30 kB"},
        cell__loss={"downlink": "5 %"},
        cell__delay={"uplink": "1 s"},
    )
    full = scenarios.in_full(scenarios.build(scenario.tree(each, AS_IT_IS), "tree"))["path"]
    named = scenarios.in_full(scenarios.build(scenario.tree(fleet(), AS_IT_IS), "tree"))["path"]
    assert (full["uplink"]["queue"], full["downlink"]["queue"]) == ("2000 B", "30000 B")
    assert full["uplink"]["loss"] == named["uplink"]["loss"]
    assert full["downlink"]["loss"]["rate"] == 0.05
    assert (full["uplink"]["delay"], full["downlink"]["delay"]) == ("1 s", named["downlink"]["delay"])
    with pytest.raises(UsageError, match=r"cell\.buffer\.uplink: "):
        fleet(cell__buffer={"uplink": "much"})
    with pytest.raises(UsageError, match=r"cell\.loss\.downlink: 2 is no share"):
        fleet(cell__loss={"downlink": "2"})


def test_two_changes_at_once_reach_whom_both_reach() -> None:
    server = Change("calm-server", "a calm server", Effort.SERVER, duplicates="calm")
    devices = Change("patient", "patient", Effort.DEVICES, max_retransmit=8, reach=0.5)
    both = server.beside(devices)
    assert (both.name, both.title) == ("calm-server+patient", "a calm server, patient")
    assert (both.duplicates, both.max_retransmit, both.reach, both.effort) == ("calm", 8, 0.5, Effort.DEVICES)


def test_a_gateway_stands_before_both_links() -> None:
    tree = scenario.tree(fleet(devices=10), Change("gateway", "a gateway", Effort.GATEWAY, gateway=True))
    assert [(relay["before"], relay["copies"]) for relay in tree["relays"]] == [
        ("uplink", "withheld"),
        ("downlink", "withheld"),
    ]
    assert "relays" not in scenario.tree(fleet(devices=10), AS_IT_IS)


def test_a_gateway_that_asks_stands_between_the_devices_and_the_cell() -> None:
    known = fleet(devices=10)
    change = Change("asking-gateway", "a gateway", Effort.GATEWAY, asks=3)
    before, tree = scenario.tree(known, AS_IT_IS, 0.1, 5.0), scenario.tree(known, change, 0.1, 5.0)
    (proxy,) = tree["proxies"]
    assert (proxy["nstart"], proxy["queue"], proxy["coalesce"]) == (3, 160, True)
    assert [table.get("via") for table in tree["clients"]] == ["gateway", None]
    assert tree["clients"][1]["route"] == proxy["route"] == {"up": ["uplink"], "down": ["downlink"]}
    was, now = (scenarios.in_full(scenarios.build(one, "test")) for one in (before, tree))
    assert {link: now["network"]["links"][link] for link in LINKS} == {link: was["path"][link] for link in LINKS}
    assert now["network"]["header"] == was["path"]["header"]


def test_an_operator_may_manage_the_queues_of_the_cell() -> None:
    tree = scenario.tree(fleet(devices=10), Change("codel", "CoDel", Effort.OPERATOR, codel_ms=630))
    path = scenarios.in_full(scenarios.build(tree, "tree"))["path"]
    for link in ("uplink", "downlink"):
        aqm = path[link]["aqm"]
        assert (aqm["kind"], aqm["interval"], aqm["target"]) == ("codel", "630 ms", "63 ms")
        assert path[link]["queue"] == "14100 B"
    plain = scenarios.in_full(scenarios.build(scenario.tree(fleet(devices=10), AS_IT_IS), "tree"))["path"]
    assert "aqm" not in plain["uplink"]


def test_shares_of_groups_add_up_to_all_devices() -> None:
    tree = {"devices": 10, "group": [{"name": name, "share": 1 / 3} for name in "abc"]}
    assert description.understood(tree, "tree").sizes == (4, 3, 3)


def test_a_remedy_reaches_the_share_of_devices_that_can_have_it() -> None:
    told = fleet(devices=10)
    change = Change("new", "new", Effort.FIRMWARE, controller="cocoa-03", reach=0.3)
    clients = scenario.tree(told, change)["clients"]
    assert [(table["count"], table["controller"]) for table in clients] == [(7, "rfc7252"), (3, "cocoa-03")]


def test_starts_are_spread_by_what_the_cell_takes() -> None:
    # fleets of 400 on a cell that answers 39.9 a second need 20 s for half of its load
    clients = scenario.tree(fleet(), Change("s", "s", Effort.DEVICES, load=0.5), work_s=1 / 39.9)["clients"]
    assert clients[0]["workload"][0]["arrival"] == "20050125 us"
    by_rule = scenario.tree(fleet(**{"group[0]__reconnect": "by-load"}), AS_IT_IS, work_s=1 / 39.9)["clients"]
    assert by_rule[0]["workload"][0]["arrival"] == "20050125 us"
