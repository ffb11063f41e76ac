"""The pictures of a page, drawn on several cores: here, and by render workers, which compose the page too.

Drawing is Python, in which threads wait for one another. Render workers are other programs: there are threads here, so
nothing can be forked, and `multiprocessing` would run the caller's script once more.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import pickle
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import psutil
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from millpond.show.document import Missing, Picture, Rows, Section
from millpond.show.report import style

PIXELS_PER_INCH = 99
"""How large pictures are shown, where the window allows; type on them then has the size of the text around."""
MANY_CELLS = 100
"""A render worker needs a second or two until it draws. Results of so many cells have a page that takes longer."""
MOST_PAINTERS = 3
"""Each has its own copy of the columns that it draws."""

_SHORT = re.compile(r"(\.\d\d)\d+")
"""Finer than a hundredth of a point nobody sees."""
_PAINT = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal is their parent's business
from millpond.show import drawing
drawing.paint()
"""


@dataclass(frozen=True)
class Drawn:
    """A picture as it stands on the page."""

    image: str = ""
    """As the address of an image, which holds it."""
    width: int = 0
    """In pixels."""
    rows: Rows | None = None
    """Its numbers."""
    missing: str = ""
    """Why it could not be drawn; if not empty there is nothing else."""


def draw(picture: Picture) -> Drawn:
    """Draw a picture."""
    try:
        plot = picture.plot()
        figure = plot.draw()
    except Missing as reason:
        return Drawn(missing=str(reason))
    encoded = base64.b64encode(svg(figure).encode()).decode("ascii")
    return Drawn(f"data:image/svg+xml;base64,{encoded}", round(figure.get_figwidth() * PIXELS_PER_INCH), plot.rows)


def svg(figure: Figure) -> str:
    """The picture as SVG text: always the same for the same picture, letters drawn as shapes."""
    out = io.StringIO()
    style.literally(figure)
    with style.applied():
        # once: `savefig` lays a figure out by drawing it for nobody first
        painted: Callable[..., None] = FigureCanvasSVG(figure).print_svg
        painted(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = re.sub(r' d="[^"]*"', lambda path: _SHORT.sub(r"\1", path[0]), text)
    return re.sub(r"\s*\n\s*", "\n", text[text.index("<svg") :])


def pictures_of(sections: Sequence[Section]) -> list[Picture]:
    """All pictures of a page, in order."""
    return [picture for section in sections for picture in section.pictures]


class Painters:
    """Programs that draw pictures of one page. Without any, or should they end, everything is drawn here."""

    def __init__(self, programs: Sequence[subprocess.Popen[bytes]] = ()) -> None:
        self._programs = programs

    def draw(self, pictures: Sequence[Picture]) -> list[Drawn]:
        """Draw all pictures of the page: from the first on here, from the last on by render workers."""
        waiting = deque(range(len(pictures)))
        found: dict[int, Drawn] = {}
        asking = [threading.Thread(target=_ask, args=(program, waiting, found)) for program in self._programs]
        for thread in asking:
            thread.start()
        try:
            for number in _taken(waiting.popleft):
                found[number] = draw(pictures[number])
        except BaseException:
            waiting.clear()
            for program in self._programs:
                program.kill()
            raise
        finally:
            for thread in asking:
                thread.join()
        # what a render worker had begun when it ended
        return [found[number] if number in found else draw(picture) for number, picture in enumerate(pictures)]


@contextlib.contextmanager
def painters(compose: Callable[[], Sequence[Section]], cells: int) -> Iterator[Painters]:
    """Render workers for the page that `compose` gives, at work while it is composed here; none if it has few pictures.

    They are handed `compose` itself, which opens its results again where it is called.
    """
    wanted = min((psutil.cpu_count() or 1) - 1, MOST_PAINTERS) if cells >= MANY_CELLS else 0
    programs: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(wanted):
            with contextlib.suppress(OSError):
                programs.append(_begin(compose))
        yield Painters(programs)
    finally:
        for program in programs:
            program.kill()
            program.communicate()


def paint() -> None:
    """What a render worker does until nobody tells it anything more."""
    told, answers = sys.stdin.buffer, sys.stdout.buffer
    pictures = pictures_of(pickle.load(told)())
    while True:
        try:
            number = pickle.load(told)
        except EOFError:
            return
        pickle.dump(draw(pictures[number]), answers)
        answers.flush()


# ----------------------------------------------------------------------------------------------- helpers


def _begin(compose: Callable[[], Sequence[Section]]) -> subprocess.Popen[bytes]:
    """A render worker that knows what it will be asked about."""
    # it finds this very package wherever that was found
    places = os.pathsep.join(place for place in sys.path if place)
    program = subprocess.Popen(
        [sys.executable, "-c", _PAINT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": places},
    )
    try:
        _tell(program.stdin, compose)
    except OSError:
        program.kill()
        program.communicate()
        raise
    return program


def _ask(program: subprocess.Popen[bytes], waiting: deque[int], found: dict[int, Drawn]) -> None:
    """Have a render worker draw what waits, from the end on, as long as it answers."""
    for number in _taken(waiting.pop):
        try:
            _tell(program.stdin, number)
            found[number] = pickle.load(_open(program.stdout))
        except (OSError, EOFError, pickle.UnpicklingError):
            return


def _taken(take: Callable[[], int]) -> Iterator[int]:
    """What is taken until nothing is left; others take too."""
    while True:
        try:
            number = take()
        except IndexError:
            return
        yield number


def _tell(pipe: IO[bytes] | None, what: object) -> None:
    pickle.dump(what, _open(pipe))
    _open(pipe).flush()


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
