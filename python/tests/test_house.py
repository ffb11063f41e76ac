"""The house: an arrow only ever points down, between crates and between the steps of the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from millpond.plan.toml_file import read_tree

ROOT = Path(__file__).parents[2]

#: Which of our crates each crate may stand on.
CRATES: dict[str, set[str]] = {
    "control": set(),
    "link": {"control"},
    "coap": {"control"},
    "ffi": {"control"},
    "plugin": {"control"},
    "path": {"control", "link"},
    "sim": {"control", "link", "coap", "path"},
    "live": {"control", "coap"},
    "embedded": {"control", "coap"},
    "emulate": {"control", "link", "path"},
    "diagnose": {"control", "coap"},
    "gateway": {"live", "path"},
    "cli": {"control", "coap", "live", "path", "emulate", "diagnose", "gateway"},
    "web": {"control", "path", "sim"},
    "py": {"control", "link", "coap", "path", "sim", "cli", "diagnose", "plugin"},
}

#: The steps of the package from the lowest floor up; a step knows itself and those before it.
STEPS = (
    "errors",
    "engine",
    "results",
    "controllers",
    "plan",
    "run",
    "measure",
    "judge",
    "real",
    "show",
    "studies",
    "given",
    "evaluation",
    "arena",
    "calibrate",
    "api",
    "fleet",
    "diagnose",
    "explore",
    "cli",
)

#: Longer files than this, in the rooms of the laboratory, have more than one subject.
MOST_LINES = 515


def _crates() -> list[Path]:
    return sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))


@pytest.mark.parametrize("crate", _crates(), ids=lambda crate: crate.name)
def test_a_crate_stands_on_lower_floors_alone(crate: Path) -> None:
    manifest = read_tree(crate / "Cargo.toml")
    used = {name.removeprefix("millpond-") for name in manifest.get("dependencies", {}) if name.startswith("millpond-")}
    assert used <= CRATES[crate.name]


#: A text that names a module, as one that is imported by its name or run as a program.
NAMED = re.compile(r"(?:^|[\s:])millpond\.([a-z_]+)\b")


def _imports(file: Path) -> set[str]:
    """The modules of the package that a file imports, also inside functions and by their names."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found: set[str] = set()
    told = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [node.module] if node.module != "millpond" else [f"millpond.{name.name}" for name in node.names]
            found.update(names)
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in told:
            found.update(f"millpond.{name}" for name in NAMED.findall(node.value))
    return {name.split(".")[1] for name in found if name.startswith("millpond.")}


def _globs(file: Path) -> list[str]:
    """Patterns that find Python files: code that is taken in by where it lies."""
    calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    named = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ("glob", "rglob"))
    return [ast.unparse(call) for call in named if any(".py" in ast.unparse(word) for word in call.args)]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_package_knows_only_those_before_it(step: str) -> None:
    package = ROOT / "python" / "millpond"
    above = set(STEPS[STEPS.index(step) + 1 :])
    files = sorted((package / step).rglob("*.py")) or [package / f"{step}.py"]
    wrong = {str(file.relative_to(package)): sorted(found) for file in files if (found := _imports(file) & above)}
    assert not wrong
    assert not [found for file in files for found in _globs(file) if step != "controllers"]


def test_what_is_imported_by_its_name_counts(tmp_path: Path) -> None:
    file = tmp_path / "hidden.py"
    file.write_text('import importlib\nimportlib.import_module("millpond.studies.pages")\nrun("import millpond.cli")\n')
    assert _imports(file) == {"studies", "cli"}
    file.write_text('Path().glob("*/page.py")\n')
    assert _globs(file) == ["Path().glob('*/page.py')"]


def test_a_study_is_known_to_nobody_below() -> None:
    package = ROOT / "python" / "millpond"
    names = [folder.name for folder in (package / "scenarios" / "studies").iterdir() if folder.is_dir()]
    # the arena judges candidates on cells of the studies, among others
    apart = {"studies", "arena"}
    generic = [file for step in STEPS if step not in apart for file in (package / step).rglob("*.py")]
    assert names
    wrong = [
        f"{file.relative_to(package)}: {name}"
        for file in generic
        for name in names
        if f'"{name}"' in file.read_text(encoding="utf-8")
    ]
    assert not wrong


def test_no_file_has_grown_past_reading() -> None:
    rooms = ("link", "path", "sim", "emulate", "diagnose", "py")
    sources = [file for room in rooms for file in ROOT.glob(f"crates/{room}/src/**/*.rs")]
    sources += ROOT.glob("python/millpond/**/*.py")
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in sources}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_continuous_integration_leaves_no_test_out() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    parts = {*re.findall(r"^(test-[a-z]+):", makefile, re.MULTILINE), "interop"} - {"test-parts"}
    stages = re.search(r"^test: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert stages is not None
    assert parts <= {*re.findall(r"[a-z-]+", stages[1])}
    assert "test-rust: test-parts" in makefile
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^make .*\btest\b", script, re.MULTILINE)
    assert re.search(r"^make .*\blint\b", script, re.MULTILINE)
