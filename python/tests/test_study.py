from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

import millpond
from millpond.errors import UsageError
from millpond.plan import study
from millpond.plan.study import STUDIES, Plan


def test_the_matrix_is_whole(plan: Plan) -> None:
    program = study.unfold(plan)
    cells = [planned.cell for planned in program.cells]
    kinds = Counter((cell.mixed, cell.columns["path"]) for cell in cells)
    assert kinds == {
        (False, "fixed"): 6 * 4 * 2 * 6,  # clients, buffers, workloads, algorithms
        (False, "jittered"): 3 * 1 * 2 * 6,  # 100, 200 and 400 clients at 2500 B
        (True, "fixed"): 4 * 2 * 2 * 2,  # pairs, clients, buffers, workloads
    }
    assert program.runs == len(cells) * 20
    assert [cell.first_run for cell in cells] == [20 * number for number in range(len(cells))]
    assert len({cell.id for cell in cells}) == len(cells)


def test_a_cell_says_in_its_scenario_what_its_columns_say(plan: Plan) -> None:
    program = study.unfold(plan)
    cells = {planned.cell.id: planned.cell for planned in program.cells}
    cell = cells["cocoa-400-2500-random-jittered"]
    tree = cell.scenario
    assert tree["path"]["downlink"]["queue"] == tree["path"]["uplink"]["queue"] == "2500 B"
    assert tree["path"]["downlink"]["delay"] == "400 ms"
    assert tree["path"]["downlink"]["jitter"] == {"from": "10 ms", "to": "20 ms", "order": "preserved"}
    assert tree["clients"][0]["count"] == 400
    assert tree["clients"][0]["workload"] == "random"
    assert tree["clients"][0]["max_retransmit"] == 20
    mixed = cells["default+default_fb1-200-1410000-continuous-fixed"]
    assert [group.count for group in mixed.groups] == [100, 100]
    assert [table["controller"]["preset"] for table in mixed.scenario["clients"]] == ["rfc7252", "default-fb1"]


def test_every_algorithm_meets_the_same_random_streams(plan: Plan) -> None:
    program = study.unfold(plan)
    assert program.seeds == tuple(study.seed("anrw18", r) for r in range(20))
    assert len(set(program.seeds)) == 20
    assert all(0 <= seed < 2**53 for seed in program.seeds)
    assert study.seed("anrw18", 0) != study.seed("upc19", 0)


def test_more_replications_keep_the_first_seeds(plan: Plan) -> None:
    few = study.unfold(plan.narrowed(replications=3))
    assert few.seeds == study.unfold(plan).seeds[:3]


def test_quick_still_holds_the_collapse(plan: Plan) -> None:
    quick = plan.quick()
    assert quick.replications < plan.replications
    assert 400 in quick.values("clients")
    assert 1410000 in quick.values("buffer_bytes")


def test_the_collapse_is_traced_once_an_algorithm_and_workload(plan: Plan) -> None:
    traced = [planned.cell for planned in study.unfold(plan).cells if planned.traced]
    assert {(cell.columns["clients"], cell.columns["buffer_bytes"]) for cell in traced} == {(400, 1410000)}
    assert len(traced) == 6 * 2


def test_options_narrow_the_plan(plan: Plan) -> None:
    small = plan.narrowed(
        controllers=["cocoa", "rfc7252"], factors={"clients": [7], "buffer_bytes": [99]}, replications=2
    )
    program = study.unfold(small)
    assert {planned.cell.columns["algorithm"] for planned in program.cells} == {"cocoa", "default"}
    assert program.runs == 2 * 2 * 2


def test_the_hash_follows_what_is_run(plan: Plan) -> None:
    program = study.unfold(plan.narrowed(factors={"clients": [1]}, replications=2))
    again = study.unfold(plan.narrowed(factors={"clients": [1]}, replications=2))
    other = study.unfold(plan.narrowed(factors={"clients": [10]}, replications=2))
    assert program.hash == again.hash != other.hash


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"controllers": ["cocoaa"]}, "--controllers: unknown controller 'cocoaa': did you mean 'cocoa'? known:"),
        ({"factors": {"client": [1]}}, "--factor: unknown factor 'client': did you mean 'clients'?"),
        ({"factors": {"clients": ["many"]}}, "--factor clients: 'many' is no number"),
        ({"seed": -1}, "seed: -1 is out of range"),
        ({"replications": 0}, "--replications: 0"),
    ],
)
def test_senseless_options_are_refused(plan: Plan, options: dict[str, list[str]], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan.narrowed(**options)  # type: ignore[arg-type]
    assert told in str(caught.value)


def test_an_unknown_study_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="unknown study 'anrw81': did you mean 'anrw18'\\? known: anrw18"):
        study.find("anrw81")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("replications = 20", "replicatons = 20", "unknown key 'replicatons': did you mean 'replications'?"),
        ("clients = [1, 10, 50", 'clients = ["1", 10, 50', "matrix.clients: texts and numbers in one list"),
        ('"Default FB1"\ncontroller', '"Default FB1"\ncontroler', "algorithms.default_fb1.controller: expected"),
        ('"default_fb1", "default_fb2", "cocoa_fb1"', '"default_fb3", "cocoa_fb1"', "did you mean 'default_fb"),
        ("[matrix]", "[matrix", "plan.toml"),
    ],
)
def test_a_plan_with_a_slip_names_the_place(tmp_path: Path, before: str, after: str, told: str) -> None:
    folder = tmp_path / "anrw18"
    shutil.copytree(STUDIES / "anrw18", folder)
    text = (folder / "plan.toml").read_text()
    assert before in text
    (folder / "plan.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(UsageError) as caught:
        study.load(folder)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


TOGETHER = """
name = "together"
scenario = "scenario.toml"
replications = 1
[matrix]
clients = [7]
algorithm = ["rfc7252", "cocoa-03"]
[vary.clients]
places = ["clients[0].count"]
[[mix]]
algorithms = ["rfc7252", "cocoa-03"]
"""
RHYTHM = """
path = "nbiot-anrw18"
[[clients]]
count = 7
controller = "rfc7252"
workload = [ { kind = "periodic", period = { together = "1.5 s" }, for = "600 s" } ]
"""


def test_populations_of_a_mix_offer_together_what_all_alike_do(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(TOGETHER, encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(RHYTHM, encoding="utf-8")
    arrivals = {}
    for planned in study.unfold(study.load(tmp_path / "plan.toml")).cells:
        done = millpond.run(planned.cell.scenario, out=tmp_path / planned.cell.id, report=False)
        (arrivals[planned.cell.mixed, planned.cell.id],) = done.table("runs").column("arrivals").to_pylist()
    # In 600 s each of seven clients has a beat every 10.5 s.
    assert len(arrivals) == 3
    assert all(7 * 57 <= requests <= 7 * 58 for requests in arrivals.values()), arrivals
