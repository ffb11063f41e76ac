"""What is shown of a fleet: sites as distributions, a map on which the worst stand out, and how to look at one."""

from __future__ import annotations

from functools import partial

from millpond.measure.measures import Measures
from millpond.measure.sites import Number, Site, Sites
from millpond.results import provenance
from millpond.results.directory import Results
from millpond.show import labels
from millpond.show.document import Listing, Picture, Row, Section
from millpond.show.report.figures import sites as pictures

#: So many of the worst sites are listed.
WORST = 30
STATISTICS = ("median", "p10", "p90", "worst")


def sections(results: Results) -> list[Section]:
    """Everything that a fleet shows."""
    sites = Sites(Measures(results))
    every = Picture(
        "sites",
        "Sites as distributions",
        "The share of sites of each kind that have at most this value; where a line is steep, sites do alike.",
        partial(pictures.distributions, sites),
    )
    shown = [
        Picture(
            f"map-{number.name.replace('_', '-')}",
            f"Map of sites: {number.title}",
            "A square is a site, in the order of the plan, a row after the other; the darker the worse. Framed are the "
            f"{pictures.FRAMED} worst.",
            partial(pictures.site_map, sites, number),
        )
        for number in pictures.mapped(sites)
    ]
    devices = sum(kind.devices for kind in sites.kinds)
    many = sum(len(kind.seeds) for kind in sites.kinds)
    lead = f"{labels.count(many)} sites with {labels.count(devices)} devices, each site with random streams of its own."
    return [
        Section("summary", "In short", (lead,), listings=(_kinds(sites),)),
        Section("sites", "Sites", ("No row of a device is kept: a site is a row.",), (every,)),
        Section("map", "Where it is worst", (_look(sites),), tuple(shown), (_worst(sites),)),
        Section("run", "What was run", (provenance.statement([said for _, said in results.folders]),), detail=True),
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _kinds(sites: Sites) -> Listing:
    rows: list[Row] = []
    for kind in sites.kinds:
        rows.append((f"{sites.place_in_words(kind)}: {labels.count(len(kind.seeds))} sites, "
                     f"{labels.count(kind.devices)} devices",))  # fmt: skip
        for number in sites.numbers:
            told = (number.written(kind.take(number, statistic)) for statistic in STATISTICS)
            rows.append((number.title, *told))
    header = ("of a site", *map(labels.statistic, STATISTICS))
    return Listing("sites-by-kind", header, tuple(rows), "Percentiles are over sites.", (1, 2, 3, 4))


def _worst(sites: Sites) -> Listing:
    found = sites.worst(WORST)
    header = ("site", "where", "seed", *(number.title for number in sites.numbers))
    return Listing(
        "worst-sites",
        header,
        tuple(_row(sites, site) for site in found),
        "By the numbers from left to right.",
        tuple(range(2, len(header))),
        title=f"The {len(found)} worst sites",
        folded=True,
    )


def _row(sites: Sites, site: Site) -> tuple[str, ...]:
    return (str(site.kind.cell.first_run + site.place), sites.place_in_words(site.kind), str(site.seed),
            *(number.written(site.value(number)) for number in sites.numbers))  # fmt: skip


def _look(sites: Sites) -> str:
    (worst,) = sites.worst(1)
    number: Number = sites.numbers[0]
    return (
        f"The worst is site {worst.kind.cell.first_run + worst.place} ({sites.place_in_words(worst.kind)}): "
        f"{number.title} {number.written(worst.value(number))}. Packet by packet: millpond capture "
        f"{sites.measures.results.kept.name} worst.pcapng --cell {worst.kind.cell.id} --replication {worst.place}"
    )
