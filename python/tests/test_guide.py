"""The guide "write your own controller": its files are as it says, and its commands do what it says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import guide
import pytest

from millpond import cli
from millpond.results.directory import Results

Type = Callable[[Sequence[str]], str]


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Type:
    """A reader who has written the guide's files into a folder, and types there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in guide.files().items():
        Path(name).write_text(text, encoding="utf-8")

    def type_in(words: Sequence[str]) -> str:
        assert words[0] == "millpond"
        with pytest.raises(SystemExit) as ended:
            cli.main(list(words[1:]))
        out, err = capfd.readouterr()
        assert not ended.value.code, err
        return out

    return type_in


def command(*words: str) -> list[str]:
    """The command of the guide that has these words."""
    found = [line for line in guide.commands() if set(words) <= set(line)]
    assert len(found) == 1, (words, found)
    return found[0]


def test_there_is_nothing_else_in_it_than_what_is_tried_here() -> None:
    assert list(guide.files()) == ["patient.py", "careful.py", "cell.toml"]
    assert len(guide.commands()) == 5
    assert len(guide.blocks("python")) == 3


def test_the_smallest_one_has_the_faults_that_are_named(reader: Type) -> None:
    told = json.loads(reader([*command("controllers", "patient.py:Patient", "--out")[:3], "--json"]))
    verdicts = {one["id"]: one for one in told["controller"]["requirements"]}
    text = guide.GUIDE.read_text(encoding="utf-8")
    named = [key for key in verdicts if f"\n- **{key}**: " in text]
    assert named == ["C2", "C7", "C15"]
    assert all(verdicts[key]["verdict"] == "not met" for key in named)
    assert (
        "after an answer with 6 retransmissions the next first wait was 2.00 s, the one in force 60.00 s"
        in (verdicts["C7"]["evidence"])
    )


def test_a_setting_changes_it_and_a_page_is_drawn(reader: Type) -> None:
    out = reader(command("controllers", "patient.py:Patient", "--out"))
    assert "patient.py:Patient with first_s = 1" in out
    assert Path("patient.html").is_file()


def test_the_careful_one_has_no_fault(reader: Type) -> None:
    out = reader(command("controllers", "careful.py:Careful"))
    assert "not met" not in out
    assert "partly" not in out


def test_a_scenario_names_it(reader: Type) -> None:
    out = reader(command("run"))
    for name in ("Default CoAP (rfc7252)", "CoCoA (cocoa-03)", "careful.py:Careful"):
        assert f"\n{name} " in out
    assert Path("results/cell/report.html").is_file()


def test_it_stands_in_a_report_beside_the_published_ones(reader: Type) -> None:
    out = reader(command("reproduce"))
    table = out[: out.index("Ours beside the published figures")]
    assert "careful.py:Careful" in table
    results = Results.open("results/anrw18-quick")
    run = {group.algorithm for cell in results.cells for group in cell.groups}
    assert run == {"default", "cocoa", "careful.py:Careful"}
    report = Path("results/anrw18-quick/report.html").read_text(encoding="utf-8")
    assert "careful.py:Careful" in report


def test_a_notebook_takes_the_class(reader: Type) -> None:  # noqa: ARG001
    notebook = guide.blocks("python")[-1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(notebook, {})
    assert "careful.py:Careful" in printed.getvalue()
    assert "default" in printed.getvalue()


def test_the_rust_of_the_guide_is_that_of_the_example() -> None:
    example = guide.ROOT / "examples" / "own-controller"
    sources = "".join(file.read_text(encoding="utf-8") for file in sorted(example.glob("*/*.rs")))
    blocks = guide.blocks("rust")
    assert len(blocks) == 5
    assert [block for block in blocks if block not in sources] == []
    names = re.findall(r'^name = "(.*)"', (example / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"release/lib{names[1]}.so {names[1]}.so\n" in guide.GUIDE.read_text(encoding="utf-8")


def test_commands_can_be_typed() -> None:
    for words in guide.commands():
        assert shlex.split(" ".join(words)) == words
