"""Two controllers on one bottleneck: each half beside the same controller alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millpond.results.directory import Results
from millpond.show.document import Missing, Plot
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.grid import Facet, Grid, members, only
from millpond.show.report.style import Look

WHITE, GREY = Look("#ffffff", "-", "", ""), Look("#bbbbbb", "-", "", "////")


def sharing(results: Results | Grid, view: Facet | None = None) -> Plot:
    """Flow completion times of each half of a mix, beside those of as many clients that all have its controller.

    A panel per place. Raises `Missing` if no mix was run.
    """
    grid = Grid.of(results)
    view = view or grid.whole
    alone = {(only(cell), grid.spot(cell)): cell for cell in grid.plain(view)}
    points = []
    for cell in grid.cells:
        if not cell.mixed or not view.covers(cell):
            continue
        for group in cell.groups:
            name, look, words = group.algorithm, grid.looks[group.algorithm], grid.spot_in_words(cell)
            partner = ", ".join(grid.label(other) for other in members(cell) if other != name)
            same, mixed = alone.get((name, grid.spot(cell))), grid.spread("fct", cell, group)
            lone = grid.spread("fct", same) if same is not None else None
            x = f"{grid.label(name)}\nbeside {partner}"
            for side, who, spread in (("left", "all", lone), ("right", "half", mixed)):
                if mixed is not None and spread is not None:
                    told = (*grid.spot(cell), name, who, partner)
                    how = Look("#ffffff", look.dash, look.marker, "") if side == "left" else look
                    points.append(Point("", words, x, side, spread, told, how))
    if not points:
        raise Missing("Two controllers on one bottleneck are not drawn: no mix was run.")
    keys = ("left of the pair: all clients have this controller", "right: half of them, the other half its neighbour's")
    header = (*grid.columns, "controller", "share_of_clients", "neighbour")
    return pairs(points, header, keys)


def pairs(
    points: Sequence[Point],
    header: Sequence[str],
    keys: tuple[str, str],
    *,
    zoom: float = 0.25,
    published: Mapping[facets.Place, float] | None = None,
) -> Plot:
    """Boxes in pairs, `left` and `right`, one of them white: a panel for each place, a pair for each controller."""
    first = next(point for point in points if point.series == "left" or point.look is not None)
    white_first = first.look is not None and (first.look.colour == "#ffffff") == (first.series == "left")
    left, right = (WHITE, GREY) if white_first else (GREY, WHITE)
    legend: list[marks.Key] = [marks.area_key(left, keys[0]), marks.area_key(right, keys[1])]
    if published:
        legend.append(marks.published_key())
    spec = Spec(
        "box",
        "flow completion time (s)",
        {"left": ("", left), "right": ("", right)},
        tick=lambda x: str(x).replace(" ", "\n"),
        wrapped=True,
        zoom=zoom,
        height=3.3,
        published=published or {},
        keys=legend,
    )
    return facets.plot(points, spec, header)
