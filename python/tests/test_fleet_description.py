"""Descriptions of fleets: every key has its default in the example, and what makes no sense is one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from millpond.engine import native
from millpond.errors import UsageError
from millpond.fleet import description, scenario
from millpond.fleet.change import AS_IT_IS, Change, Effort
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import Declared, parse

ENGINE = native()
PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"


def fleet(**changes: Any) -> description.Fleet:
    return description.read(None, {place.replace("__", "."): value for place, value in changes.items()}, ENGINE)


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
    read = description.understood(parse(text, "example"), ENGINE, "example").keys
    usual = description.understood({}, ENGINE, "usual").keys
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
@pytest.mark.parametrize("handshake", ["none", "dtls-psk"])
def test_every_event_is_a_scenario(kind: str, handshake: str) -> None:
    told = fleet(event__kind=kind, waking__handshake=handshake, devices=10)
    tree = scenario.tree(told, AS_IT_IS, others_every_s=20.0)
    full = scenarios.in_full(scenarios.build(tree, "tree", ENGINE))
    assert [table["count"] for table in full["clients"]] == [10, 20]
    assert [event["at"] for event in full["timeline"]] == ["1 min"]


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ({"devcies": 3}, "fleet: unknown key 'devcies': did you mean 'devices'?"),
        ({"cell.bufer": "3 kB"}, "fleet: cell: unknown key 'bufer': did you mean 'buffer'?"),
        ({"cell.buffer": "12 kb"}, "fleet: cell.buffer: unknown unit `kb`"),
        ({"cell.delay": 3}, "fleet: cell.delay: expected text"),
        ({"cell.loss": "120 %"}, "fleet: cell.loss: 120 % is no share"),
        ({"cell.profile": "nbiot-anrw"}, "did you mean `nbiot-anrw18`?"),
        ({"goal.done": "soon"}, "fleet: goal.done: 'soon' is no goal: write a share and a time"),
        ({"goal.done": "99 % in 5 mim"}, "fleet: goal.done: unknown unit `mim`"),
        ({"goal.done": "99 % in 100 d"}, '1 h ends before the time that the goal gives: write at least "8640000 s"'),
        ({"goal.useful": "most"}, "fleet: goal.useful: 'most' is no share"),
        ({"event.kind": "power"}, "fleet: event.kind: unknown word 'power': did you mean 'power-cut'?"),
        ({"group[0].reconnect": "by-lod"}, "fleet: group[0].reconnect: unknown rule 'by-lod': did you mean 'by-load'?"),
        ({"group[0].name": "others"}, "fleet: group: 'others' is no name for a group of the fleet"),
        ({"group[0].controller": "rfc7253"}, "did you mean `rfc7252`"),
        ({"try_controllers": ["cocoa"]}, "fleet: try_controllers: unknown controller 'cocoa'"),
        ({"devices": 0}, "fleet: devices: expected a whole number >= 1"),
        ({"old_firmware": 2.0}, "fleet: old_firmware: expected"),
        ({"waking.registration": "0 B", "waking.observations": 0, "waking.readings": 0}, "a device that does nothing"),
        ({"clients": []}, "a scenario, which `millpond run` takes"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line(places: dict[str, Any], told: str) -> None:
    def read_and_build() -> None:
        known = description.read(None, places, ENGINE)
        scenarios.build(scenario.tree(known, AS_IT_IS), known.origin, ENGINE)

    with pytest.raises(UsageError) as caught:
        read_and_build()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shares_of_groups_add_up_to_all_devices() -> None:
    tree = {"devices": 10, "group": [{"name": name, "share": 1 / 3} for name in "abc"]}
    assert description.understood(tree, ENGINE, "tree").sizes == (4, 3, 3)


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
