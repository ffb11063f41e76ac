"""The manual as a site: every page is a chapter, links hold there, and what leads nowhere is found."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from manual import links, stage

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book") / "src"
    stage.stage(ROOT, folder, there=())
    return folder


def test_every_page_of_the_manual_is_a_chapter() -> None:
    listed = {page.file for page in stage.pages(ROOT)}
    docs = ROOT / "docs"
    there = {page for page in docs.rglob("*.md") if page != docs / "index.md"}
    assert there - listed == set()


def test_the_side_bar_has_the_parts_of_the_manual(staged: Path) -> None:
    parts = re.findall(r"^# (.+)$", (staged / "SUMMARY.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert parts[1:] == [
        "Tutorials", "How-to", "Reference", "Explanation", "Studies", "Reports", "Appendix", "Project",
    ]  # fmt: skip


def test_every_chapter_is_there_and_named_once(staged: Path) -> None:
    told = re.findall(r"\]\(([^)]+)\)", (staged / "SUMMARY.md").read_text(encoding="utf-8"))
    assert len(told) == len(set(told))
    assert [name for name in told if not (staged / name).is_file()] == []
    assert {str(file.relative_to(staged)) for file in staged.rglob("*.md")} == {*told, "SUMMARY.md"}


def test_links_of_chapters_stay_within_the_book(staged: Path) -> None:
    found = 0
    for page in staged.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s#]+)", text):
            if "://" not in link and not link.startswith("api/"):
                assert (page.parent / link).is_file(), (page.name, link)
                assert (page.parent / link).resolve().is_relative_to(staged.resolve())
                found += 1
    assert found > 200


def test_a_folder_loses_its_link_and_keeps_its_words(tmp_path: Path) -> None:
    for folder in ("docs/images", "crates/link"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ({*stage.OUTSIDE} - {"README.md"}) | {"docs/index.md"}:
        (tmp_path / name).write_text("# x\n", encoding="utf-8")
    (tmp_path / "crates/link/a.rs").write_text("fn a() {}\n", encoding="utf-8")
    text = "# M\n\n[the crate](crates/link), [a file](crates/link/a.rs), [all](docs/index.md#part)\n"
    (tmp_path / "README.md").write_text(text + "```\n[not](crates/link)\n```\n", encoding="utf-8")
    stage.stage(tmp_path, tmp_path / "src", there=(stage.EXPLORER,))
    front = (tmp_path / "src/index.md").read_text(encoding="utf-8")
    assert "the crate, [a file](source/crates/link/a-rs.txt), [all](pages.md#part)" in front
    assert "```\n[not](crates/link)\n```" in front
    assert 'href="explore/index.html"' in front


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<h2 id="here">x</h2>', encoding="utf-8")
    page = '<a href="{}">x</a>'
    good = ("there.html", "there.html#here", "https://example.org/nothing", "#top")
    text = "".join(page.format(link) for link in good) + '<i id="top"></i>'
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    assert links.broken(tmp_path) == []
    bad = ("gone.html", "there.html#gone", "../out.html", "#nowhere")
    (tmp_path / "page.html").write_text("".join(page.format(link) for link in bad), encoding="utf-8")
    assert links.broken(tmp_path) == [f"page.html: {link}" for link in bad]
    (tmp_path / "made").mkdir()
    shutil.move(tmp_path / "page.html", tmp_path / "made/page.html")
    assert links.broken(tmp_path, apart=("made",)) == []
