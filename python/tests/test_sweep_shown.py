"""What is shown of a sweep of a user's own: under any factor names, every metric, and pairs of runs."""

from __future__ import annotations

import io
from pathlib import Path

import hand_made
import numpy as np
import pytest
import small_sweep
from picture_checks import check_texts

import millpond
from millpond.api import Run
from millpond.cli import main
from millpond.errors import UsageError
from millpond.measure.measures import Measures
from millpond.show import terminal
from millpond.show.report import figures
from millpond.show.report.grid import Grid
from millpond.show.report.sweep import difference_in_words, in_words


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("sweep")
    return millpond.sweep(small_sweep.write(folder), out=folder / "out")


def test_the_page_begins_with_who_is_done_by_when_and_has_every_metric(done: Run) -> None:
    assert done.report is not None
    page = done.report.read_text(encoding="utf-8")
    found = [part.split('"')[0] for part in page.split('<section id="')[1:]]
    assert found[:4] == ["summary", "reported", "multiples", "matrices"]
    drawn = [part.split('"')[0] for part in page.split('<figure id="')[1:]]
    assert drawn[0].startswith("reported")
    assert "multiples-fct" in drawn
    told = "How long a queue may be", "clients[0].count", "Default CoAP (rfc7252)", "were made with Millpond"
    for words in told:
        assert words in page
    assert "buffer_bytes" not in page


def test_small_multiples_take_any_two_factors_for_rows_and_columns(done: Run) -> None:
    figure = figures.small_multiples(done.results, "fct", rows="queue", columns="clients[0].count").draw()
    assert [panel.get_title("left") for panel in figure.axes] == [
        "1 kB buffer, clients[0].count 2", "1 kB buffer, clients[0].count 12",
        "8 kB buffer, clients[0].count 2", "8 kB buffer, clients[0].count 12",
    ]  # fmt: skip
    check_texts(figure)
    boxes = figures.small_multiples(done.results, "fct", columns="queue", across="clients[0].count", lines=False).draw()
    assert len(boxes.axes) == 2
    check_texts(boxes)


@pytest.mark.parametrize("metric", ["clients_done_99", "unnecessary_retx_per_client", "wasted_share"])
def test_words_beside_a_single_row_of_panels_are_whole(done: Run, metric: str) -> None:
    check_texts(figures.small_multiples(done.results, metric, columns="queue").draw())


def test_a_number_in_a_title_has_its_unit(tmp_path: Path) -> None:
    plan = small_sweep.tree(
        matrix={"clients[0].count": [2], "rate": [30, 60], "algorithm": ["rfc7252"]},
        vary={"rate": {"places": ["path.downlink.rate"], "write": "{} kbit/s", "unit": "kbit/s"}},
    )
    swept = millpond.sweep(plan, out=tmp_path / "out", report=False)
    (panel,) = figures.reported(swept.results).draw().axes
    assert panel.get_title("left") == "rate 60\N{NARROW NO-BREAK SPACE}kbit/s"


def test_small_multiples_refuse_what_is_no_factor_or_metric(done: Run) -> None:
    with pytest.raises(UsageError, match=r"unknown factor 'queu'.*queue"):
        figures.small_multiples(done.results, rows="queu").draw()
    with pytest.raises(UsageError, match=r"unknown metric 'fcd'.*fct"):
        figures.small_multiples(done.results, "fcd").draw()
    with pytest.raises(UsageError, match="named twice"):
        figures.small_multiples(done.results, rows="queue", columns="queue").draw()
    with pytest.raises(UsageError, match="algorithm: stands in every panel, as colours"):
        figures.small_multiples(done.results, rows="algorithm").draw()


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_every_setting_and_pairs_of_runs(
    done: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    terminal.show(done.tables, out)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "Against Default CoAP (rfc7252), run by run" in text
    assert text.count("24 of 24") == 4


def test_what_was_lost_and_never_reached_is_told_in_terminal_and_page(tmp_path: Path) -> None:
    link = {"rate": "60 kbit/s", "delay": "215 ms", "queue": "900 B"}
    clients = {"count": 40, "exchanges": 5, "max_retransmit": 1, "controller": "rfc7252"}
    plan = {
        "name": "lossy",
        "scenario": {"path": {"uplink": link, "downlink": link | {"rate": "30 kbit/s"}}, "clients": [clients]},
        "replications": 3,
        "matrix": {"devices": [2, 40, 50]},
        "vary": {"devices": {"places": ["clients[0].count"]}},
    }
    lossy = millpond.sweep(plan, out=tmp_path / "out", report=False)
    out = io.StringIO()
    terminal.show(lossy.tables, out)
    few, some, many = lossy.summary.to_pylist()
    assert 0 == few["failed"] < some["failed"] < many["failed"]
    text = " ".join(out.getvalue().split())
    for told in (few, some, many):
        assert f"{told['n']} of {told['clients_of_all_runs']} {told['failed']} " in text
    assert " never " in text
    measures = Measures(lossy.results)
    said = [in_words(measures, "clients_done_99", population) for population in measures.populations()]
    assert said[0].endswith(" s")
    assert said[2] == "never"
    runs = measures.reported.each_run(lossy.results.cells[1], None, 0.99)
    assert said[1].endswith(f"in {int(np.isfinite(runs).sum())} of 3 runs"), runs


def test_pairs_of_runs_are_compared_seed_by_seed() -> None:
    times = dict(enumerate([10, 20, 30, 11, 23, 32, 30, 31, 50]))
    made = hand_made.results(
        [({}, ["first"]), ({}, ["second"]), ({}, ["third"])],
        flows=[{"run": run, "flow": 0, "fct_us": seconds * 1_000_000} for run, seconds in times.items()],
        replications=3,
    )
    measures = Measures(made)
    first, second, third = measures.populations()
    assert difference_in_words(measures, "fct", first, first) == "="
    # 1, 3 and 2 s more, so 2 s, and half of its interval is t(0.975, 2) times 1 s over the root of 3
    assert difference_in_words(measures, "fct", first, second) == "= +2 (-0.484 to +4.48)"
    # 20, 11 and 20 s more
    assert difference_in_words(measures, "fct", first, third) == "+17 (+4.09 to +29.9)"
    assert difference_in_words(measures, "delivery_ratio", first, second) == "\N{EN DASH}"


def test_factors_are_spoken_of_as_the_plan_says(done: Run) -> None:
    found = done.results.factors
    assert found["queue"].label == "buffer"
    assert found["queue"].say("1 kB") == "1 kB buffer"
    assert found["clients[0].count"].say(2) == "clients[0].count 2"
    assert Grid(done.results).across == "clients[0].count"


def test_report_writes_figures_and_tables_as_files(
    done: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", str(done.directory), "--figures", "svg", "--tables", "latex", "--out", str(tmp_path / "paper")])
    assert ended.value.code == 0
    assert "files in" in capsys.readouterr().out
    written = {file.name for file in (tmp_path / "paper").iterdir()}
    assert {"multiples-fct.svg", "overview.tex"} <= written
    with pytest.raises(SystemExit) as ended:
        main(["report", str(done.directory), "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "--figures svg,pdf" in capsys.readouterr().err


def test_a_run_writes_figures_and_tables_as_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text('path = "nbiot-anrw18"\n[[clients]]\ncount = 2\ncontroller = "rfc7252"\nexchanges = 2\n')
    command = ["run", str(scenario), "--out", str(tmp_path / "out"), "--no-report"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--figures", "svg", "--tables", "csv"])
    assert ended.value.code == 0
    assert "files in" in capsys.readouterr().out
    assert {file.suffix for place in ("figures", "tables") for file in (tmp_path / "out" / place).iterdir()} == {
        ".svg",
        ".csv",
    }
    with pytest.raises(SystemExit) as ended:
        main([*command, "--draw", "--tables", "csv"])
    assert ended.value.code == 2
    assert "--tables: --draw runs nothing, so that there are none" in capsys.readouterr().err


def test_columns_name_their_unit_and_break_no_word(done: Run) -> None:
    told = io.StringIO()
    terminal.show(done.tables, told)
    for words in ("time (s)", "per client", "clients done"):
        assert words in " ".join(told.getvalue().split()), words
    assert "unnecessa " not in told.getvalue()
    assert "8 settings, 16 runs" in told.getvalue()


def test_all_runs_of_shards_are_counted(tmp_path: Path) -> None:
    plan = small_sweep.write(tmp_path)
    for number in (1, 2):
        millpond.sweep(plan, out=tmp_path / "parts" / str(number), shard=(number, 2), report=False)
    told = io.StringIO()
    terminal.show(Run(millpond.Results.open(tmp_path / "parts")).tables, told)
    assert "8 settings, 16 runs" in told.getvalue()


def test_a_logarithmic_axis_is_labelled_within_a_power_of_ten(done: Run) -> None:
    figure = figures.completion_by_place(done.results).draw()
    figure.canvas.draw()
    for panel in figure.axes:
        low, high = panel.get_ylim()
        told = [label for label in panel.get_yticklabels() if label.get_text()]
        labels = [label for label in told if low <= label.get_position()[1] <= high]
        assert len(labels) >= 2
    check_texts(figure)


def test_an_unknown_format_is_refused_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = small_sweep.write(tmp_path)
    with pytest.raises(SystemExit):
        main(["sweep", str(plan), "--out", str(tmp_path / "out"), "--figures", "png"])
    assert "--figures: unknown format 'png': known: svg, pdf" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
