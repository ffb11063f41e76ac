"""Factors under any names: where they go, what is refused, and how they are spoken of."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_sweep

from millpond.errors import UsageError
from millpond.plan import study
from millpond.plan.program import Program


def unfolded(folder: Path, text: str) -> Program:
    return study.unfold(study.load(small_sweep.write(folder, text)))


def test_any_name_is_a_factor_and_goes_where_the_plan_says(tmp_path: Path) -> None:
    program = unfolded(tmp_path, small_sweep.PLAN)
    cell = program.cells[3].cell
    assert cell.columns == {"algorithm": "rfc7252", "queue": "8 kB", "clients[0].count": 12, "path": "fixed"}
    assert cell.scenario["path"]["uplink"]["queue"] == cell.scenario["path"]["downlink"]["queue"] == "8000 B"
    assert cell.scenario["clients"][0]["count"] == 12
    assert program.factors["queue"].title == "buffer"


def test_a_factor_without_a_table_goes_to_the_only_key_of_its_name(tmp_path: Path) -> None:
    text = small_sweep.PLAN.replace('queue = ["1 kB", "8 kB"]', "max_retransmit = [1, 4]").replace(
        "exchanges = 3", "exchanges = 3\ncount = 1"
    )
    text = text.replace('[vary.queue]\nplaces = ["path.uplink.queue", "path.downlink.queue"]\nlabel = "buffer"\n', "")
    found = {p.cell.columns["max_retransmit"]: p.cell.scenario["clients"][0] for p in unfolded(tmp_path, text).cells}
    assert {value: table["max_retransmit"] for value, table in found.items()} == {1: 1, 4: 4}


def test_without_algorithms_the_scenarios_own_controllers_are_run(tmp_path: Path) -> None:
    text = small_sweep.PLAN.replace('algorithm = ["rfc7252", "cocoa-03"]\n', "")
    cells = [planned.cell for planned in unfolded(tmp_path, text).cells]
    assert {cell.columns["algorithm"] for cell in cells} == {"rfc7252"}
    assert [cell.id for cell in cells][:2] == ["1 kB-2-fixed", "1 kB-12-fixed"]


def test_replications_may_differ_by_matrix(tmp_path: Path) -> None:
    text = small_sweep.PLAN.replace("[matrix]", "[[matrix]]").replace(
        "[vary.queue]", '[[matrix]]\nreplications = 5\nqueue = ["4 kB"]\n"clients[0].count" = [1]\n[vary.queue]'
    )
    program = unfolded(tmp_path, text)
    assert [p.cell.replications for p in program.cells] == [2] * 8 + [5]
    assert [p.cell.first_run for p in program.cells] == [*range(0, 18, 2)]
    assert program.runs == 21
    assert len(program.seeds) == 5
    # the cells of few replications have the first of the same seeds
    assert program.seeds[:2] == unfolded(tmp_path, small_sweep.PLAN).seeds


def test_every_group_of_a_scenario_gets_the_algorithm(tmp_path: Path) -> None:
    text = small_sweep.PLAN + '[[scenario.clients]]\ncount = 1\ncontroller = "fasor"\nexchanges = 1\n'
    groups = unfolded(tmp_path, text).cells[-1].cell.groups
    assert [(group.algorithm, group.count) for group in groups] == [("cocoa-03", 12), ("cocoa-03", 1)]
    assert len({group.label for group in groups}) == 2


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("[vary.queue]", "[vary.other]", "vary.other: unknown factor 'other': known: algorithm, queue"),
        (
            '[vary.queue]\nplaces = ["path.uplink.queue", "path.downlink.queue"]\nlabel = "buffer"\n',
            "",
            "factor 'queue' touches no place: it may mean path.uplink.queue or path.downlink.queue",
        ),
        ("clients[0].count", "clients[3].count", "clients[3].count: no entry '3' there: known: 0"),
        ('"cocoa-03"]', '"cocoa-03"]\ndepth = [1]', "factor 'depth' touches no place"),
        ('places = ["path.uplink.queue", "path.downlink.queue"]\n', "", "vary.queue: changes nothing"),
        ('label = "buffer"', 'lable = "buffer"', "vary.queue: unknown key 'lable': did you mean 'label'?"),
        ('label = "buffer"', 'scale = "loog"', "vary.queue.scale: "),
        ('label = "buffer"', "label = 7", "vary.queue.label: expected text, found 7"),
        ("replications = 2", "replications = 0", "replications: expected a whole number >= 1, found 0"),
        ("replications = 2", "replications = 99999999999", "expected a whole number <= 1000000, found 99999999999"),
        ("replications = 2", 'bottleneck = "uplnk"', "bottleneck: unknown link 'uplnk': did you mean 'uplink'?"),
        ("replications = 2", 'name = "../queues"', "name: '../queues' is no name for a folder"),
        (
            "[matrix]",
            '[vary.depth]\nplaces = ["path.uplink.queue"]\n[matrix]\ndepth = ["2 kB"]',
            "factors 'depth' and 'queue' both set path.uplink.queue",
        ),
        ("replications = 2", 'replications = "2"', "replications: expected a whole number, found '2'"),
        ("queue = [", 'path = ["a"]\nqueue = [', "matrix.path: no name for a factor"),
        ("queue = [", "size = []\nqueue = [", "matrix.size: an empty list makes no cells"),
        ('"rfc7252", "cocoa-03"]', '"rfc7253"]', "unknown algorithm 'rfc7253': did you mean 'rfc7252'?"),
        ("[2, 12]", "[2, 0]", "0 clients send nothing"),
        ("[vary.queue]", "[trace]\nlargest = ['depth']\n[vary.queue]", "trace.largest: unknown factor 'depth'"),
        ("[vary.queue]", "[trace]\ntables = ['queues']\n[vary.queue]", "unknown trace 'queues': did you mean 'queue'?"),
        (
            "[vary.queue]",
            "[quick]\nqueu = ['1 kB']\n[vary.queue]",
            "quick: unknown factor 'queu': did you mean 'queue'?",
        ),
    ],
)
def test_a_slip_is_one_line_that_names_file_and_place(tmp_path: Path, before: str, after: str, told: str) -> None:
    assert before in small_sweep.PLAN
    with pytest.raises(UsageError) as caught:
        unfolded(tmp_path, small_sweep.PLAN.replace(before, after, 1))
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "queues.toml"))
    assert "\n" not in str(caught.value)
