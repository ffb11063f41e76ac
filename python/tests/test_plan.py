from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import small_study
from fake_engine import FakeEngine

from millpond import study
from millpond.errors import UsageError
from millpond.results import Cell
from millpond.study import Plan


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return study.load(small_study.write(tmp_path / "small"))


def cells(plan: Plan) -> dict[str, Cell]:
    return {planned.cell.id: planned.cell for planned in study.unfold(plan, FakeEngine()).cells}


def test_every_matrix_is_unfolded_on_the_paths_that_cover_it(plan: Plan) -> None:
    found = Counter((cell.columns["config"], cell.columns["path"]) for cell in cells(plan).values())
    assert found == {
        ("two-host", "as-typed"): 2 * 2,  # buffers, algorithms
        ("four-host", "as-typed"): 2 * 2 * 2 * 2 * 2,  # payloads, clients, buffers, workloads, algorithms
        ("four-host", "as-meant"): 2 * 2 * 2 * 2 * 2,
    }


def test_columns_change_the_scenario_and_a_path_has_the_last_word(plan: Plan) -> None:
    found = cells(plan)
    two, four = (
        found["cocoa-continuous-10-2500-two-host-as-typed"],
        found["cocoa-random-400-2500-four-host-176-as-meant"],
    )
    assert two.scenario["path"]["downlink"] == {"queue": "2500 packets", "rate": "240 kbit/s"}
    assert four.scenario["path"]["downlink"] == {"queue": "2500 B", "rate": "30 kbit/s"}
    assert four.scenario["server"]["payload"] == "176 B"
    assert four.scenario["clients"] == [{"count": 400, "controller": "cocoa-03", "workload": "random"}]


def test_a_column_that_a_matrix_does_not_list_is_the_usual_one(plan: Plan) -> None:
    two = cells(plan)["cocoa-continuous-10-2500-two-host-as-typed"]
    assert two.columns["payload"] == 68
    assert two.scenario["server"]["payload"] == "68 B"


def test_each_matrix_has_a_scenario_of_its_own(plan: Plan) -> None:
    found = cells(plan)
    assert found["cocoa-continuous-10-2500-two-host-as-typed"].scenario["path"]["uplink"]["queue"] == "1 B"
    assert found["cocoa-random-400-2500-four-host-176-as-meant"].scenario["path"]["uplink"]["queue"] == "2 B"


def test_the_most_crowded_cells_of_each_place_are_traced_if_wanted(plan: Plan) -> None:
    traced = [planned.cell for planned in study.unfold(plan, FakeEngine()).cells if planned.traced]
    assert {(c.columns["clients"], c.columns["buffer_bytes"], c.columns["payload"]) for c in traced} == {
        (400, 28200, 176)
    }
    assert {cell.columns["path"] for cell in traced} == {"as-typed"}


def test_quick_keeps_what_the_plan_names(plan: Plan) -> None:
    quick = plan.quick()
    assert quick.replications == 1
    assert {(c.columns["config"], c.columns["buffer_bytes"]) for c in cells(quick).values()} == {("four-host", 28200)}


def test_the_first_entry_of_a_path_that_covers_a_cell_counts(tmp_path: Path) -> None:
    more = (
        '[[path]]\nname = "as-typed"\nonly = { payload = [176] }\n[path.set]\n"path.downlink.queue" = "{payload} B"\n\n'
    )
    text = small_study.PLAN.replace("[[path]]", f"{more}[[path]]", 1)
    found = cells(study.load(small_study.write(tmp_path / "small", text)))
    queues = {f"four-host-{n}": found[f"cocoa-random-10-2500-four-host-{n}-as-typed"].scenario for n in (68, 176)}
    assert [tree["path"]["downlink"]["queue"] for tree in queues.values()] == ["2500 packets", "176 B"]


def test_a_path_that_names_no_column_is_refused(tmp_path: Path) -> None:
    text = small_study.PLAN.replace('"{buffer_bytes} packets"', '"{buffer} packets"')
    plan = study.load(small_study.write(tmp_path / "small", text))
    with pytest.raises(UsageError, match=r"path as-typed: path.downlink.queue: '\{buffer\} packets' names no column"):
        study.unfold(plan, FakeEngine())


def test_clients_asked_for_are_run_once_whatever_the_number_of_matrices(plan: Plan) -> None:
    narrow = plan.narrowed(clients=[7], controllers=["cocoa-03"])
    assert {cell.columns["clients"] for cell in cells(narrow).values()} == {7}
    assert {cell.columns["algorithm"] for cell in cells(narrow).values()} == {"cocoa"}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            'config = ["two-host"]',
            'confg = ["two-host"]',
            "matrix[0].confg: unknown column 'confg': did you mean 'config'",
        ),
        ('config = ["two-host"]', 'config = ["to-host"]', "unknown value 'to-host': did you mean 'two-host'"),
        ("payload = [68, 176]", "payload = [[68]]", "matrix[1].payload: expected numbers or texts, found [68]"),
        ('only = { config = ["four', 'only = { confg = ["four', "unknown column 'confg': did you mean 'config'"),
        ("only = { payload", "only = { paylod", "unknown column 'paylod': did you mean 'payload'"),
        ('write = "{} B"', 'writ = "{} B"', "unknown key 'writ': did you mean 'write'"),
        (
            'write = "{} B"',
            'write = "{size} B"',
            "vary.payload.write: '{size} B' does not say where the value goes: {}",
        ),
        ("[vary.config.set.four-host]\n", "[vary.colour]\n", "vary.colour: changes nothing"),
    ],
)
def test_a_slip_names_the_place(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in small_study.PLAN
    folder = small_study.write(tmp_path / "small", small_study.PLAN.replace(before, after, 1))
    with pytest.raises(UsageError) as caught:
        study.load(folder)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
