"""A key of a scenario that is set to the default which the manual gives it changes nothing."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millpond import _engine
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import parse

PAGE = (Path(__file__).parents[2] / "docs" / "scenario.md").read_text(encoding="utf-8")

LINK = {"rate": "60 kbit/s", "delay": "215 ms", "queue": "8 packets"}
CLIENT: dict[str, Any] = {"count": 1, "controller": "rfc7252"}
ONE: dict[str, Any] = {"path": {"uplink": LINK, "downlink": LINK}, "clients": [CLIENT]}
CELL = {"inactivity": "20 s", "preambles": 48, "every": "640 ms"}
ROUTE = {"up": ["cell"], "down": ["cell"]}
NETWORK = {"network": {**ROUTE, "links": {"cell": LINK}}, "clients": [CLIENT]}
BEHIND = {**NETWORK, "clients": [{**CLIENT, "via": "gateway", "token_length": 2}]}
PROXY = {"name": "gateway", "route": ROUTE, "controller": "cocoa-03"}
MESH: dict[str, Any] = {"mesh": {"topology": "grid-6x6"}, "clients": [{"controller": "rfc7252", "sink": "primary"}]}
ALARMS = {"kind": "after-event", "arrival": "at-once"}
STATE = {"kind": "periodic", "period": "1 min"}
ASKED = [{**CLIENT, "token_length": 2}]


def _with(scenario: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {**scenario, **keys}


#: Where segments are lost, so that it shows how TCP recovers.
LOSSY = {
    "path": {"uplink": {**LINK, "loss": {"kind": "bernoulli", "rate": "20 %"}}, "downlink": LINK},
    "clients": [{"count": 10, "transport": {"kind": "tcp"}}],
}

#: Of each table with defaults, in the order of the page: a scenario that may have its keys, and where they stand in it.
TABLES: list[tuple[dict[str, Any], tuple[str | int, ...]]] = [
    (ONE, ("path",)),
    (ONE, ("path", "uplink")),
    (_with(ONE, path={**ONE["path"], "access": CELL}), ("path", "access")),
    (_with(ONE, path={**ONE["path"], "wifi": {"standard": "802.11g"}}), ("path", "wifi")),
    (NETWORK, ("network",)),
    (
        _with(
            ONE,
            cross_traffic=[{"name": "web", "direction": "up", "rate": "8 kbit/s", "packet": "100 B"}],
            run={"for": "1 min"},
        ),
        ("cross_traffic", 0),
    ),
    (_with(ONE, relays=[{"name": "gateway", "before": "uplink"}]), ("relays", 0)),
    (_with(BEHIND, proxies=[PROXY]), ("proxies", 0)),
    (MESH, ("mesh",)),
    (_with(MESH, mesh={**MESH["mesh"], "routing": {"kind": "rpl"}}), ("mesh", "routing")),
    (ONE, ("clients", 0)),
    (_with(ONE, clients=[{**CLIENT, "workload": {"kind": "continuous"}}]), ("clients", 0, "workload")),
    (
        _with(ONE, clients=[{**ASKED[0], "commands": {"workload": ALARMS}}], server={"controller": "rfc7252"}),
        ("clients", 0, "commands"),
    ),
    (
        _with(
            ONE,
            clients=[{**ASKED[0], "notifications": {"workload": STATE}}],
            server={"controller": "rfc7252"},
            run={"for": "1 h"},
        ),
        ("clients", 0, "notifications"),
    ),
    (LOSSY, ("clients", 0, "transport")),
    (_with(ONE, server={}), ("server",)),
    (_with(ONE, timeline=[{"kind": "restart", "at": "1 min"}]), ("timeline", 0)),
    (_with(ONE, run={}), ("run",)),
]

#: Keys that are not written out, because another key says what they are, with a value that is not the default.
OPEN = {"recovery": "inflation", "rto_min": "1 s"}

_TABLE = re.compile(r"^\| key\b[^|]*\| default \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_APART = re.compile(r"[,;] (?=(?:[^`]*`[^`]*`)*[^`]*$)")
_LITERAL = re.compile(r"(?:`([\"\[{][^`]*|true|false)`|(\d+))(?: \(.*\))?")

#: Of what a kind chooses: a scenario that may have it, where it stands in it, and what it cannot do without.
KINDS: dict[str, tuple[dict[str, Any], tuple[str | int, ...], dict[str, Any]]] = {
    "aqm": (ONE, ("path", "uplink", "aqm"), {}),
    "transfer": (_with(ONE, clients=[{"count": 1, **ASKED[0]}]), ("clients", 0, "transfer"), {"size": "64 B"}),
}
_KINDS = re.compile(r"^\| `kind`(?: of `(\w+)`)? \| keys \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
_KEY = re.compile(r"`(\w+) = ([^`]+)`")


def literals(rows: str) -> Iterator[tuple[str, Any]]:
    """The keys of a table whose default is a value, with that value."""
    for row in rows.splitlines():
        names, default = re.split(r"(?<!\\) \| ", row.strip("| "))[:2]
        keys = re.findall(r"`(\w+)`", names)
        told = _APART.split(default)
        if len(told) not in (1, len(keys)):
            continue  # it is told in words
        for key, one in zip(keys, told * len(keys) if len(told) == 1 else told, strict=True):
            if (found := _LITERAL.fullmatch(one)) is not None:
                yield key, parse(f"value = {found[1] or found[2]}", "scenario.md")["value"]


def _set(scenario: dict[str, Any], place: tuple[str | int, ...], key: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(scenario)
    table: Any = changed
    for part in place:
        table = table[part]
    table[key] = value
    return changed


def of_kinds() -> Iterator[Any]:
    """The keys of each kind whose default stands behind them, as further cases."""
    for heading in _KINDS.finditer(PAGE):
        name = heading[1] or re.findall(r"^### `(\w+)`$", PAGE[: heading.start()], re.MULTILINE)[-1]
        for row in heading[2].splitlines() if name in KINDS else []:
            scenario, place, least = KINDS[name]
            kind = row.split('"')[1]
            chosen = _set(scenario, place[:-1], str(place[-1]), {"kind": kind, **least})
            for key, written in _KEY.findall(row):
                value = parse(f"value = {written}", "scenario.md")["value"]
                yield pytest.param(chosen, place, key, value, id=f"{name} {kind}.{key}")


CASES = [
    *(
        pytest.param(scenario, place, key, value, id=f"{'.'.join(map(str, place))}.{key}")
        for (scenario, place), rows in zip(TABLES, _TABLE.findall(PAGE), strict=True)
        for key, value in literals(rows)
    ),
    *of_kinds(),
]


def meant(scenario: dict[str, Any], key: str) -> object:
    """What a scenario says with every default written out; how it runs where a key stays open."""
    built = scenarios.build(scenario, "test.toml")
    if key not in OPEN:
        return built.to_json()
    outcome = _engine.Batch([(built, 1, 0)]).next()
    assert outcome is not None
    return pa.table(outcome.tables()["flows"])


@pytest.mark.parametrize(("scenario", "place", "key", "value"), CASES)
def test_a_key_at_its_default_changes_nothing(
    scenario: dict[str, Any], place: tuple[str | int, ...], key: str, value: Any
) -> None:
    assert meant(_set(scenario, place, key, value), key) == meant(scenario, key)


@pytest.mark.parametrize(("key", "other"), OPEN.items())
def test_a_run_shows_what_a_key_that_is_not_written_out_is(key: str, other: str) -> None:
    scenario, place = next(table for table in TABLES if "transport" in table[1])
    assert meant(_set(scenario, place, key, other), key) != meant(scenario, key)


def test_most_keys_have_a_default_that_is_a_value() -> None:
    assert len(CASES) >= 60
