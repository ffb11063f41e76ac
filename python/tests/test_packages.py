"""Every package could be published: it says what it is and under which terms; the others say that they are not."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from millpond.plan.toml_file import read_tree

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted(
    file for file in ROOT.glob("**/Cargo.toml") if not {"target", ".tools", ".venv"} & {*file.relative_to(ROOT).parts}
)
PACKAGES = {file.parent: tree["package"] for file in MANIFESTS if "package" in (tree := read_tree(file))}
PUBLISHED = {
    "control",
    "coap",
    "link",
    "path",
    "sim",
    "live",
    "emulate",
    "diagnose",
    "gateway",
    "embedded",
    "cli",
    "ffi",
    "plugin",
}
WORKSPACE: dict[str, Any] = read_tree(ROOT / "Cargo.toml")["workspace"]["package"]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_whether_a_package_is_published_is_said_and_is_as_meant(folder: Path) -> None:
    is_ours = folder.parent == ROOT / "crates" and folder.name in PUBLISHED
    assert PACKAGES[folder].get("publish") is is_ours


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_published_crate_says_what_it_is_and_under_which_terms(name: str) -> None:
    folder = ROOT / "crates" / name
    package = PACKAGES[folder]
    for key in ("license", "repository", "homepage"):
        assert package[key] == {"workspace": True}
        assert WORKSPACE[key]
    assert package["documentation"].startswith("https://")
    assert len(package["description"]) < 120
    assert 1 <= len(package["keywords"]) <= 5
    assert all(re.fullmatch(r"[a-z][\w-]{1,19}", key) for key in package["keywords"])
    assert 1 <= len(package["categories"]) <= 5
    for terms in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert (folder / terms).read_bytes() == (ROOT / terms).read_bytes()
    readme = (folder / package["readme"]).read_text(encoding="utf-8")
    assert readme.startswith(f"# {package['name']}\n")
    assert len(readme.split()) < 300
    # a package is read where the rest of the repository is not
    assert all("://" in link for link in re.findall(r"\]\(([^)]+)\)", readme))


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_links_of_a_readme_into_the_repository_lead_somewhere(name: str) -> None:
    readme = (ROOT / "crates" / name / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(https://github\.com/millpond/millpond/blob/main/([^)#]+)", readme):
        assert (ROOT / link).exists(), link


def test_the_citation_is_of_this_version() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {WORKSPACE['version']}\n" in cited
    assert f'repository-code: "{WORKSPACE["repository"]}"' in cited


def test_a_tag_is_what_the_workflow_of_releases_waits_for() -> None:
    release = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert 'tags: ["v[0-9]+.[0-9]+.[0-9]+"]' in release
    # every crate that is published is so at once, each after those that it stands on
    assert "cargo publish --workspace --locked" in release


UNITS = [unit for unit in sorted((ROOT / "packaging" / "debian").iterdir()) if unit.suffix in (".service", ".socket")]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_one_that_systemd_takes(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    # a socket is one of the service beside it
    for each in UNITS:
        # the program is not installed here, and nor is its manual
        lines = each.read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("Documentation=man:"))
        (tmp_path / each.name).write_text(text.replace("/usr/bin/millpond", "/bin/true"), encoding="utf-8")
    arguments = [analyze, "verify", "--recursive-errors=no", str(tmp_path / unit.name)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
