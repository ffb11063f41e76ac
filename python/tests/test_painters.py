"""The pictures of a page by several programs: the same page, also where these cannot be had or end."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import psutil
import pytest
import synthetic_results
from synthetic_results import comparison

from millpond.results.directory import Results
from millpond.show import drawing
from millpond.show.document import Picture
from millpond.studies import pages as page

Programs = list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return synthetic_results.study(
        tmp_path_factory.mktemp("painted"),
        clients=(10, 400),
        buffers=(14_100, 28_200),
        workloads=("continuous",),
        mixes=False,
        jitter=False,
    )


@pytest.fixture(scope="module")
def alone(results: Results) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "MANY_CELLS", len(results.cells) + 1)
        return page.render(results, comparison(results))


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Programs:
    """The painters of any page from now on, two of them on any machine."""
    begun: Programs = []
    begin = drawing._begin

    def noted(*told: Any) -> subprocess.Popen[bytes]:
        begun.append(begin(*told))
        return begun[-1]

    monkeypatch.setattr(drawing, "MANY_CELLS", 0)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 3)
    monkeypatch.setattr(drawing, "_begin", noted)
    return begun


@pytest.fixture
def painted(begun: Programs, monkeypatch: pytest.MonkeyPatch) -> list[dict[int, drawing.Drawn]]:
    """What painters drew; here nothing is drawn before they drew something, or ended."""
    painted: list[dict[int, drawing.Drawn]] = []
    ask, draw = drawing._ask, drawing.draw

    class Noted(dict[int, drawing.Drawn]):
        def __setitem__(self, number: int, drawn: drawing.Drawn) -> None:
            painted.append({number: drawn})
            super().__setitem__(number, drawn)

    def asked(program: Any, waiting: Any, found: dict[int, drawing.Drawn]) -> None:
        mine = Noted()
        ask(program, waiting, mine)
        found.update(mine)

    def here(picture: Picture) -> drawing.Drawn:
        while not painted and any(program.poll() is None for program in begun):
            time.sleep(0.01)
        return draw(picture)

    monkeypatch.setattr(drawing, "_ask", asked)
    monkeypatch.setattr(drawing, "draw", here)
    return painted


def test_painters_draw_the_same_page(
    results: Results, alone: str, begun: Programs, painted: list[dict[int, drawing.Drawn]]
) -> None:
    assert page.render(results, comparison(results)) == alone
    assert painted
    assert len(begun) == 2
    assert all(program.returncode is not None for program in begun)


def test_what_painters_that_end_had_begun_is_drawn_here(
    results: Results, alone: str, painted: list[dict[int, drawing.Drawn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # they know of no pictures
    monkeypatch.setattr(
        drawing,
        "_PAINT",
        drawing._PAINT.replace("drawing.paint()", "drawing.pictures_of = lambda _: []; drawing.paint()"),
    )
    assert page.render(results, comparison(results)) == alone
    assert not painted


def test_a_page_is_whole_where_no_painter_can_be_had(
    results: Results, alone: str, begun: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/no/such/program")
    assert page.render(results, comparison(results)) == alone
    assert not begun


def test_painters_end_when_drawing_fails_here(
    results: Results, begun: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Picture) -> drawing.Drawn:
        raise KeyboardInterrupt

    monkeypatch.setattr(drawing, "draw", broken)
    with pytest.raises(KeyboardInterrupt):
        page.render(results, comparison(results))
    assert len(begun) == 2
    assert all(program.returncode is not None for program in begun)
