"""Colours, line styles, markers, hatches and font sizes of every picture, in one place so that all figures agree.

The colours are the colour-blind-safe set of Okabe and Ito. No picture relies on colour alone: every controller also has
its own line style, marker and hatch, so that a black-and-white print still distinguishes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import matplotlib
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter

FILL, PALE = 0.6, 0.35
"""How much of the colour is in a filled area, and of that again in a pale one; the rest is white."""

Dash: TypeAlias = Any
"""A line style as matplotlib takes it: a name, or an offset and a sequence of lengths on and off."""
Marker: TypeAlias = str | tuple[int, int, float]
"""A marker as matplotlib takes it: a letter, or a number of corners, polygon (0) or star (1), and an angle."""


@dataclass(frozen=True)
class Look:
    """How one series is drawn wherever it appears."""

    colour: str
    """Colour of lines and markers, as `#rrggbb`."""
    dash: Dash
    """Line style."""
    marker: Marker
    """Marker of points and of sparse marks on lines."""
    hatch: str
    """Hatch of filled areas. Straight lines only: a hatch of circles makes a picture ten times as large."""

    @property
    def fill(self) -> str:
        """The colour mixed with white, for areas: hatch, median and marker stand out on it, in grey too."""
        return self._mixed(FILL)

    @property
    def pale(self) -> Look:
        """The same for an area that belongs to the series but is not what it stands for: nearly white, no hatch."""
        return Look(self._mixed(PALE), self.dash, self.marker, "")

    def _mixed(self, share: float) -> str:
        parts = (int(self.colour[at : at + 2], 16) for at in (1, 3, 5))
        return "#" + "".join(f"{round(share * part + (1 - share) * 255):02x}" for part in parts)


SOLID = Look("#D55E00", "-", "o", "")
"""The look of a picture that has only one series."""

PRESETS: dict[str, Look] = {
    "rfc7252": SOLID,
    "default-fb1": Look("#E69F00", (0, (6, 2)), "^", "////"),
    "default-fb2": Look("#8C5A78", (0, (1.2, 1.6)), "v", "||||"),
    "cocoa-03": Look("#0072B2", "-", "s", "\\\\\\\\"),
    "cocoa-fb1": Look("#56B4E9", (0, (6, 2)), "D", "xxxx"),
    "cocoa-fb2": Look("#009E73", (0, (1.2, 1.6)), "P", "----"),
    "cocoa-s": Look("#6FA8C9", (0, (3, 1.5)), (4, 1, 0), "\\\\\\"),
    "cocoa-weak-all": Look("#17A398", (0, (9, 2)), "p", "/////"),
    "cocoa-echo": Look("#4F6D1E", (0, (6, 2, 1.2, 2)), "*", "\\\\\\\\\\"),
    "cocoa-number": Look("#3C7D5A", (0, (5, 1)), (3, 1, 0), "-----"),
    "cocoa-flag": Look("#98C379", (0, (2, 1)), (3, 1, 180), "|||||"),
    "cocoa-00": Look("#1F3B73", (0, (8, 3)), "H", "--"),
    "cocoa-plus": Look("#7AA0E0", (0, (4, 2)), "8", "||"),
    "fasor": Look("#6A3D9A", "-", (5, 0, 180), "xxx"),
    "fasor-token": Look("#B294D1", (0, (6, 2)), (6, 1, 0), "+++"),
    "fasor-count": Look("#44275F", (0, (1.2, 1.6)), (8, 1, 0), "xxxxx"),
    "linux-rto": Look("#8A8A8A", "-", (7, 0, 0), "//"),
    "peak-hopper": Look("#A6761D", "-", (3, 0, 90), "\\\\"),
    "basic-rto": Look("#C9A66B", (0, (6, 2)), (3, 0, 270), "+++++"),
    "coap-plus-rate": Look("#5B7F00", "-", (4, 0, 45), "/|/|"),
    "coap-plus-rate-responsive": Look("#A4C400", (0, (6, 2)), (4, 0, 0), "\\\\|\\\\|"),
    "bbr-con": Look("#1B6CA8", "-", (8, 1, 22.5), "|*|*"),
    "tfrc-non": Look("#B0413E", (0, (4, 1.5, 1.2, 1.5)), (6, 1, 30), "-|-|"),
    "calm": Look("#00539C", "-", (5, 1, 0), "oo"),
    "calm-unlimited": Look("#5A9BD4", (0, (6, 2)), (5, 1, 36), "ooo"),
    "tcp-new-reno": Look("#A33B20", "-", "X", "//////"),
    "tcp-cubic": Look("#7A4EAB", (0, (4, 1, 1, 1)), (9, 1, 0), "xxxxxx"),
    "tcp-linux-cubic": Look("#B79BD6", (0, (6, 2)), (9, 1, 20), "xxxxxxx"),
    "tcp-bbr": Look("#00876C", (0, (6, 2)), "h", "\\\\\\\\\\\\"),
    "coap-over-tcp": Look("#6E3B2A", (0, (1.2, 1.6)), (7, 1, 180), "\\\\\\\\|"),
    "q-block2": Look("#D16BA5", (0, (1.2, 1.6)), (5, 1, 180), "---"),
    "q-block2-paced": Look("#8E3B6E", (0, (6, 2)), (3, 1, 90), "-/"),
}
"""The published controllers: the hue tells the family, dashes and hatches the variant. Then other ways to transfer."""

OWN = Look("#E6007E", "-", (7, 1, 0), "++++")
"""The accent: the first controller of the reader's own."""
SPARE: tuple[Look, ...] = (
    Look("#333333", (0, (8, 2, 1.5, 2)), (4, 1, 22.5), "////|"),
    Look("#B8A500", (0, (4, 1.5, 1.2, 1.5, 1.2, 1.5)), (4, 1, 45), "///"),
    Look("#CC79A7", (0, (10, 3)), "<", "|||"),
    Look("#777777", (0, (3, 3)), ">", "xx"),
)
"""Looks for controllers that have no fixed one, given out in order of first appearance."""

SENT = "#0072B2"
"""Colour of data that leaves for the first time."""
AGAIN = "#E69F00"
"""Colour of data that leaves again."""
REACHED = "#1a1a1a"
"""Colour of what is acknowledged."""
QUEUE_DROP = "#C8321E"
"""Colour of packets that found the queue full."""
RADIO_DROP = "#8C3F9E"
"""Colour of packets that the radio lost."""
RECOVERY, LOSS, PROBE = "#f6e9c6", "#f2d6cb", "#d5e4f0"
"""Colours of the bands over which a connection repairs a loss, does so after a timeout, and probes the round trip."""

PUBLISHED = "#000000"
"""Colour of everything taken from a paper."""
INK = "#1a1a1a"
"""Colour of text, axes and box edges."""
GRID = "#d9d9d9"
"""Colour of grid lines."""

WIDTH = 10.5
"""Width of a full-page picture, in inches."""
COLUMNS = {3.5: 0.72, 7.0: 0.82}
"""Widths of pictures in a paper of one column and of two, and how large type on them is beside that on a page."""
_width: ContextVar[float] = ContextVar("width", default=WIDTH)

_SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.7,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
    "savefig.dpi": 130,
    "svg.fonttype": "path",
    "svg.hashsalt": "millpond",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 9.5,
    "ytick.color": INK,
    "ytick.labelsize": 9.5,
}

_SIZES = ("axes.labelsize", "axes.titlesize", "font.size", "legend.fontsize", "lines.linewidth", "xtick.labelsize",
          "ytick.labelsize")  # fmt: skip


def width() -> float:
    """How wide pictures are drawn, in inches."""
    return _width.get()


def scale() -> float:
    """How large type is, beside that on a page."""
    return next((size for most, size in COLUMNS.items() if _width.get() <= most), 1.0)


@contextmanager
def as_wide_as(inches: float) -> Iterator[None]:
    """Draw pictures so wide, with type to match."""
    before = _width.set(inches)
    try:
        yield
    finally:
        _width.reset(before)


@contextmanager
def applied(further: Mapping[Any, Any] | None = None) -> Iterator[None]:
    """Draw with the house settings, and `further` ones, and leave the caller's own settings untouched."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        size = scale()
        sized = {key: value * size for key, value in _SETTINGS.items() if key in _SIZES}
        matplotlib.rcParams.update({**_SETTINGS, **sized, **(further or {})})
        yield


def literally(figure: Figure) -> None:
    """Have every word of a picture stand for itself: two dollars in a name make no formula of it.

    Powers of ten along logarithmic axes are formulas that matplotlib writes.
    """
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            powers = isinstance(axis.get_major_formatter(), LogFormatter)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()) if powers else ():
                tick.label1.set_parse_math(True)
                tick.label2.set_parse_math(True)


def looks(presets: Mapping[str, str], own: Collection[str] = ()) -> dict[str, Look]:
    """The look of each name: its preset's, the accent for one of one's `own`, and spare ones for others, in order.

    Of several names with one preset the first has its look.
    """
    found: dict[str, Look] = {}
    spare = iter([*SPARE] * (1 + len(presets) // len(SPARE)))
    for name, preset in presets.items():
        usual = PRESETS.get(preset)
        if name in own and OWN not in found.values():
            found[name] = OWN
        elif usual is not None and usual not in found.values():
            found[name] = usual
        else:
            found[name] = next(spare)
    return found
