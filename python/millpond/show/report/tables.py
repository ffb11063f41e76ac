"""The tables of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from millpond.measure import proxies
from millpond.measure.estimate import Estimate
from millpond.measure.links import HEADS
from millpond.measure.links import of_each as links_of_each
from millpond.measure.population import Population
from millpond.measure.reported import Course, Outcome, with_an_end
from millpond.results import provenance
from millpond.results.directory import Cell
from millpond.results.factor import ALGORITHM, PATH, Value
from millpond.show import labels
from millpond.show.document import Listing, Rows
from millpond.show.report import story
from millpond.show.report.grid import Grid, links_of

NOTHING = "\N{EN DASH}"
"""What stands where there is nothing to tell."""
POINTS = ("50 % done by (s)", "90 %", "99 %", "100 %")
"""The columns of `measure.reported.SHARES`."""
COPIES = ("retransmissions per client", "of them spurious")
"""Means of these two columns."""
RETRANSMISSIONS = ("retransmissions", "unnecessary_retx")
#: Columns of the table `relays`.
RELAYED = ("passed_packets", "withheld_packets")
OUTCOME = ("clients", "complete", "lost a request", "unfinished", "requests failed", "never finished", "delivery ratio")
DONE = (
    "A client is complete when all its requests are answered. Times are since {}, for so large a share of all "
    "clients that asked; never: so many were not complete when the run ended."
)
TOGETHER = " Clients of all replications together, where the metrics of the same name are means over runs."
ENDLESS = " No time is told of work that goes on until the run ends."


def at_a_glance(grid: Grid, found: Sequence[story.Glance]) -> Listing:
    """The places that a study looks at closely, a row for each controller."""
    rows: list[tuple[str, ...]] = []
    strong = set()
    places = dict.fromkeys(g.place for g in found)
    for place in places:
        if len(places) > 1:
            rows.append((place,))
        for g in (g for g in found if g.place == place):
            if g.collapsed:
                strong.add(len(rows))
            rows.append(
                (
                    g.controller,
                    *_points(grid.reported.course(g.cell)),
                    f"{labels.percent(g.useful_share)}{' (collapsed)' if g.collapsed else ''}",
                    "" if math.isnan(g.copies) else f"{g.copies:.2f}",
                    labels.plain(g.unnecessary),
                )
            )
    where = f"With {found[0].place}. " if len(places) == 1 and found[0].place else ""
    return Listing(
        "glance",
        (
            "controller",
            *POINTS,
            "goodput ratio of the bottleneck",
            "copies per exchange (mean)",
            "unnecessary retransmissions per client (median)",
        ),
        tuple(rows),
        f"{where}Times in s since {grid.since([g.cell for g in found])}, of all clients of all replications. "
        f"Collapsed: less than {labels.percent(story.LEAST)} of the bytes are useful.",
        numeric=tuple(range(1, 4 + len(POINTS))),
        strong=frozenset(strong),
    )


def reported(grid: Grid) -> Listing:
    """Who is done by when and what became of the requests: every cell, folded away."""
    rows: list[tuple[str, ...]] = []
    plain: list[tuple[object, ...]] = []
    for cell in grid.cells:
        for group in cell.groups:
            mine = group if len(cell.groups) > 1 else None
            told, course = grid.reported.outcome(cell, mine), grid.reported.course(cell, mine)
            where = [grid.factors[name].tick(cell.columns.get(name, "")) for name in grid.columns]
            rows.append((*where, grid.label(group.algorithm), *_outcome(told), *_points(course)))
            plain.append(
                (
                    *grid.spot(cell),
                    *(group.algorithm, told.clients, told.complete, told.lost, told.unfinished, told.arrivals),
                    *(told.answered, told.failed, told.never_finished, told.delivered, *course.points.values()),
                )
            )
    factors = [grid.factors[name].axis for name in grid.columns]
    header = (*factors, "controller", *OUTCOME, *POINTS)
    columns = (
        *grid.columns,
        *("controller", "clients", "complete", "lost", "unfinished"),
        *("arrivals", "answered", "failed", "never_finished", "delivered"),
        *("done_50_s", "done_90_s", "done_99_s", "done_100_s"),
    )
    return Listing(
        "reported-table",
        header,
        tuple(rows),
        f"{DONE.format(grid.since(grid.cells))}{TOGETHER if grid.results.replications > 1 else ''}",
        numeric=tuple(range(len(factors) + 1, len(header))),
        title=f"Clients, requests and times of every setting ({len(rows)})",
        folded=True,
        detail=True,
        data=Rows(columns, tuple(plain)),
    )


def reported_by_group(grid: Grid) -> Listing:
    """When the clients of each group of a single scenario are done."""
    cell = grid.cells[0]
    rows: list[tuple[str, ...]] = []
    outcomes = [grid.reported.outcome(cell, group) for group in cell.groups]
    for group, told in zip(cell.groups, outcomes, strict=True):
        course = grid.reported.course(cell, group)
        parts = (*map(labels.count, (told.complete, told.lost, told.unfinished)), *_points(course))
        if told.is_silent:
            parts = (NOTHING,) * len(parts)
        rows.append((grid.label(group.algorithm), labels.count(told.clients), *parts))
    header: tuple[str, ...] = ("group", "clients", "complete", "lost a request", "unfinished", *POINTS)
    caption = f"{DONE.format(grid.since([cell]))}{TOGETHER if cell.replications > 1 else ''}"
    caption += ENDLESS if len(with_an_end(cell)) < len(cell.groups) else ""
    if any(0 < told.silent < told.clients for told in outcomes):
        header = (*header[:2], "asked nothing", *header[2:])
        rows = [(*row[:2], labels.count(told.silent), *row[2:]) for row, told in zip(rows, outcomes, strict=True)]
    return Listing("reported-table", header, tuple(rows), caption, numeric=tuple(range(1, len(header))))


def requests(grid: Grid) -> Listing:
    """What became of the requests of each group of a single scenario."""
    cell = grid.cells[0]
    rows = []
    for group in cell.groups:
        told = grid.reported.outcome(cell, group)
        counts = (told.arrivals, told.answered, told.failed, told.never_finished, told.delivered)
        ratio = labels.percent(told.delivery_ratio)
        rows.append((grid.label(group.algorithm), *(_count(value) for value in counts), ratio))
    header = ("group", "requests arrived", "answered", "failed", "never finished", "delivered", "delivery ratio")
    caption = (
        "Every request ends in one way: answered, failed (given up by its client, or refused by the full queue of its "
        "own application), or never finished (open when the run ended). Delivered: it reached the far side, whatever "
        "became of the answer."
    )
    return Listing("requests", header, tuple(rows), caption, numeric=tuple(range(1, len(header))))


def completion(grid: Grid) -> Listing:
    """How long the clients of each group of a single scenario took, or where none came to an end, single requests."""
    cell = grid.cells[0]
    times = {group: grid.measures.sample("fct", grid.measures.of(cell, group)) for group in cell.groups}
    if not any(one.n for one in times.values()) and (delays := _answer_delays(grid)) is not None:
        return delays
    statistics = ("min", "median", "p90", "max")
    rows = []
    for group, found in times.items():
        asked = found.n + found.missing - grid.reported.outcome(cell, group).silent
        told = [grid.estimated("fct", cell, group, statistic) for statistic in statistics]
        told += [grid.estimated(f"{name}_per_client", cell, group, "mean") for name in RETRANSMISSIONS]
        rows.append((grid.label(group.algorithm), covered(found.n, asked), *map(with_interval, told)))
    several = " Over several runs: of each run, their mean, with its 95 % interval." if cell.replications > 1 else ""
    return Listing(
        "groups",
        ("group", "of", *(f"{labels.statistic(name)} (s)" for name in statistics), *COPIES),
        tuple(rows),
        f"Flow completion times, of the clients whose last request was answered.{several}",
        numeric=tuple(range(2, 8)),
    )


def _answer_delays(grid: Grid) -> Listing | None:
    """Times from arrival to answer, where the requests of each group can be told apart; None if none was answered."""
    cell, measures = grid.cells[0], grid.measures
    populations = list(measures.populations())
    if not any(measures.sample("answer_delay", population).n for population in populations):
        return None
    rows = []
    for population in populations:
        group = measures.group(population) or cell.groups[0]
        told = grid.reported.outcome(cell, measures.group(population))
        found = [measures.estimate("answer_delay", population, name) for name in ("median", "p90", "p99")]
        copies = [measures.estimate(f"{name}_per_client", population, "mean") for name in RETRANSMISSIONS]
        of = f"{labels.count(told.answered)} of {_count(told.arrivals)} requests"
        rows.append((grid.label(group.algorithm), of, *map(with_interval, (*found, *copies))))
    return Listing(
        "groups",
        ("group", "of", "median (s)", "90th percentile (s)", "99th percentile (s)", *COPIES),
        tuple(rows),
        "Birth of a request to its answer, of the requests answered: no client's work came to an end.",
        numeric=(2, 3, 4, 5, 6),
    )


def with_interval(found: Estimate) -> str:
    """A number, and in brackets its 95 % interval if there is one that says anything."""
    told = labels.number(found.value)
    if found.interval is None or found.same:
        return told
    return f"{told} ({' to '.join(map(labels.number, found.interval))})"


def covered(there: int, of: int) -> str:
    """Of how many clients completion times speak: `7 of 10 clients (70.0 %)`."""
    share = f" ({labels.percent(there / of)})" if there < of else ""
    return f"{labels.count(there)} of {labels.clients(of)}{share}"


def by_place(grid: Grid, keep: Callable[[Population], bool] = lambda _: True) -> Listing:
    """Completion times and copies of every place: a column for each algorithm."""
    found: dict[tuple[Value, ...], dict[str, Population]] = {}
    for population in grid.measures.populations():
        if not population.partner and keep(population):
            found.setdefault(grid.spot(grid.measures.cell(population)), {})[population.algorithm] = population
    names = [name for name in grid.controllers() if any(name in here for here in found.values())]
    told = [at for at in range(len(grid.columns)) if len({place[at] for place in found}) > 1]
    # the factor of words with the fewest, and the reading of the test bed, make parts of the table
    words = [at for at in told if not grid.numeric(grid.columns[at])]
    fewest = sorted(words, key=lambda at: len({place[at] for place in found}))[: len(told) - 1]
    parts = [*fewest[:1], *(at for at in fewest[1:] if grid.columns[at] == PATH)]
    rows: list[tuple[str, ...]] = []
    before: tuple[Value, ...] = ()
    for place in grid.in_order(found, parts):
        if (part := tuple(place[at] for at in parts)) != before:
            before = part
            told_of = (grid.factors[grid.columns[at]].say(place[at]) for at in parts)
            rows.append((", ".join(filter(None, told_of)) or "as usual",))
        where = (grid.factors[grid.columns[at]].tick(place[at]) for at in told if at not in parts)
        rows.append((*where, *(_pair(grid, found[place].get(name)) for name in names)))
    heads = tuple(grid.factors[grid.columns[at]].axis for at in told if at not in parts)
    return Listing(
        "by-place",
        (*heads, *map(grid.label, names)),
        tuple(rows),
        "The median client's time in s, with the share of the clients that came to their end if not all did, and "
        "the unnecessary retransmissions of the median client.",
        numeric=tuple(range(len(heads), len(heads) + len(names))),
        title="Flow completion time in s / unnecessary retransmissions, by place",
        folded=True,
    )


def mixes(grid: Grid) -> Listing:
    """Two populations on one bottleneck: each beside the other, and as when all clients were like it."""
    measures = grid.measures
    mixed = [population for population in measures.populations() if population.partner]
    cells = [measures.cell(population) for population in mixed]
    told = [at for at in range(len(grid.columns)) if len({grid.spot(cell)[at] for cell in cells}) > 1]
    rows = []
    for population, cell in zip(mixed, cells, strict=True):
        like = population.but(partner="")
        where = (grid.factors[grid.columns[at]].tick(grid.spot(cell)[at]) for at in told)
        partner = ", ".join(map(grid.label, population.partner.split(";")))
        alike = _pair(grid, like if measures.has(like) else None)
        rows.append((*where, grid.label(population.algorithm), partner, _pair(grid, population), alike))
    header = (*(grid.factors[grid.columns[at]].axis for at in told), "half", "beside", "in the mix", "all alike")
    return Listing(
        "mixes-table",
        header,
        tuple(rows),
        numeric=(len(header) - 2, len(header) - 1),
        title="Half and half: median completion time in s / unnecessary retransmissions",
        folded=True,
    )


def _pair(grid: Grid, population: Population | None) -> str:
    if population is None:
        return ""
    fct = grid.measures.sample("fct", population)
    median, needless = (
        grid.measures.estimate(name, population).value for name in ("fct", "unnecessary_retx_per_client")
    )
    share = f" ({fct.covered:.0%})".replace("%", "\N{NARROW NO-BREAK SPACE}%") if fct.missing else ""
    return f"{labels.number(median)}{share}/{needless:.0f}"


def links(grid: Grid) -> Listing:
    """What each link of a single scenario carried, dropped and held."""
    cell = grid.cells[0]
    rows = []
    for name, found in links_of_each(grid.measures, cell).items():
        packets, shares, queue = found[:4], found[4:6], found[6:]
        told = (*map(labels.count, packets), *map(labels.percent, shares), *map(labels.size, queue))
        rows.append((labels.link(cell.scenario, name), *told))
    header = ("radio of" if cell.scenario.get("mesh") else "link", *HEADS)
    caption = "Of one run, mean over the replications." if cell.replications > 1 else ""
    return Listing("links-table", header, tuple(rows), caption, numeric=tuple(range(1, len(header))))


def relays_of(grid: Grid) -> Listing:
    """What each relay of a single scenario passed on and kept back; none without one."""
    cell = grid.cells[0]
    each = grid.measures.of_each("relays", cell, "relay", "link")
    rows = tuple((*of, *(labels.count(column(name).mean()) for name in RELAYED)) for of, column in each.items())
    runs = " Of one run, mean over the replications." if cell.replications > 1 else ""
    caption = (
        "Packets that each relay passed on, and copies of messages that still waited, which it kept back: they are in "
        f"no count of the link.{runs}"
    )
    return Listing("relays-table", ("relay", "before", "passed on", "copies kept back"), rows, caption, numeric=(2, 3))


def proxies_of(grid: Grid) -> Listing:
    """What each proxy of a single scenario was handed and sent; none without one."""
    cell = grid.cells[0]
    each = grid.measures.of_each("proxies", cell, "proxy")
    rows = []
    for (name,), column in each.items():
        told = ((column(one.column), one.is_most) for one in proxies.FIGURES)
        rows.append((name, *(labels.count(of.max() if is_most else of.mean()) for of, is_most in told)))
    runs = " Of one run, mean over the replications; most held is the largest of all." if cell.replications > 1 else ""
    caption = f"What each proxy was handed by clients, and sent to the server for them.{runs}"
    header = ("proxy", *(figure.head for figure in proxies.FIGURES))
    return Listing("proxies-table", header, tuple(rows), caption, numeric=tuple(range(1, len(header))))


def manifest(grid: Grid) -> Listing:
    """What was run, by what, and how much came of it."""
    said: Mapping[str, Any] = grid.results.manifest
    # what the server sends goes to clients that are counted already
    flows = sum(
        cell.replications * sum(group.count for group in cell.groups if group.traffic == "requests")
        for cell in grid.cells
    )
    seeds = [str(seed) for seed in said.get("seeds", [])]
    told = seeds if len(seeds) <= 3 else [seeds[0], seeds[1], "\N{HORIZONTAL ELLIPSIS}", seeds[-1]]
    settings = f"{labels.count(len(grid.cells))} settings" if len(grid.cells) > 1 else "1 setting"
    rows = [
        ("results of", ": ".join(str(said[key]) for key in ("name", "title") if said.get(key))),
        ("program", f"millpond {said.get('version', '')}"),
        ("command", " ".join(str(word) for word in said.get("command", []))),
        ("runs", f"{labels.count(grid.results.runs)}: {settings}, replications of each: {grid.results.replications}"),
        ("seeds", f"{', '.join(told)} ({len(seeds)} in manifest.json)"),
        ("clients in all runs", f"n = {labels.count(flows)}"),
        *_ends(grid),
    ]
    if grid.results.study is not None:
        paths = said.get("paths", {})
        rows += [
            (grid.results.reading.say(path), paths[path])
            for path in grid.paths
            if grid.results.reading.say(path) and paths.get(path)
        ]
        for name in (*grid.columns, *(n for n in grid.factors if n not in grid.columns)):
            factor = grid.factors[name]
            values = factor.ordered(cell.columns[name] for cell in grid.cells if name in cell.columns)
            words = [factor.tick(value) for value in values if value != ""]
            if name not in (ALGORITHM, PATH) and words:
                rows.append((factor.axis, ", ".join(words)))
        rows.append(("controllers", ", ".join(grid.label(name) for name in grid.controllers())))
    if said.get("platform"):
        rows.append(("machine", f"{said['platform']}, Python {said.get('python', '')}"))
    if said.get("wall_s"):
        workers = int(said.get("workers", 0))
        threads = f" on {workers} thread{'s' if workers != 1 else ''}" if workers else ""
        rows.append(("took", f"{labels.number(float(said['wall_s']), 3)} s{threads}"))
        simulated = 1e-6 * sum(float(grid.measures.run_column(cell, "simulated_us").sum()) for cell in grid.cells)
        rate = labels.count(simulated / float(said["wall_s"]))
        rows.append(("simulated", f"{labels.count(simulated)} s, {rate} s in each second"))
    return Listing("manifest", ("", ""), tuple(rows))


def statement(grid: Grid) -> tuple[str, ...]:
    """How to make these results again, as a paragraph to paste; nothing for results that do not say enough."""
    manifests = [manifest for _, manifest in grid.results.folders]
    return (provenance.statement(manifests),) if all("plan_hash" in said for said in manifests) else ()


def path_settings(cell: Cell) -> Listing:
    """The links as the scenario of a cell gives them."""
    rows = []
    for link, said in links_of(cell).items():
        jitter = said.get("jitter")
        rows.append(
            (
                link,
                str(said.get("rate", "")),
                str(said.get("delay", "")),
                f"{jitter.get('from')} to {jitter.get('to')}" if isinstance(jitter, Mapping) else "none",
                str(said.get("queue", "")),
                loss_in_words(said.get("loss")),
            )
        )
    return Listing(
        "path",
        ("link", "rate", "delay", "jitter", "queue", "loss"),
        tuple(rows),
        f"The path of the first setting ({cell.id}); every setting stands in full in manifest.json.",
    )


def loss_in_words(loss: object) -> str:
    """A link's loss with its rate or its parameters: `bernoulli, 10 %`."""
    if not isinstance(loss, Mapping) or loss.get("kind", "none") == "none":
        return "none"
    told = []
    for name, value in loss.items():
        share = f"{100 * value:g}\N{NARROW NO-BREAK SPACE}%" if isinstance(value, int | float) else str(value)
        if name != "kind":
            told.append(share if name == "rate" else f"{name.replace('_', ' ')} {share}")
    return ", ".join((str(loss["kind"]), *told))


# ----------------------------------------------------------------------------------------------- helpers


def _points(course: Course) -> tuple[str, ...]:
    if not course.of:
        return (NOTHING,) * len(course.points)
    return tuple("never" if time is None else labels.number(time) for time in course.points.values())


def _outcome(told: Outcome) -> tuple[str, ...]:
    counts = (told.clients, told.complete, told.lost, told.unfinished, told.failed, told.never_finished)
    return (*(_count(value) for value in counts), labels.percent(told.delivery_ratio))


def _count(value: int | None) -> str:
    return NOTHING if value is None else labels.count(value)


def _ends(grid: Grid) -> list[tuple[str, str]]:
    """What became of clients and requests in all runs."""
    told = [grid.reported.outcome(cell) for cell in grid.cells]

    def total(name: str) -> str:
        values = [getattr(outcome, name) for outcome in told]
        return _count(None if None in values else sum(values))

    return [
        ("clients that lost a request", total("lost")),
        ("clients unfinished", total("unfinished")),
        ("requests failed, never finished", f"{total('failed')}, {total('never_finished')}"),
    ]
