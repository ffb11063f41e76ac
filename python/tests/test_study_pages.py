"""The pages of the studies list the verdict on every claim and tell numbers, as a full run wrote both."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import millpond
from manual import marks, numbers
from manual import study as study_page
from manual.numbers import Kept, Value
from millpond.errors import UsageError
from millpond.judge.compare import Comparison, Verdict
from millpond.judge.published import read as read_published
from millpond.plan import study as studies

ROOT = Path(__file__).parents[2]
STUDIES = sorted(file.parent.name for file in (ROOT / "scenarios" / "studies").glob("*/claims.toml"))
ID = re.compile(r"\bc\d+\b")


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_has_a_verdict_on_every_claim_and_no_other(study: str) -> None:
    text = (ROOT / "docs" / "studies" / f"{study}.md").read_text(encoding="utf-8")
    _, begin, rest = text.partition(study_page.BEGIN)
    table, end, _ = rest.partition(study_page.END)
    assert begin, "the page has no verdicts of a full run"
    assert end, "the verdicts have no end"
    rows = [ID.findall(line) for line in table.splitlines()[3:] if line.startswith("|")]
    assert rows, "the verdicts are empty"
    assert all(len(ids) == len(set(ids)) for ids in rows), "a claim has two verdicts on one reading"
    claims = (ROOT / "scenarios" / "studies" / study / "claims.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'^\[\[claim\]\]\nid = ".*-(c\d+)"', claims, re.MULTILINE)) <= {
        name for ids in rows for name in ids
    }


@pytest.mark.parametrize("study", STUDIES)
def test_why_a_claim_fails_is_told_without_figures_of_a_run(study: str) -> None:
    """What was measured stands beside the reason, from the run at hand."""
    claims = (ROOT / "scenarios" / "studies" / study / "claims.toml").read_text(encoding="utf-8")
    for reason in re.findall(r'^if_it_fails = "(.*)"$', claims, re.MULTILINE):
        assert not re.search(r"\d ?(%|percent|points|times|ms\b)|\d\.\d", reason), reason


def test_claims_are_listed_by_their_verdicts_on_each_reading() -> None:
    claim = Verdict("any-c01", "", "holds", "", "")
    typed = replace(claim, id="any-c02", variants={"typed": claim, "meant": replace(claim, verdict="noise")})
    both = Comparison("any", "1", claims=[replace(claim, verdict="unjudged"), typed])
    assert study_page.page(both).splitlines()[2:] == [
        "| typed | 1: c02 | none | none | 1: c01 |",
        "| meant | none | 1: c02 | none | 1: c01 |",
    ]
    assert study_page.page(Comparison("any", "1", claims=[claim])).splitlines()[2:] == [
        "| 1: c01 | none | none | none |"
    ]


def test_verdicts_stand_where_the_page_has_a_place_for_them() -> None:
    page = f"before\n{study_page.BEGIN}\nold\n{study_page.END}\nafter\n"
    assert study_page.written_into(page, "new") == f"before\n{study_page.BEGIN}\n\nnew\n\n{study_page.END}\nafter\n"
    with pytest.raises(UsageError, match="no place for verdicts"):
        study_page.written_into("a page", "new")


# Numbers of ours.

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKED = [page for page in DOCS if "<!--=" in page.read_text(encoding="utf-8")]


def values_of(study: str) -> dict[str, list[Value]]:
    return numbers.kept(studies.find(study))


def known_to(page: Path) -> dict[str, list[Value]]:
    """The values that a page may tell: those of its study by their names, those of others with their study before."""
    others = {f"{study}:{name}": found for study in STUDIES for name, found in values_of(study).items()}
    return {**others, **(values_of(page.stem) if page.stem in STUDIES else {})}


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.stem)
def test_marked_numbers_are_those_of_a_full_run(page: Path) -> None:
    assert list(map(str, marks.faults(page.read_text(encoding="utf-8"), known_to(page)))) == []


@pytest.mark.parametrize("study", STUDIES)
def test_every_number_that_is_kept_is_told(study: str) -> None:
    folder = studies.find(study)
    assert set(numbers.read(folder, studies.load(folder))) == set(values_of(study))
    told = marks.marks((ROOT / "docs" / "studies" / f"{study}.md").read_text(encoding="utf-8"))
    for name, points in values_of(study).items():
        assert {mark.point for mark in told if mark.id == name} == set(range(1, len(points) + 1)), name


def printed(study: str) -> set[str]:
    """Every number that the study's own files name: settings, bounds of claims, and published figures, rounded too."""
    found: set[str] = set()
    for file in studies.find(study).iterdir():
        if file.name not in (numbers.PAGE, numbers.MEASURED):
            text = file.read_text(encoding="utf-8")
            found |= {number.replace(",", "") for number in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)}
            found |= set(re.findall(r"\d+(?:\.\d+)?", text))
    plan = studies.load(studies.find(study))
    published = [] if plan.published is None else [row.value for row in read_published(plan.published).rows]
    return found | {f"{abs(value):.{digits}f}" for value in published if value is not None for digits in range(3)}


@pytest.mark.parametrize("study", STUDIES)
def test_no_number_of_ours_is_typed_by_hand(study: str) -> None:
    text = (ROOT / "docs" / "studies" / f"{study}.md").read_text(encoding="utf-8")
    assert marks.unmarked(text, printed(study)) == []


#: Of studies some numbers that are measured anew: cells that take no time, with all replications.
ANEW: dict[str, tuple[dict[str, list[str | int | float]], list[str], set[str]]] = {
    "anrw18": ({"clients": [1], "buffer_bytes": [1410000], "workload": ["continuous"]}, ["default"], {"shortest"}),
    "echo": (
        {"server": ["stored"], "error_profile": [1, 10, 30], "ratio": [0.8, 3]},
        ["fixed"],
        {"earlier-wrongly", "error"},
    ),
    "burst23": (
        {"traffic": ["occasional congestion"], "payload": [100], "offered_load": ["backlog"]},
        ["default"],
        {"used"},
    ),
    "cocoaplus15": (
        {"topology": ["grid-6x6"], "traffic": ["constant"], "offered_kbps": [2], "mac_retx": ["on"]},
        ["default"],
        {"lossy-less"},
    ),
    "fasor18": (
        {"clients": [200], "buffer_bytes": [1410000], "workload": ["random"], "error_profile": ["none"]},
        ["cocoa", "fasor"],
        {"round-trip-200"},
    ),
    "tcp20": (
        {"clients": [1], "buffer_bytes": [28200], "workload": ["bulk"], "error_profile": ["none"]},
        ["tcp_newreno"],
        {"lost"},
    ),
}


@pytest.mark.parametrize("study", ANEW)
def test_what_is_kept_is_what_is_measured_today(study: str, tmp_path: Path) -> None:
    factors, controllers, names = ANEW[study]
    few = millpond.reproduce(study, factors=factors, controllers=controllers, out=tmp_path, report=False)
    folder = studies.find(study)
    plan = studies.load(folder)
    known = numbers.read(folder, plan)
    chosen = [known[name] for name in sorted(names)]
    cells = [planned.cell for planned in studies.unfold(plan).cells]
    found = numbers.measure(chosen, few.measures, plan, study_page.whole_cells(few.results, plan, cells))
    assert set(found) == names
    for name, points in found.items():
        assert [f"{one.value:.6g}" for one in points] == [f"{one.value:.6g}" for one in values_of(study)[name]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[number]]\nid = "a"\nmetric = "fct"\ntoldd = "half"',
            "number[0]: unknown key 'toldd': did you mean 'told'?",
        ),
        ('[[number]]\nid = "a"\nmetric = "fact"', "number[0].metric: unknown metric 'fact': did you mean 'fct'?"),
        ('[[number]]\nid = "a"\nmetric = "fct"\nunit = "percent"', "number[0].unit: fct cannot be told in 'percent'"),
        ('[[number]]\nmetric = "fct"', "each number needs an id of its own"),
        ('[[farthest]]\nid = "a"\nrows = { client = "1" }', "farthest[0].rows: unknown column 'client': did you mean"),
    ],
)
def test_a_number_that_cannot_be_told_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / numbers.PAGE).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        numbers.read(tmp_path, studies.load(studies.find("anrw18")))
    assert told in str(caught.value)


KEPT: Kept = {
    "last": [Value(2450.175, "default"), Value(766.13, "fb2")],
    "share": [Value(-2.345, "a"), Value(97.66, "b")],
}
TABLE = """<!--= last share in columns 2 to 3, rows 1 -->
<!--= - share in column 2, rows 2 -->

| what | a | b |
|---|---|---|
| 7 | 2450 s / -2.3 % | 766.1 s |
| 8 | 40 of 98 | 5 |
"""


def test_numbers_are_held_to_the_values_and_written_like_before() -> None:
    text = "after 2,449<!--=last--> s, then **770**<!--=last--> s; 770<!--=last.2--> again, 2300<!--=last.1-->"
    assert [(fault.written, fault.right) for fault in marks.faults(text, KEPT)] == [
        ("2,449", "2,450"), ("770", "766"), ("770", "766"), ("2300", "2450"),
    ]  # fmt: skip
    right = marks.rewritten(text, KEPT)
    assert right == "after 2,450<!--=last--> s, then **766**<!--=last--> s; 766<!--=last.2--> again, 2450<!--=last.1-->"
    assert marks.faults(right, KEPT) == []


def test_cells_of_a_table_are_told_in_turn() -> None:
    assert [(mark.written, mark.id, mark.point) for mark in marks.marks(TABLE)] == [
        ("2450", "last", 1), ("-2.3", "share", 1), ("766.1", "last", 2), ("98", "share", 2),
    ]  # fmt: skip
    assert marks.faults(TABLE, KEPT) == []
    assert marks.unmarked(TABLE, ()) == []
    changed = TABLE.replace("766.1", "766.2")
    assert [str(fault) for fault in marks.faults(changed, KEPT)] == ["line 6: 766.2 is 766.1: fb2"]


def test_a_change_is_that_from_the_figure_in_its_row() -> None:
    text = "<!--= last %2 in column 3 -->\n\n| | theirs | ours |\n|---|---|---|\n| a | 2,500 | 2450 (-2.0 %) |\n"
    assert marks.faults(text, KEPT) == []
    (fault,) = marks.faults(text.replace("-2.0", "-1.9"), KEPT)
    assert (fault.written, fault.right, fault.of) == ("-1.9", "-2.0", "default, beside 2500")


@pytest.mark.parametrize(
    ("value", "like", "right"),
    [
        (16104.2, "16,100", "16,100"),
        (19963.0, "20,000", "20,000"),
        (2300.4, "2,300", "2,300"),
        (95.04, "90", "95"),
        (0.0004, "0.00", "0.00"),
        (-0.004, "0.00", "0.00"),
        (27.44, "+27.3", "+27.4"),
    ],
)  # fmt: skip
def test_as_many_digits_are_told_as_before(value: float, like: str, right: str) -> None:
    assert marks.shown(value, like) == right


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("after 766<!--=lats--> s", "line 1: unknown number 'lats': did you mean 'last'?"),
        ("one\n7<!--=last.3-->", "line 2: 7 would be value 3 of 'last', which has 2"),
        ("at last<!--=last-->", "line 1: <!--=last--> stands behind no number"),
        ("<!--= last in column 2 -->\n\ntext\n", "stands before no table"),
        ("<!--= last in column 3 -->\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "there is no number in these cells"),
    ],
)
def test_a_mark_that_marks_nothing_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        marks.faults(text, KEPT)
    assert told in str(caught.value)


def test_numbers_of_unknown_origin_are_found() -> None:
    text = (
        "# 12 runs\n\nA run of 17.5<!--=last--> s, 18.5 s and 250 kbit/s, RFC 7252 §4.2, in 2018, `33 s`, 6x6, 5 %,\n"
        "with 44 s.\n\n* 55 s <!-- from: millpond run -->\n* 66 s\n\n    77 s\n\n## Live\n\n<!-- from: live -->\n\n"
        "88 s\n\n| 99 s |\n\n## More\n\n1,011 s\n"
    )
    found = [line.split(" in ")[0] for line in marks.unmarked(text, {"250"})]
    assert found == ["line 1: 12", "line 3: 18.5", "line 4: 44", "line 7: 66", "line 21: 1,011"]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.stem)
def test_no_comment_parts_a_paragraph(page: Path) -> None:
    """One at the head of a line would: Markdown takes the line for HTML."""
    lines = page.read_text(encoding="utf-8").splitlines()
    heads = [line for before, line in pairwise(lines) if before and line.lstrip().startswith("<!--")]
    assert all(line.endswith("-->") and line.startswith("<!--= ") for line in heads)
