"""The plan of a sweep or study, `plan.toml`: what is run, and how each factor changes the scenario.

A plan holds one `[matrix]` or several `[[matrix]]`. Every combination of a matrix's lists is one cell, the first list
turning slowest. A list is a *factor*, under any name; `[vary.<factor>]` says which places of the scenario it changes:

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
slowest wherever it stands. Its values are presets, custom controllers (`mine.py:Mine`), or names of tables that
say what the clients have, a `controller`, or a `transport` for those that ask over TCP, and further keys of theirs,
which are laid over the scenario's:

    [algorithms.tcp_newreno]
    label = "TCP New Reno"
    transport = { kind = "tcp", congestion = "new-reno" }

The `scenario` is a file beside the plan, or a table of the plan. A matrix may have a `scenario` and a number of
`replications` of its own. `[columns]` gives the factors that a matrix does not list. A `[[path]]` is one reading of
the test bed; its changes come last, and may name a factor in braces: `"{buffer_bytes} packets"`. Several entries of one
name are one reading that changes something else in different cells: the first one whose `only` covers a cell counts.
A matrix may count `sites` instead of replications: parts of one fleet, such as radio cells, that share nothing, each
with random numbers of its own. Those of the next matrix are further ones, and no row of a client is kept.
`[trace]` traces replication 0 of the cells that `only` covers; with `largest` just those of them with the largest
values of these factors, for each combination of the others. `[reading]` says how what is published is read; its
`confidence` is that of the intervals by which figures and claims are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond.errors import UsageError, unknown
from millpond.plan.factor import Only, Vary
from millpond.plan.factor import chosen as chosen_of
from millpond.plan.keys import counted
from millpond.plan.values import whole
from millpond.results.factor import ALGORITHM, PATH, Factor, Value

#: What a run can trace.
TRACES = ("queue", "share", "sent", "rto", "packets", "exchanges", "tcp", "frames")
PLAN = "plan.toml"


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
    #: What it is called among other words of a place.
    told: str | None = None


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
    """What is traced, of some cells."""

    tables: tuple[str, ...] = ()
    step_us: int = 1_000_000
    flows: int = 8
    #: Of every replication, not just the first.
    every: bool = False
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
        """Whether its replications are sites of one fleet: each with its own streams, and without rows of clients."""
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
    def seed_count(self) -> int:
        """How many seeds it needs: one for each replication, or for each site of all matrices."""
        return sum(matrix.replications for matrix in self.matrices) if self.sites else self.replications

    def wording(self, factor: str) -> Factor:
        """How tables and figures speak of a factor."""
        if factor == PATH:
            return Factor(PATH, words={path.name: path.told for path in self.paths if path.told is not None})
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
            if not 0 <= seed < 2**53 - plan.seed_count:
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
            raise UsageError(f"--controllers: {unknown('controller', name, self.known)}")
        return found


# ----------------------------------------------------------------------------------------------- helpers


def _preset(controller: Any) -> str:
    return str(controller.get("preset", "")) if isinstance(controller, dict) else str(controller)
