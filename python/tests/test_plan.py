from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import small_study

from millpond.controllers.own import OwnControllers
from millpond.errors import UsageError
from millpond.plan import extra_algorithms, study
from millpond.plan.study import Plan
from millpond.results.directory import Cell
from millpond.studies import reproduction


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return study.load(small_study.write(tmp_path / "small"))


def cells(plan: Plan) -> dict[str, Cell]:
    return {planned.cell.id: planned.cell for planned in study.unfold(plan).cells}


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
        found["cocoa-10-2500-continuous-two-host-as-typed"],
        found["cocoa-400-2500-random-four-host-176-as-meant"],
    )
    told = [tuple(cell.scenario["path"]["downlink"][key] for key in ("queue", "rate")) for cell in (two, four)]
    assert told == [("2500 packets", "240 kbit/s"), ("2500 B", "30 kbit/s")]
    assert four.scenario["server"]["payload"] == "176 B"
    (clients,) = four.scenario["clients"]
    assert (clients["count"], clients["controller"], clients["workload"]) == (400, "cocoa-03", "random")


def test_a_column_that_a_matrix_does_not_list_is_the_usual_one(plan: Plan) -> None:
    two = cells(plan)["cocoa-10-2500-continuous-two-host-as-typed"]
    assert two.columns["payload"] == 68
    assert two.scenario["server"]["payload"] == "68 B"


def test_each_matrix_has_a_scenario_of_its_own(plan: Plan) -> None:
    found = cells(plan)
    assert found["cocoa-10-2500-continuous-two-host-as-typed"].scenario["path"]["uplink"]["queue"] == "2000 B"
    assert found["cocoa-400-2500-random-four-host-176-as-meant"].scenario["path"]["uplink"]["queue"] == "3000 B"


def test_the_most_crowded_cells_of_each_place_are_traced_if_wanted(plan: Plan) -> None:
    traced = [planned.cell for planned in study.unfold(plan).cells if planned.traced]
    assert {(c.columns["clients"], c.columns["buffer_bytes"], c.columns["payload"]) for c in traced} == {
        (400, 28200, 176)
    }
    assert {cell.columns["path"] for cell in traced} == {"as-typed"}


def test_quick_keeps_what_the_plan_names(plan: Plan) -> None:
    quick = plan.quick()
    assert quick.replications == 1
    assert {(c.columns["config"], c.columns["buffer_bytes"]) for c in cells(quick).values()} == {("four-host", 28200)}


def test_the_first_entry_of_a_path_that_covers_a_cell_counts(tmp_path: Path) -> None:
    more = '[[path]]\nname = "as-typed"\nonly = { payload = [176] }\n'
    more += '[path.set]\n"path.downlink.queue" = "{payload} kB"\n\n'
    text = small_study.PLAN.replace("[[path]]", f"{more}[[path]]", 1)
    found = cells(study.load(small_study.write(tmp_path / "small", text)))
    queues = {f"four-host-{n}": found[f"cocoa-10-2500-random-four-host-{n}-as-typed"].scenario for n in (68, 176)}
    assert [tree["path"]["downlink"]["queue"] for tree in queues.values()] == ["2500 packets", "176000 B"]


def test_a_path_that_names_no_column_is_refused(tmp_path: Path) -> None:
    text = small_study.PLAN.replace('"{buffer_bytes} packets"', '"{buffer} packets"')
    plan = study.load(small_study.write(tmp_path / "small", text))
    with pytest.raises(UsageError, match=r"path as-typed: path.downlink.queue: '\{buffer\} packets' names no factor"):
        study.unfold(plan)


def test_clients_asked_for_are_run_once_whatever_the_number_of_matrices(plan: Plan) -> None:
    narrow = plan.narrowed(factors={"clients": [7]}, controllers=["cocoa-03"])
    assert {cell.columns["clients"] for cell in cells(narrow).values()} == {7}
    assert {cell.columns["algorithm"] for cell in cells(narrow).values()} == {"cocoa"}


def test_an_algorithm_may_be_a_transport_and_further_keys(tmp_path: Path) -> None:
    text = small_study.PLAN.replace(
        '[algorithms.cocoa]\nlabel = "CoCoA"\ncontroller = "cocoa-03"',
        '[algorithms.cocoa]\ntransport = { congestion = "bbr" }\n'
        '[algorithms.bursts]\ncontroller = "rfc7252"\ntransfer = "bursts"',
    )
    folder = small_study.write(tmp_path / "small", text)
    scenario = small_study.SCENARIO.replace("count = 1", 'count = 1\ntransport = { kind = "tcp" }')
    for name in ("scenario.toml", "other.toml"):
        (folder / name).write_text(scenario)
    plan = study.load(folder)
    found = cells(plan.narrowed(controllers=["cocoa"]))["cocoa-10-2500-continuous-two-host-as-typed"].scenario
    # tables are merged, and there is no controller left
    assert "controller" not in found["clients"][0]
    assert (found["clients"][0]["transport"]["kind"], found["clients"][0]["transport"]["congestion"]) == ("tcp", "bbr")
    # a preset asked for by its name is the plain algorithm, not one with further keys
    assert plan.named("rfc7252") == "default"


def test_a_guest_joins_only_matrices_that_have_controllers(tmp_path: Path) -> None:
    text = small_study.PLAN.replace(
        '[algorithms.cocoa]\nlabel = "CoCoA"\ncontroller', '[algorithms.cocoa]\ntransport = "tcp"\ncontroller'
    ).replace('algorithm = ["default", "cocoa"]', 'algorithm = ["cocoa"]', 1)
    plan = study.load(small_study.write(tmp_path / "small", text))
    invited, names = extra_algorithms.added(plan, ["fasor"], OwnControllers())
    assert names == ["fasor"]
    assert [matrix.values["algorithm"] for matrix in invited.matrices] == [("cocoa",), ("default", "cocoa", "fasor")]


def test_an_algorithm_that_the_small_version_leaves_out_can_be_asked_for(tmp_path: Path) -> None:
    text = small_study.PLAN.replace("[quick]", '[quick]\nalgorithm = ["default"]')
    plan = study.load(small_study.write(tmp_path / "small", text)).quick()
    assert plan.algorithms == ("default",)
    invited, names = extra_algorithms.added(plan, ["cocoa-03"], OwnControllers())
    asked = invited.narrowed(controllers=names)
    assert asked.algorithms == ("cocoa",)


def test_a_path_changes_the_clients_after_their_algorithm(tmp_path: Path) -> None:
    change = '"clients[0].transport.delayed_acks" = "linux"\n"path.downlink.queue" = "{buffer_bytes} B"'
    text = small_study.PLAN.replace('"path.downlink.queue" = "{buffer_bytes} B"', change).replace(
        'controller = "cocoa-03"', 'transport = { kind = "tcp", delayed_acks = "as-printed" }'
    )
    plan = study.load(small_study.write(tmp_path / "small", text))
    found = cells(plan.narrowed(controllers=["cocoa"]))
    acks = [
        found[f"cocoa-10-2500-random-four-host-68-{path}"].scenario["clients"][0]["transport"]["delayed_acks"]
        for path in ("as-typed", "as-meant")
    ]
    assert acks == ["as-printed", "linux"]


def test_workloads_may_be_names_for_what_they_set(tmp_path: Path) -> None:
    text = small_study.PLAN.replace(
        '[vary.workload]\nplaces = ["clients[0].workload"]',
        '[vary.workload.set.continuous]\n"clients[0].exchanges" = 1\n[vary.workload.set.random]',
    )
    found = cells(study.load(small_study.write(tmp_path / "small", text)))
    tree = found["cocoa-10-2500-continuous-two-host-as-typed"].scenario
    assert (tree["clients"][0]["count"], tree["clients"][0]["exchanges"]) == (10, 1)


def test_every_cell_that_is_covered_is_traced_unless_the_plan_asks_for_the_largest(tmp_path: Path) -> None:
    text = small_study.PLAN.replace('largest = ["clients", "buffer_bytes"]\n', "")
    plan = study.load(small_study.write(tmp_path / "small", text))
    traced = [planned.cell for planned in study.unfold(plan).cells if planned.traced]
    assert {(c.columns["clients"], c.columns["buffer_bytes"]) for c in traced} == {
        (n, size) for n in (10, 400) for size in (2500, 28200)
    }
    assert {(c.columns["payload"], c.columns["path"]) for c in traced} == {(176, "as-typed")}


def test_reasons_why_rows_are_not_measured_are_told_by_row(tmp_path: Path) -> None:
    text = small_study.PLAN + '\n[reading.unmeasured]\n"one flow\'s story" = ["idle_time", "x-r7"]\n'
    plan = study.load(small_study.write(tmp_path / "small", text))
    assert plan.reading.unmeasured == {"idle_time": "one flow's story", "x-r7": "one flow's story"}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            'config = ["two-host"]',
            'confg = ["two-host"]',
            "factor 'confg' touches no place: ",
        ),
        ('config = ["two-host"]', 'config = ["to-host"]', "unknown value 'to-host': did you mean 'two-host'"),
        ("payload = [68, 176]", "payload = [[68]]", "matrix[1].payload[0]: expected a number or text, found [68]"),
        ('only = { config = ["four', 'only = { confg = ["four', "unknown factor 'confg': did you mean 'config'"),
        ("only = { payload", "only = { paylod", "unknown factor 'paylod': did you mean 'payload'"),
        ('write = "{} B"', 'writ = "{} B"', "unknown key 'writ': did you mean 'write'"),
        (
            'write = "{} B"',
            'write = "{size} B"',
            "vary.payload.write: '{size} B' does not say where the value goes: write {} there",
        ),
        ("[quick]\n", "[vary.colour]\n[quick]\n", "vary.colour: changes nothing"),
        (
            'controller = "cocoa-03"',
            'transfer = "whole"',
            "algorithms.cocoa.controller: expected the name of a preset or a table, or else a `transport`",
        ),
        ("payload = [68, 176]", "payload = [68, 176, 68]", "matrix[1].payload: 68 stands there twice: leave one out"),
    ],
)
def test_a_slip_names_the_place(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in small_study.PLAN
    folder = small_study.write(tmp_path / "small", small_study.PLAN.replace(before, after, 1))
    with pytest.raises(UsageError) as caught:
        study.unfold(study.load(folder))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plan_without_a_small_version_says_so() -> None:
    known = study.load({"scenario": {"clients": []}, "matrix": {"clients[0].count": [1, 2]}})
    with pytest.raises(UsageError, match=r"--quick: plan has no \[quick\]: .*replications = 2"):
        known.quick()


@pytest.mark.parametrize("place", ["top", "matrix"])
def test_replications_count_for_nothing_beside_sites(place: str) -> None:
    tree = {"scenario": {"clients": []}, "matrix": {"clients[0].count": [1]}, "replications": 5}
    (tree if place == "top" else tree["matrix"])["sites"] = 3  # type: ignore[index]
    with pytest.raises(UsageError, match=r"plan: replications: .* counts sites.*leave one of the two out"):
        study.load(tree)


def test_a_plan_may_ask_for_the_page_of_a_study(tmp_path: Path) -> None:
    file = small_study.write(tmp_path / "small") / study.PLAN
    text = file.read_text()
    file.write_text(f'page = "echo"\n{text}')
    assert study.unfold(study.load(file.parent)).page == "echo"
    file.write_text(f'page = "eco"\n{text}')
    with pytest.raises(UsageError, match=r"plan\.toml: page: unknown page 'eco': did you mean 'echo'"):
        reproduction.check(study.load(file.parent))
