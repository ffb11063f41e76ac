"""Figures and tables of a report as files: text stays text, the same results give the same bytes."""

from __future__ import annotations

import contextlib
import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import synthetic_results
from matplotlib.figure import Figure
from picture_checks import check_texts

import millpond
from millpond.errors import UsageError
from millpond.show import export, text
from millpond.show.document import Listing, Missing, Section
from millpond.show.report import style
from millpond.studies import pages


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Section]:
    return pages.sections(synthetic_results.single(tmp_path_factory.mktemp("single")))


def test_every_figure_is_written_with_its_text_as_text(results: list[Section], tmp_path: Path) -> None:
    files = export.figures(results, tmp_path / "new" / "folder")
    assert {file.name for file in files} == {
        f"{name}.{ending}" for name in ("reported", "queue", "fct", "histogram") for ending in ("svg", "pdf")
    }
    drawn = next(file for file in files if file.name == "reported.svg")
    texts = [element.text for element in ET.parse(drawn).iter() if element.tag.endswith("text")]
    assert "share of clients done" in texts
    assert "Default CoAP (rfc7252)" in texts
    assert all(file.read_bytes().startswith(b"%PDF") for file in files if file.suffix == ".pdf")


def test_dollars_in_a_name_are_dollars(tmp_path: Path) -> None:
    clients = [
        {"count": 1, "exchanges": 2, "controller": "rfc7252", "name": name}
        for name in (r"costs $\frac$ more", "from $1 to $2")
    ]
    done = millpond.run({"path": "nbiot-anrw18", "clients": clients}, out=tmp_path / "out")
    assert done.report is not None
    drawn = next(
        file for file in export.figures(done.document.sections, tmp_path, ["svg"]) if file.name == "reported.svg"
    )
    texts = [element.text for element in ET.parse(drawn).iter() if element.tag.endswith("text")]
    assert {r"costs $\frac$ more", "from $1 to $2"} <= set(texts)


def test_powers_of_ten_on_an_axis_stay_powers() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_ylim(1, 1000)
    axes.set_title("$1 to $2")
    words = "".join(ET.fromstring(export.image(figure, "svg")).itertext())
    assert "$1 to $2" in words
    assert "mathdefault" not in words


def test_the_same_results_give_the_same_files(results: list[Section], tmp_path: Path) -> None:
    one, other = (export.figures(results, tmp_path / name) for name in ("one", "other"))
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]


def test_tables_and_the_numbers_of_figures_are_written(results: list[Section], tmp_path: Path) -> None:
    files = {file.name: file for file in export.tables(results, tmp_path)}
    assert {"reported-table.csv", "reported-table.tex", "requests.csv", "links-table.tex", "fct.csv"} <= set(files)
    rows = list(csv.reader(files["reported-table.csv"].read_text().splitlines()))
    assert rows[0][:3] == ["group", "clients", "complete"]
    assert rows[1][:3] == ["Default CoAP (rfc7252)", "10", "10"]
    written = files["requests.tex"].read_text()
    assert r"\begin{tabular}{lrrrrrr}" in written
    assert written.count(r" \\") == 3


def test_what_latex_reads_as_commands_stands_for_itself() -> None:
    listing = Listing("t", ("a_b", "share"), (("50 % & more",), ("#1", "{x}")), numeric=(1,))
    written = text.latex(listing)
    assert r"a\_b & share \\" in written
    assert r"\multicolumn{2}{l}{\textbf{50 \% \& more}} \\" in written
    assert r"\#1 & \{x\} \\" in written


def test_an_unknown_format_is_one_line_that_names_the_nearest(results: list[Section], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--figures: unknown format 'pfd'.*pdf"):
        export.figures(results, tmp_path, ["pfd"])
    with pytest.raises(UsageError, match="--tables: unknown format"):
        export.tables(results, tmp_path, ["xlsx"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [3.5, 7.0])
def test_figures_for_a_column_of_a_paper_clip_nothing(results: list[Section], width: float) -> None:
    drawn = 0
    with style.as_wide_as(width):
        for picture in (picture for section in results for picture in section.pictures):
            with contextlib.suppress(Missing):
                figure = picture.plot().draw()
                assert figure.get_figwidth() <= width
                check_texts(figure)
                drawn += 1
    assert drawn >= 4


def test_a_width_that_no_figure_has_is_one_line(results: list[Section], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--width: 2: 3 to 10\.5 inches, such as 3\.5 or 7"):
        export.figures(results, tmp_path, ["pdf"], 2)


def test_fonts_are_embedded_as_truetype(results: list[Section], tmp_path: Path) -> None:
    file = next(file for file in export.figures(results, tmp_path, ["pdf"], 3.5) if file.name == "fct.pdf")
    written = file.read_bytes()
    assert b"/FontFile2" in written
    assert b"/Type3" not in written
