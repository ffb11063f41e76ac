"""Millpond in a notebook: the example of the manual, the notebook that ships, and classes that were typed in."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import millpond
from millpond import UsageError
from millpond.results.directory import Results
from millpond.run import verify

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PLAN: dict[str, Any] = {
    "scenario": {"path": "nbiot-anrw18", "clients": [{"count": 2, "controller": "rfc7252", "exchanges": 3}]},
    "matrix": {"clients[0].count": [2, 4]},
    "replications": 3,
}
CELL = """
import math
import millpond

FACTOR = 2

def longer(wait):
    return FACTOR * wait

class Mine(millpond.Controller):
    def on_start(self, exchange, length, cx):
        return math.ceil(3e6)

    def on_timeout(self, exchange, cx):
        return longer(exchange.current_us)

    def on_reply(self, exchange, sample, cx):
        pass
"""


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Types a cell into a notebook, and gives the class that it made."""

    def cell(text: str) -> Any:
        module = ModuleType("typed_in_a_notebook")
        monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
        name = f"<cell {abs(hash(text))}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), module.__dict__)
        return module.Mine

    return cell


def test_the_example_of_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = (
        block for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sweeps.md").read_text(), re.DOTALL)
        if "savefig" in block
    )  # fmt: skip
    assert len(example.splitlines()) <= 15
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example, names)
    assert {"value", "low", "high"} <= set(names["frame"].columns)
    assert (tmp_path / "fct.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_notebooks_that_ship_run(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    for text in cells:
        exec(text, names)
    assert len(cells) >= 4
    assert list(tmp_path.iterdir()) == []


def test_runs_show_themselves(tmp_path: Path) -> None:
    done = millpond.sweep(PLAN)
    assert done._repr_html_().startswith("<table><caption>Run of plan: 2 settings, 6 runs")
    figure = done.plot("fct")
    assert [axis.get_xlabel() for axis in figure.axes] == ["clients[0].count"]
    with pytest.raises(UsageError, match="nothing varies but algorithm"):
        millpond.sweep({**PLAN, "matrix": {"algorithm": ["rfc7252", "calm"]}}).plot()
    beside = millpond.compare(done, "2", "4", metrics=["fct"])
    assert beside.table.column_names[:3] == ["place", "metric", "statistic"]
    assert "<td>fct</td>" in beside._repr_html_()
    opened = millpond.open_results(millpond.sweep(PLAN, out=tmp_path / "out", report=False).directory)
    assert opened.summary.equals(done.summary)


def test_controllers_and_metrics_are_tables() -> None:
    assert "rfc7252" in millpond.controllers().column("name").to_pylist()
    assert "fct" in millpond.metrics().column("name").to_pylist()


def test_a_class_that_was_typed_in_is_kept_with_its_source(tmp_path: Path, typed: Callable[[str], Any]) -> None:
    mine = typed(CELL)
    done = millpond.sweep({**PLAN, "matrix": {"algorithm": ["rfc7252"]}}, controllers=mine, out=tmp_path, report=False)
    (kept,) = done.results.manifest["controllers"]
    text = (tmp_path / "controllers" / "notebook.py_Mine" / "notebook.py").read_text()
    assert kept == "notebook.py:Mine"
    assert "import math as math" in text
    assert text.index("FACTOR = 2") < text.index("def longer") < text.index("class Mine")
    manifest = Results.open(tmp_path).manifest
    assert verify.runs_again(tmp_path, manifest, 3, run_code=True) == [0, 1, 2]


def test_a_class_that_cannot_be_kept_is_refused_with_the_reason(tmp_path: Path, typed: Callable[[str], Any]) -> None:
    plan = {**PLAN, "matrix": {"algorithm": ["rfc7252"]}}
    of_a_table = typed(CELL.replace("FACTOR = 2", "FACTOR = {1, 2}"))
    with pytest.raises(UsageError, match=r"^longer: uses FACTOR of the notebook, a set that cannot be kept: make it"):
        millpond.sweep(plan, controllers=of_a_table)
    without_text = typed(CELL)
    linecache.clearcache()
    assert millpond.sweep(plan, controllers=without_text).results.runs == 3
    with pytest.raises(UsageError, match="Mine: results keep the source of a controller, and this one has no file"):
        millpond.sweep(plan, controllers=without_text, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
