"""What the terminal shows of a fleet: its sites by what they are, as distributions, and the worst of them."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.measure.measures import Measures
from millpond.measure.sites import Sites
from millpond.show import labels
from millpond.show.tables import titled

#: So many of the worst sites are named.
WORST = 10
#: What is told of each distribution.
STATISTICS = ("median", "worst")


def of_fleet(measures: Measures) -> list[RenderableType]:
    """The tables of a fleet."""
    sites = Sites(measures)
    return [_kinds(sites), _worst(sites), Text(in_short(sites))]


def in_short(sites: Sites) -> str:
    """How many there are, in a sentence."""
    devices = sum(kind.devices for kind in sites.kinds)
    many = sum(len(kind.seeds) for kind in sites.kinds)
    return f"{labels.count(many)} sites with {labels.count(devices)} devices, each with luck of its own."


# ----------------------------------------------------------------------------------------------- helpers


def _kinds(sites: Sites) -> Table:
    table = titled(str(sites.measures.results.manifest["title"]))
    table.add_column("number", overflow="fold")
    table.add_column("of a site", no_wrap=True)
    for kind in sites.kinds:
        where = f"{sites.place_in_words(kind)}\n{labels.count(len(kind.seeds))} sites"
        table.add_column(escape(where), justify="right", overflow="fold")
    for number in sites.numbers:
        for statistic in STATISTICS:
            values = (number.written(kind.take(number, statistic)) for kind in sites.kinds)
            table.add_row(number.title if statistic == STATISTICS[0] else "", statistic, *values)
    return table


def _worst(sites: Sites) -> Table:
    numbers = sites.numbers[:3]
    table = titled("The worst sites")
    for name in ("site", "seed"):
        table.add_column(name, justify="right")
    table.add_column("where", overflow="fold")
    for number in numbers:
        table.add_column(number.title.replace(" ", "\n"), justify="right")
    for site in sites.worst(WORST):
        values = (number.written(site.value(number)) for number in numbers)
        table.add_row(
            str(site.kind.cell.first_run + site.place), str(site.seed), escape(sites.place_in_words(site.kind)), *values
        )
    return table
