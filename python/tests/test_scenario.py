from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import UsageError
from millpond.plan import scenario
from millpond.plan.study import STUDIES

TREE = {"path": {"uplink": {"queue": "1 B"}}, "clients": [{"count": 1}, {"count": 2}]}


def test_changes_go_to_their_places_and_leave_the_original() -> None:
    changed = scenario.with_changes(
        TREE, {"path.uplink.queue": "9 B", "path.downlink.rate": "1 bit/s", "clients.1.count": 7}
    )
    assert changed == {
        "path": {"uplink": {"queue": "9 B"}, "downlink": {"rate": "1 bit/s"}},
        "clients": [{"count": 1}, {"count": 7}],
    }
    assert TREE["path"] == {"uplink": {"queue": "1 B"}}


def test_a_change_below_a_named_path_is_laid_over_its_profile() -> None:
    tree = {"path": "nbiot-anrw18", "clients": [{"count": 1, "controller": "rfc7252"}]}
    changed = scenario.with_changes(tree, {"path.uplink.queue": "20 kB"})
    full = scenario.in_full(scenario.build(changed, "changed"))
    named = scenario.in_full(scenario.build(tree, "named"))
    assert (full["path"]["uplink"]["queue"], named["path"]["uplink"]["queue"]) == ("20000 B", "14100 B")
    assert full["path"]["downlink"] == named["path"]["downlink"]


def test_the_scenario_of_the_study_is_a_scenario() -> None:
    loaded = scenario.load(STUDIES / "anrw18" / "scenario.toml")
    assert loaded.clients == 1
    full = scenario.in_full(loaded)
    assert full["path"]["header"] == "28 B"
    again = scenario.build(full, "again")
    assert again.to_json() == loaded.to_json()


def test_a_slip_is_one_line_with_the_place(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    text = (STUDIES / "anrw18" / "scenario.toml").read_text()
    file.write_text(text.replace("max_retransmit", "max_retransmitt"))
    with pytest.raises(UsageError, match=r"s\.toml:\d+: unknown key `max_retransmitt`: did you mean `max_retransmit`"):
        scenario.load(file)
