"""The plan of a sweep or study, `plan.toml`: what is run, and how each factor changes the scenario.

A plan holds one `[matrix]` or several `[[matrix]]`. Every combination of a matrix's lists is one cell, the first list
turning slowest. A list is a *factor*, under any name; `[vary.<factor>]` says which places of the scenario it changes::

    [vary.buffer_bytes]             # the value itself, written at these places
    places = ["path.uplink.queue", "path.downlink.queue"]
    write = "{} B"
    unit = "B"                      # how tables and figures speak of it
    scale = "log"
    words = { 1410000 = "infinite" }

    [vary.error_profile.set.low]    # a name, and the places it sets
    "path.downlink.loss" = { kind = "bernoulli", rate = 0.02 }

A factor without such a table goes to the place it is called after (`"clients[0].count"`), or to the one key of the
scenario that has its name. `algorithm` is the one factor that is no place: it makes the clients' controllers, and turns
slowest wherever it stands. Its values are presets, controllers of one's own (`mine.py:Mine`), or names of tables that
say what the clients have, a `controller`, or a `transport` for those that ask over TCP, and further keys of theirs,
which are laid over the scenario's::

    [algorithms.tcp_newreno]
    label = "TCP New Reno"
    transport = { kind = "tcp", congestion = "new-reno" }

The `scenario` is a file beside the plan, or a table of the plan. A matrix may have a `scenario` and a number of
`replications` of its own. `[columns]` gives the factors that a matrix does not list. A `[[path]]` is one reading of
the test bed; its changes come last, and may name a factor in braces: `"{buffer_bytes} packets"`. Several entries of one
name are one reading that changes something else in different cells: the first one whose `only` covers a cell counts.
A matrix may count `sites` instead of replications: parts of one fleet, such as radio cells, that share nothing, each
with luck of its own. Those of the next matrix are further ones, and no row of a client is kept.
`[trace]` traces replication 0 of the cells that `only` covers; with `largest` just those of them with the largest
values of these factors, for each combination of the others. `[reading]` says how what is published is read; its
`confidence` is that of the intervals by which figures and claims are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond.controllers.own import is_own, short
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.factor import ALGORITHM, RESERVED, Only, Vary, must_be_known, read_only, read_values, read_vary
from millpond.plan.factor import chosen as chosen_of
from millpond.plan.keys import PlanFile, Runs, Tree, counted
from millpond.plan.toml_file import checked, read_tree, where
from millpond.plan.values import plain, whole
from millpond.results.directory import Factor, Value

#: What a run can trace.
TRACES = ("queue", "share", "sent", "rto", "packets", "exchanges", "tcp", "frames")
PLAN = "plan.toml"
#: Where studies keep pages of their own.
PAGES = Path(__file__).parent.parent / "studies"

_RUNS: Any = Runs
_SCENARIO: Any = str | Tree


@dataclass(frozen=True)
class Algorithm:
    """A name that the plan uses, and what its clients have: a controller, and further keys of theirs."""

    name: str
    label: str
    #: None: they ask over TCP, which has a congestion control of its own.
    controller: Any = None
    #: Laid over the keys of the scenario's clients; tables are merged.
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether it is a controller and nothing else, so that another one can stand in its place."""
        return self.controller is not None and not self.keys


@dataclass(frozen=True)
class PathVariant:
    """One reading of the test bed. `only` limits it to some cells."""

    name: str
    label: str
    changes: Mapping[str, Any]
    only: Only = field(default_factory=Only)


@dataclass(frozen=True)
class Matrix:
    """Every combination of the lists is one cell of this scenario."""

    values: Mapping[str, tuple[Value, ...]]
    scenario: Mapping[str, Any]
    #: Where it stands: a file of its own, or the plan's.
    scenario_file: Path
    replications: int
    #: Whether its replications are sites, see `Plan.sites`.
    sites: bool = False

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors beside the algorithm."""
        return tuple(name for name in self.values if name != ALGORITHM)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms; none if the scenario's own controllers are meant."""
        return tuple(map(str, self.values.get(ALGORITHM, ())))

    def but(self, factor: str, values: Sequence[Value]) -> Matrix:
        """The same with another list."""
        first = {} if factor in self.values else {factor: tuple(values)}
        return replace(self, values={**first, **self.values, factor: tuple(values)})

    def kept(self, only: Mapping[str, tuple[Value, ...]]) -> Matrix | None:
        """The same with those values alone; None if one of its lists has none of them."""
        values = dict(self.values)
        for factor, wanted in only.items():
            if factor in values:
                values[factor] = tuple(value for value in values[factor] if value in wanted)
                if not values[factor]:
                    return None
        return replace(self, values=values)


@dataclass(frozen=True)
class Mix:
    """Populations of several controllers, in equal parts, on one bottleneck."""

    algorithms: tuple[str, ...]
    #: Which values of the first matrix; all of those of a factor that is left out.
    values: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Trace:
    """What is traced, of replication 0 of some cells."""

    tables: tuple[str, ...] = ()
    step_us: int = 1_000_000
    flows: int = 8
    only: Only = field(default_factory=Only)
    #: Only the cells with the largest values of these factors, for each combination of the others.
    largest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """How published rows that leave something out are read."""

    replications: int
    algorithms: tuple[str, ...]
    #: Whether a claim is judged on each path variant by itself; else it must hold on all of them.
    apart: bool = False
    #: Metrics that the source calls by another name.
    metrics: Mapping[str, str] = field(default_factory=dict)
    #: Why some metrics or rows of the source are not measured, by their names or ids.
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    #: How sure intervals over runs are by which its figures and claims are judged.
    confidence: float = 0.95
    #: What stands in the column `bin`, as the factors that it names and their values.
    bins: Mapping[str, Only] = field(default_factory=dict)

    def metric(self, name: str) -> str:
        """The metric that a published row means by a name."""
        return self.metrics.get(name, name)


@dataclass(frozen=True)
class Plan:
    """A plan, as read from its file."""

    name: str
    title: str
    source: str
    file: Path
    #: None: nothing is published about it.
    published: Path | None
    #: None: a sweep that claims nothing.
    claims: Path | None
    matrices: tuple[Matrix, ...]
    known: Mapping[str, Algorithm]
    columns: Mapping[str, Value]
    vary: Mapping[str, Vary]
    mixes: tuple[Mix, ...]
    paths: tuple[PathVariant, ...]
    quick_replications: int | None
    quick_values: Mapping[str, tuple[Value, ...]]
    trace: Trace
    reading: Reading
    #: Seed of the first replication, from which the others count up; None: those of the plan's name.
    first_seed: int | None = None
    #: The link that figures about a link mean; empty: the one that is busy longest.
    bottleneck: str = ""
    #: The study of `millpond.studies` whose page and tables these results have; empty: the one of its name, if any.
    page: str = ""
    #: Values that are set at places of every scenario, beside what the plan says.
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the plan's files are looked for."""
        return self.file.parent

    @property
    def judged(self) -> bool:
        """Whether it is a study: there is something that its results are put beside."""
        return self.published is not None or self.claims is not None

    @property
    def replications(self) -> int:
        """The replications of the cells that have most."""
        return max(matrix.replications for matrix in self.matrices)

    @property
    def sites(self) -> bool:
        """Whether its replications are sites of one fleet: each with luck of its own, and without rows of clients."""
        return any(matrix.sites for matrix in self.matrices)

    @property
    def factors(self) -> tuple[str, ...]:
        """Every factor that a matrix lists or `[columns]` gives, the algorithm too."""
        named = (name for matrix in self.matrices for name in matrix.values)
        return tuple(dict.fromkeys([*named, *self.columns]))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms of all matrices."""
        return tuple(str(value) for value in self.values(ALGORITHM))

    def values(self, factor: str) -> tuple[Value, ...]:
        """The values of a factor in all matrices."""
        return tuple(dict.fromkeys(v for matrix in self.matrices for v in matrix.values.get(factor, ())))

    @property
    def on_paths(self) -> set[str]:
        """The factors by which readings of the test bed are chosen, or which their changes name."""
        texts = repr([path.changes for path in self.paths])
        chosen = {name for path in self.paths for name in path.only.names}
        return {name for name in self.factors if name in chosen or f"{{{name}}}" in texts}

    @property
    def lucks(self) -> int:
        """How many seeds it needs: one for each replication, or for each site of all matrices."""
        return sum(matrix.replications for matrix in self.matrices) if self.sites else self.replications

    def wording(self, factor: str) -> Factor:
        """How tables and figures speak of a factor."""
        return self.vary[factor].wording if factor in self.vary else Factor(factor)

    def quick(self) -> Plan:
        """The small version: fewer replications, and fewer of what the plan names.

        Raises `UsageError` if the plan names none.
        """
        if self.quick_replications is None and not self.quick_values:
            raise UsageError(
                f"--quick: {self.file} has no [quick]: write one, such as replications = 2 below it, or say what is to "
                "be less by --replications and --factor"
            )
        kept = (matrix.kept(self.quick_values) for matrix in self.matrices)
        plan = replace(self, matrices=tuple(matrix for matrix in kept if matrix is not None))
        return plan if self.quick_replications is None else plan.replicated(self.quick_replications)

    def replicated(self, replications: int) -> Plan:
        """The same with so many replications of every cell. Raises `UsageError` if that makes no sense."""
        replications = counted(replications)
        return replace(self, matrices=tuple(replace(matrix, replications=replications) for matrix in self.matrices))

    def narrowed(
        self,
        *,
        controllers: Sequence[str] = (),
        factors: Mapping[str, Value | Sequence[Value]] | None = None,
        replications: int | None = None,
        seed: int | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> Plan:
        """The same plan with other values where some are given. Raises `UsageError` for one that makes no sense."""
        plan = self._with_controllers(controllers) if controllers else self
        for factor, values in (factors or {}).items():
            plan = plan._with_factor(factor, values)
        if replications is not None:
            plan = plan.replicated(replications)
        if seed is not None:
            seed = whole(seed, "--seed")
            if not 0 <= seed < 2**53 - plan.lucks:
                raise UsageError(f"--seed: {seed} is out of range: 0 to 2^53")
            plan = replace(plan, first_seed=seed)
        return replace(plan, changes=changes) if changes else plan

    def _with_factor(self, factor: str, given: Value | Sequence[Value]) -> Plan:
        known = [name for name in dict.fromkeys(n for m in self.matrices for n in m.values) if name != ALGORITHM]
        if factor not in known:
            raise UsageError(f"--factor: {unknown('factor', factor, known)}")
        vary, numbers = self.vary.get(factor), not isinstance(self.values(factor)[0], str)
        # a value that is written nowhere as it is names what it stands for: only those that the plan has
        names = not vary.places if vary is not None else factor in self.on_paths
        listed = self.values(factor) if names else ()
        known = list(dict.fromkeys([*(vary.sets if vary is not None else ()), *map(str, listed)]))
        chosen = chosen_of(given, f"--factor {factor}", numbers, known if names else None)
        matrices = []
        for matrix in self.matrices:
            # it may fit the scenario of those matrices alone that list it
            here = [value for value in chosen if value not in listed or value in matrix.values.get(factor, ())]
            if factor not in matrix.values:
                matrices.append(matrix)
            elif here:
                matrices.append(matrix.but(factor, here))
        return replace(self, matrices=tuple(matrices))

    def _with_controllers(self, controllers: Sequence[str]) -> Plan:
        """Only these; of a matrix those that it has, one that has none of them is left out."""
        names = [self._algorithm(name) for name in controllers]
        matrices = []
        for matrix in self.matrices:
            here = [name for name in names if name in matrix.algorithms]
            if here:
                matrices.append(matrix.but(ALGORITHM, here))
        if not matrices:
            raise UsageError(f"--controllers: no matrix of the plan holds {', '.join(names)}")
        return replace(self, matrices=tuple(matrices))

    def named(self, name: str) -> str | None:
        """The algorithm of this name, or the one that stands for this preset."""
        if name in self.known:
            return name
        presets = {_preset(known.controller): known.name for known in self.known.values() if known.plain}
        return presets.get(name)

    def _algorithm(self, name: str) -> str:
        found = self.named(name)
        if found is None:
            raise UsageError(unknown("controller", name, self.known))
        return found


def read(place: Path | Mapping[str, Any], presets: Sequence[str] = ()) -> Plan:
    """Read a plan: its file, a folder with a `plan.toml`, or its keys as a tree.

    Args:
        place: The file, folder or tree.
        presets: Controllers that a plan may name without a table for them.

    Raises:
        UsageError: one line: file, key and mend.
    """
    if isinstance(place, Path):
        file = place / PLAN if place.is_dir() else place
        usual = place.resolve().name if place.is_dir() else file.stem
        tree = read_tree(file)
        if "clients" in tree:
            raise UsageError(
                f"{file}: a scenario, which `millpond run` takes: a plan names it as `scenario`, and has a [matrix]"
            )
        top = checked(tree, PlanFile, file)
    else:
        file, usual = Path("plan"), "plan"
        top = checked(plain(place, "plan"), PlanFile, file)
    several = isinstance(top.matrix, list)
    tables = [(f"matrix[{n}]" if several else "matrix", t) for n, t in enumerate(_listed(top.matrix))]
    vary = {name: read_vary(name, tree, file) for name, tree in top.vary.items()}
    matrices = tuple(_read_matrix(tree, file, place, top, vary) for place, tree in tables)
    if not matrices:
        raise UsageError(f"{file}: 'matrix' is an empty list: it makes no cells")
    if set(top.name) & set("/\\\0") or top.name in (".", ".."):
        raise UsageError(f"{file}: name: {top.name!r} is no name for a folder: write it without slashes")
    if len({matrix.sites for matrix in matrices}) > 1:
        raise UsageError(f"{file}: matrix: some count sites and some replications: they are no one fleet")
    columns = {name: read_values(value, file, f"columns.{name}")[0] for name, value in top.columns.items()}
    known = {name: _read_algorithm(name, tree, file) for name, tree in top.algorithms.items()}
    of_all = tuple(dict.fromkeys(name for matrix in matrices for name in matrix.algorithms))
    mixes = tuple(_read_mix(tree, file, f"mix[{n}]") for n, tree in enumerate(top.mix))
    for name in (*of_all, *(top.reading.algorithms or ()), *(name for mix in mixes for name in mix.algorithms)):
        if name not in known:
            if not is_own(name) and name not in presets:
                raise UsageError(f"{file}: {unknown('algorithm', name, dict.fromkeys([*known, *presets]))}")
            known[name] = Algorithm(name, short(name), name)
    factors = tuple(dict.fromkeys([*(name for matrix in matrices for name in matrix.values), *columns]))
    for mix in mixes:
        for name in mix.values:
            must_be_known(name, factors, file, "mix")
    quick_values = {n: read_values(v, file, f"quick.{n}") for n, v in top.quick.items() if n != "replications"}
    for name in quick_values:
        must_be_known(name, factors, file, "quick")
    for name in top.trace.largest:
        must_be_known(name, factors, file, "trace.largest")
    for name in top.trace.tables:
        if name not in TRACES:
            raise UsageError(f"{where(file, 'trace.tables')}: {unknown('trace', name, TRACES)}")
    if top.seed is not None and not 0 <= top.seed < 2**53 - sum(matrix.replications for matrix in matrices):
        raise UsageError(f"{file}: seed: {top.seed} is out of range: 0 to 2^53")
    paths = tuple(
        PathVariant(entry.name, entry.label, entry.set, read_only(entry.only, file, f"path[{n}].only", factors))
        for n, entry in enumerate(top.path)
    )
    reading = top.reading
    quick = top.quick.get("replications")
    plan = Plan(
        name=top.name or usual,
        title=top.title or top.name or usual,
        source=top.source,
        file=file,
        published=file.parent / top.published if top.published else None,
        claims=file.parent / top.claims if top.claims else None,
        matrices=matrices,
        known=known,
        columns=columns,
        vary=vary,
        mixes=mixes,
        paths=paths or (PathVariant("fixed", "as given", {}),),
        quick_replications=None if quick is None else checked(quick, _RUNS, file, "quick.replications"),
        quick_values=quick_values,
        trace=Trace(
            tuple(top.trace.tables),
            round(top.trace.step * 1e6),
            top.trace.flows,
            read_only(top.trace.only, file, "trace.only", factors),
            tuple(top.trace.largest),
        ),
        reading=Reading(
            reading.replications or top.replications or 1,
            of_all if reading.algorithms is None else tuple(reading.algorithms),
            reading.apart,
            reading.metrics,
            # lists of names under the reason that they share, turned round
            {name: reason for reason, names in reading.unmeasured.items() for name in names},
            reading.confidence,
            {text: read_only(tree, file, f"reading.bins.{text}", factors) for text, tree in reading.bins.items()},
        ),
        first_seed=top.seed,
        bottleneck=top.bottleneck,
        page=_page(top.page, file),
    )
    _touch_something(plan)
    return plan


# ----------------------------------------------------------------------------------------------- helpers


def _page(name: str, file: Path) -> str:
    """The study that has the page; raises `UsageError` if there is none of the name."""
    known = sorted(page.parent.name for page in PAGES.glob("*/page.py"))
    if name and name not in known:
        raise UsageError(f"{file}: page: {unknown('page', name, known)}")
    return name


def _listed(matrix: list[Tree] | Tree) -> list[Tree]:
    return matrix if isinstance(matrix, list) else [matrix]


def _read_matrix(tree: Tree, file: Path, place: str, top: PlanFile, vary: Mapping[str, Vary]) -> Matrix:
    lists = dict(tree)
    scenario = checked(lists.pop("scenario", top.scenario), _SCENARIO, file, f"{place}.scenario")
    key = "sites" if top.sites is not None or "sites" in lists else "replications"
    if key == "sites" and top.replications is not None:
        raise UsageError(
            f"{file}: replications: they count for nothing where {place} counts sites: leave one of the two out"
        )
    usual = top.sites if key == "sites" else top.replications or 1
    count = checked(lists.pop(key, usual), _RUNS, file, f"{place}.{key}")
    if key == "sites" and ("replications" in lists or top.published or top.claims or top.mix):
        raise UsageError(f"{where(file, place, key)}: sites are counted where nothing is published and nothing mixed")
    values: dict[str, tuple[Value, ...]] = {}
    for name in sorted(lists, key=lambda name: name != ALGORITHM):
        if name in RESERVED:
            raise UsageError(f"{where(file, place, name)}: no name for a factor: tables have a column of that name")
        values[name] = read_values(lists[name], file, f"{place}.{name}")
        known = vary.get(name)
        for value in values[name]:
            if known is not None and known.sets and not known.places and str(value) not in known.sets:
                raise UsageError(f"{where(file, place, name)}: {unknown('value', str(value), known.sets)}")
    if isinstance(scenario, dict):
        return Matrix(values, scenario, file, count, key == "sites")
    scenario_file = file.parent / scenario
    return Matrix(values, scenarios.load_tree(scenario_file), scenario_file, count, key == "sites")


def _read_algorithm(name: str, tree: Tree, file: Path) -> Algorithm:
    keys = dict(tree)
    label = checked(keys.pop("label", name), str, file, f"algorithms.{name}.label")
    controller = keys.pop("controller", None)
    if (controller is None and "transport" not in keys) or not isinstance(controller, str | dict | None):
        raise UsageError(
            f"{where(file, 'algorithms', name, 'controller')}: expected the name of a preset or a table, or else a "
            "`transport`"
        )
    return Algorithm(name, label, controller, keys)


def _read_mix(tree: Tree, file: Path, place: str) -> Mix:
    lists = dict(tree)
    algorithms = read_values(lists.pop("algorithms", []), file, f"{place}.algorithms")
    return Mix(tuple(map(str, algorithms)), {n: read_values(v, file, f"{place}.{n}") for n, v in lists.items()})


def _touch_something(plan: Plan) -> None:
    """Refuse a table of a factor that changes nothing anywhere, and one of a factor that there is not."""
    for name, vary in plan.vary.items():
        if not vary.touches and name not in plan.on_paths:
            raise UsageError(
                f"{where(plan.file, 'vary', name)}: changes nothing: `places` and `write`, or tables `set.<value>`"
            )
        if name not in plan.factors:
            raise UsageError(f"{where(plan.file, 'vary', name)}: {unknown('factor', name, plan.factors)}")


def _preset(controller: Any) -> str:
    return str(controller.get("preset", "")) if isinstance(controller, dict) else str(controller)
