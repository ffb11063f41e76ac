"""The short diffs of CONTRIBUTING.md still fit what they change, and those of Python and of plans do what they say."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from millpond.measure.metric import Metric
from millpond.plan import reading

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@dataclass
class Hunk:
    """Some lines that follow each other, below the line that begins with `below`; at the end of the file without it."""

    file: str
    below: str = ""
    lines: list[str] = field(default_factory=list)

    def of(self, *signs: str) -> list[str]:
        return [line[1:] for line in self.lines if line[:1] in signs]


def hunks(block: str) -> list[Hunk]:
    found: list[Hunk] = []
    file = ""
    for line in block.splitlines():
        sign, _, words = line.partition(" ")
        if sign in ("---", "+++"):
            file = words
            if sign == "+++":
                found.append(Hunk(file))
        elif sign == "@@":
            found.append(Hunk(file, words))
        else:
            found[-1].lines.append(line)
    return found


def blocks() -> Iterator[tuple[str, list[Hunk]]]:
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0]
        for block in re.findall(r"^ *```diff\n(.*?)^ *```", part, re.DOTALL | re.MULTILINE):
            yield title, hunks(textwrap.dedent(block))


DIFFS = dict(blocks())


def applied(diff: list[Hunk]) -> dict[str, str]:
    """The files that a diff leaves, by their place."""
    files: dict[str, list[str]] = {}
    for hunk in diff:
        there = ROOT / hunk.file
        if hunk.file not in files:
            files[hunk.file] = there.read_text(encoding="utf-8").splitlines() if there.is_file() else []
        lines, old = files[hunk.file], hunk.of(" ", "-")
        start = 0
        if hunk.below:
            below = [n for n, line in enumerate(lines) if line.strip().startswith(hunk.below)]
            assert below, f"{hunk.file} has no line that begins with {hunk.below!r}"
            start = below[0] + 1
        if old:
            places = [n for n in range(max(0, start - 1), len(lines)) if lines[n : n + len(old)] == old]
            assert places, f"{hunk.file}: below {hunk.below!r} there are no such lines:\n" + "\n".join(old)
            start = places[0]
        elif not hunk.below:
            start = len(lines)
        lines[start : start + len(old)] = hunk.of(" ", "+")
    return {file: "\n".join(lines) + "\n" for file, lines in files.items()}


def test_every_way_to_add_something_that_has_a_diff_is_looked_at() -> None:
    assert set(DIFFS) == {f"How to add a {thing}" for thing in ("preset", "workload", "factor", "metric", "study")}


@pytest.mark.parametrize("title", DIFFS)
def test_diffs_fit_what_they_change(title: str) -> None:
    for file, text in applied(DIFFS[title]).items():
        before = ROOT / file
        assert not before.is_file() or text != before.read_text(encoding="utf-8")


def test_the_factor_is_one(tmp_path: Path) -> None:
    ((file, text),) = applied(DIFFS["How to add a factor"]).items()
    folder = (ROOT / file).parent
    for other in folder.iterdir():
        if other.suffix == ".toml":
            (tmp_path / other.name).write_text(other.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / Path(file).name).write_text(text, encoding="utf-8")
    before, after = reading.read(folder), reading.read(tmp_path)
    added = set(after.factors) - set(before.factors)
    assert added == {"downlink_kbps"}
    assert after.values("downlink_kbps") == (30, 60)
    assert after.vary["downlink_kbps"].places == ("path.downlink.rate",)


def test_the_metric_is_one(tmp_path: Path) -> None:
    ((file, text),) = applied(DIFFS["How to add a metric"]).items()
    changed = tmp_path / Path(file).name
    changed.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("changed_metrics", changed)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "resent_share" in [metric.name for metric in module.METRICS if isinstance(metric, Metric)]


def test_the_study_is_one(tmp_path: Path) -> None:
    ((file, text),) = applied(DIFFS["How to add a study"]).items()
    (tmp_path / Path(file).name).write_text(text, encoding="utf-8")
    (tmp_path / "scenario.toml").write_text('path = "nbiot-anrw18"\n[[clients]]\ncount = 1\ncontroller = "rfc7252"\n')
    plan = reading.read(tmp_path, presets=("rfc7252", "cocoa-03"))
    assert plan.judged
    assert plan.algorithms == ("rfc7252", "cocoa-03")
    assert plan.values("devices") == (1, 10, 100)
