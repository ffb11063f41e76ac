from __future__ import annotations

import io

import pytest
from rich.console import Console

from millpond.judge.compare import Comparison, Figure
from millpond.measure.measures import Measures
from millpond.plan.program import Planned
from millpond.results.directory import Results
from millpond.run.jobs import Job
from millpond.run.progress import Bar
from millpond.show import terminal as tables
from millpond.show.report import published
from millpond.show.report.grid import Grid
from millpond.studies import pages, reproduction


@pytest.fixture(scope="module")
def comparison(fake_results: Results, fake: Measures) -> Comparison:
    return reproduction.compare(fake_results, measures=fake)


def printed(fake: Measures, comparison: Comparison) -> str:
    out = io.StringIO()
    tables.show(tables.render(pages.document(fake.results, comparison)), out)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_the_terminal(
    fake: Measures, comparison: Comparison, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = printed(fake, comparison)
    assert max(map(len, text.splitlines())) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text, "a cell was cut off"


def test_every_claim_is_printed_with_its_verdict(fake: Measures, comparison: Comparison) -> None:
    text = printed(fake, comparison)
    for claim in comparison.claims:
        assert f"\n{claim.id.removeprefix('anrw18-')} " in text
    assert "cannot" in text
    assert "holds" in text
    counts = comparison.counts()
    read_off = comparison.counts(calibrating=True)
    assert sum(counts.values()) + sum(read_off.values()) == len(comparison.claims)
    assert (sum(read_off.values()), len(comparison.tested(calibrating=True))) == (2, 42)
    assert f"{counts['holds']} claims hold, {counts['fails']} fail" in " ".join(text.split())


def test_readings_of_the_test_bed_are_apart_in_one_table(fake: Measures, comparison: Comparison) -> None:
    lines = [line.strip() for line in printed(fake, comparison).splitlines()]
    parts = [
        line
        for line in lines
        if line in ("continuous", "random", "continuous, jittered delay", "random, jittered delay")
    ]
    assert len(set(parts)) == 4


def test_figures_without_ours_are_gathered_by_reason(fake_results: Results) -> None:
    gone = [
        Figure(f"s-r{n}", {}, "fct", "median", "", "", "s", 1.0, None, note="not run: clients=50") for n in range(6)
    ]
    _, line = published.published_figures(Grid(fake_results), Comparison("s", "0", figures=gone)).paragraphs
    assert line == "Not measured, not run: clients=50: r0, r1, r2, r3 and 2 more."


def test_settings_of_the_test_bed_are_compared(comparison: Comparison) -> None:
    settings = {setting.id: setting for setting in comparison.settings}
    assert len(settings) == 22
    assert [setting.metric for setting in comparison.settings if not setting.same] == ["replications"]
    assert settings["anrw18-r0074"].ours == "30 kbps"
    assert settings["anrw18-r0096"].ours == "20 retransmissions"
    assert (settings["anrw18-r0079"].ours, settings["anrw18-r0080"].ours) == ("10 ms", "20 ms")


def test_the_bar_tells_rate_and_time_left(fake_results: Results) -> None:
    out = io.StringIO()
    bar = Bar(Console(file=out, force_terminal=True, width=100, highlight=False))
    jobs = [Job(Planned(fake_results.cells[0], None), run, 0, 1) for run in range(4)]  # type: ignore[arg-type]
    bar.start(jobs, kept=3)
    for job in jobs:
        bar.finished(job)
    bar.say("a part was cut short")
    bar.end()
    text = out.getvalue()
    for words in (
        "3 runs are there already, 4 to go",
        "4/4 runs",
        "runs/s",
        "left",
        "a part was cut short",
        "4 runs in",
    ):
        assert words in text


def test_without_a_terminal_one_line_remains(fake_results: Results) -> None:
    out = io.StringIO()
    bar = Bar(Console(file=out, width=100))
    job = Job(Planned(fake_results.cells[0], None), 0, 0, 1)  # type: ignore[arg-type]
    bar.start([job], kept=0)
    bar.finished(job)
    bar.end()
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().startswith("1 run in")
