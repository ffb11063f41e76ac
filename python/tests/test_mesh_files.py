"""Meshes from files and drawn: where nodes stand, bad lines named, the tree in letters and as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan import study
from millpond.show.mesh import sheet, terminal
from millpond.show.mesh.nodes import Node, told
from millpond.studies.reproduction import kept_files

NODES = "name,x,y,role\nroot,0,0,border-router\na,10,0,\nb,20,0,primary\nc,0,10,\n"
SCENARIO = """
[mesh]
topology = { kind = "list", file = "nodes.csv" }
[[clients]]
controller = "rfc7252"
request_payload = "30 B"
exchanges = 1
"""


def written(folder: Path, nodes: str = NODES) -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder / "scenario.toml"


def test_a_topology_is_read_from_the_file_beside_the_scenario(tmp_path: Path) -> None:
    built = scenarios.load(written(tmp_path))
    assert built.nodes(1) == [
        ("root", 0, 0, "border-router", None, 0),
        ("a", 10_000, 0, "device", "root", 1),
        ("b", 20_000, 0, "primary", "a", 2),
        ("c", 0, 10_000, "device", "root", 1),
    ]
    # what was read stays in the scenario, so that it can be run again without the file
    again = scenarios.in_full(built)
    (tmp_path / "nodes.csv").unlink()
    assert scenarios.build(again, "again").nodes(1) == built.nodes(1)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (NODES + "d;30;0\n", "nodes.csv, line 6: `d;30;0` is no node: write a name"),
        (NODES + "d,x,0\n", "nodes.csv, line 6: `x` is no place"),
        (NODES + "d,10,0\n", "nodes `a` and `d` stand in one place: move one of them"),
        (NODES + "d,50,0\n", "no way from node `d` to the border router"),
        (NODES.replace("primary", ""), "no sink: write sinks"),
        (NODES.replace("border-router", ""), "no border router: write border_router"),
        ("", "`nodes.csv` names no node: write a line"),
    ],
)
def test_a_bad_topology_is_refused_in_one_line(tmp_path: Path, nodes: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        scenarios.load(written(tmp_path, nodes))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    (tmp_path / "nodes.csv").unlink()
    with pytest.raises(UsageError, match=r"nodes\.csv: no such file"):
        scenarios.load(file)


def test_ranges_of_zero_are_refused(tmp_path: Path) -> None:
    tree = scenarios.load_tree(written(tmp_path))
    for key in ("range", "interference"):
        with pytest.raises(UsageError, match=f"mesh.{key}: 0 m "):
            scenarios.build(scenarios.with_changes(tree, {f"mesh.{key}": "0 m"}), "zero")


def test_a_plan_keeps_the_map_that_its_scenario_names(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "plan.toml").write_text('scenario = "scenario.toml"\n[matrix]\nalgorithm = ["rfc7252", "cocoa-03"]\n')
    kept = kept_files(study.load(tmp_path))
    assert kept["study/nodes.csv"] == tmp_path / "nodes.csv"


def test_another_topology_brings_its_own_number_of_clients(tmp_path: Path) -> None:
    grid = study.STUDIES / "cocoaplus15" / "constant.toml"
    for topology, nodes in (("grid-7x7", 49), ("chain-17", 17)):
        text = sheet.drawn(grid, {"mesh.topology": topology}, 1)
        assert f"{nodes} nodes: {nodes - 3} devices, border router" in text
    (tmp_path / "other.csv").write_text(NODES + "e,30,0,\n")
    text = sheet.drawn(written(tmp_path), {"mesh.topology.file": str(tmp_path / "other.csv")}, 1)
    assert "5 nodes: 3 devices" in text


def test_a_mesh_is_drawn_in_letters_with_its_tree(tmp_path: Path) -> None:
    assert sheet.drawn(written(tmp_path), {}, 1).splitlines() == [
        "o",
        "│",
        "B─────o─────P",
        "",
        "o device, B border router, P primary; lines lead to the border router",
        "4 nodes: 2 devices, border router root, primary b; at most 2 hops to the border router",
    ]


def test_a_tree_that_rpl_found_is_drawn_as_the_run_begins_with_it(tmp_path: Path) -> None:
    scenario = written(tmp_path)
    drawn = sheet.drawn(scenario, {"mesh.routing": "rpl"}, 1).splitlines()
    # there is one tree only
    assert drawn == sheet.drawn(scenario, {}, 1).splitlines()
    nobody = sheet.drawn(scenario, {"mesh.routing": {"kind": "rpl", "idle_start": "0 s"}}, 1).splitlines()
    assert nobody[-1].endswith("at most 0 hops to the border router; 3 have not joined")
    assert nobody[2] == "B     o     P"


def test_many_nodes_stay_within_a_terminal() -> None:
    nodes = [Node(str(n), n * 7.3 % 100, n * 3.1 % 60, "device", str(n - 1) if n else None, n) for n in range(300)]
    lines = terminal.drawn(nodes).splitlines()[:-3]
    assert len(lines) <= terminal.HEIGHT
    assert max(map(len, lines)) <= terminal.WIDTH
    assert told(nodes).startswith("300 nodes: 300 devices;")


def test_a_mesh_is_drawn_into_a_file(tmp_path: Path) -> None:
    picture = tmp_path / "mesh.svg"
    assert sheet.drawn(written(tmp_path), {}, 1, picture).endswith(f"drawn: {picture}")
    text = picture.read_text()
    assert text.startswith("<?xml") or "<svg" in text[:300]
    assert "border router" in text


def test_a_scenario_without_a_mesh_is_not_drawn() -> None:
    first = study.STUDIES.parent / "first.toml"
    with pytest.raises(UsageError, match=r"has no \[mesh\]"):
        sheet.drawn(first, {}, 1)
