"""Without the extra `lab` the verbs on the wire and the controllers work, and everything else names it in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from millpond.errors import LABORATORY
from millpond.plan.toml_file import read_tree

ROOT = Path(__file__).parents[2]

#: Stands in for an interpreter in which the package alone is installed.
WITHOUT = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(LABORATORY)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return python(f"from millpond import cli; cli.main({list(words)!r})")


def test_the_extra_has_the_libraries_that_are_told_of() -> None:
    project = read_tree(ROOT / "pyproject.toml")["project"]
    named = {wanted.partition(">=")[0] for wanted in project["optional-dependencies"]["lab"]}
    assert named == LABORATORY
    assert not named & {wanted.partition(">=")[0] for wanted in project["dependencies"]}


@pytest.mark.parametrize(
    "words",
    [["--version"], ["--help"], ["get", "--help"], ["serve", "--help"], ["run", "--help"], ["paths"]],
    ids=" ".join,
)
def test_what_needs_no_laboratory_works_without_it(words: list[str]) -> None:
    said = program(*words)
    assert (said.returncode, said.stderr) == (0, "")


def test_a_controller_can_be_asked() -> None:
    code = """
import millpond
calm = millpond.BuiltIn("calm", {"patience": "4 s"})
print(calm.name, millpond.__version__)
"""
    said = python(code)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("calm ")


def test_the_adapter_of_aiocoap_needs_aiocoap_alone() -> None:
    """Its import ends at aiocoap, which the test hides; with aiocoap `make interop` loads it."""
    said = python("sys.modules['aiocoap'] = None\nimport millpond.aiocoap")
    assert said.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of aiocoap halted")
    (wanted,) = read_tree(ROOT / "pyproject.toml")["project"]["optional-dependencies"]["aiocoap"]
    name, _, version = wanted.partition("==")
    installed = (ROOT / "interop" / "install").read_text(encoding="utf-8")
    assert re.search(rf"'{name}(\[\w+\])?=={re.escape(version)}'", installed)


@pytest.mark.parametrize(
    "words",
    [["run", "s.toml"], ["sweep", "p.toml"], ["fleet", "--devices", "10"], ["reproduce", "anrw18"], ["arena"],
     ["report", "results"], ["controllers"], ["results", "verify", "x"], ["compare", "x", "a", "b"]],
    ids=" ".join,
)  # fmt: skip
def test_a_verb_of_the_laboratory_names_the_extra_in_one_line(words: list[str]) -> None:
    said = program(*words)
    assert said.returncode == 1
    assert said.stderr.startswith("millpond: this needs the laboratory (")
    assert said.stderr.endswith("is missing): pip install 'millpond[lab]'\n")
    assert said.stderr.count("\n") == 1


def test_a_call_of_the_laboratory_names_the_extra() -> None:
    said = python("import millpond\ntry: millpond.run\nexcept ImportError as error: print(error)")
    assert said.stdout.startswith("this needs the laboratory (")
    assert said.stdout.endswith("is missing): pip install 'millpond[lab]'\n")
