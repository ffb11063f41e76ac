"""Checks of pictures: every text is inside, and none lies on another."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from millpond.show.report import style


def laid_out(figure: Figure) -> RendererBase:
    with style.applied():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        renderer: RendererBase = canvas.get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def panels(figure: Figure) -> list[Axes]:
    return [panel for panel in figure.axes if panel.get_visible()]


def check_texts(figure: Figure) -> None:
    renderer = laid_out(figure)
    seen: list[tuple[str, Bbox]] = []
    for text in _texts(figure):
        box = text.get_window_extent(renderer)
        assert box.x0 >= -1, text.get_text()
        assert box.y0 >= -1, text.get_text()
        assert box.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert box.y1 <= figure.bbox.y1 + 1, text.get_text()
        # a hair of overlap between letters' boxes is not seen
        box = box.padded(-1.5)
        for other, there in seen:
            assert not box.overlaps(there), (text.get_text(), other)
        seen.append((text.get_text(), box))


def _texts(figure: Figure) -> list[Text]:
    """Every text that is drawn; ticks outside of the view are not."""
    drawn = [*panels(figure), *(child for panel in panels(figure) for child in panel.child_axes)]
    found = [text for legend in figure.legends for text in legend.get_texts()] + list(figure.texts)
    for panel in drawn:
        found += [panel.xaxis.label, panel.yaxis.label, panel.title, *panel.texts]
        found += [text for text in panel.get_children() if isinstance(text, Text)]
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if low <= tick.get_loc() <= high:
                    found += [label for label in (tick.label1, tick.label2) if label.get_visible()]
    return [text for text in dict.fromkeys(found) if text.get_visible() and text.get_text().strip()]
