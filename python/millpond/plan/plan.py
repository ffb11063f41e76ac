"""The plan of a study, `plan.toml`: what is run, how each choice changes the scenario, how published rows are read.

A plan holds one `[matrix]` or several `[[matrix]]`. Every combination of a matrix's lists is one cell. `clients`,
`workload` and `algorithm` make the scenario's `[[clients]]` tables; every other column says in `[vary.<column>]` what
it changes::

    [vary.buffer_bytes]             # the value itself, written at these places
    places = ["path.uplink.queue", "path.downlink.queue"]
    write = "{} B"

    [vary.error_profile.set.low]    # a name, and the places it sets
    "path.downlink.loss" = { kind = "bernoulli", rate = 0.02 }

Those three may have such a table as well; if workloads have one, what it sets is written instead of their names. An
`[algorithms.<name>]` table says what its clients have: a `controller`, or for those that ask over TCP a `transport`,
and further keys of theirs, which are laid over the scenario's::

    [algorithms.tcp_newreno]
    label = "TCP New Reno"
    transport = { kind = "tcp", congestion = "new-reno" }

`[columns]` gives the columns that a matrix does not list. A `[[path]]` is one reading of the test bed; its changes
come last, and may name a column in braces: `"{buffer_bytes} packets"`. Several entries of one name are one reading that
changes something else in different cells: the first one whose `only` covers a cell counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.toml_tree import Table, read_tree
from millpond.results.directory import BASE_COLUMNS, Value

#: What a run can trace.
TRACES = ("queue", "share", "rto", "packets", "exchanges", "tcp")
PLAN = "plan.toml"

#: The columns that every matrix lists, in the order in which cells are counted.
LISTED = ("algorithm", "clients", "buffer_bytes", "workload")
#: Those of them that hold whole numbers.
NUMBERS = ("clients", "buffer_bytes")


@dataclass(frozen=True)
class Algorithm:
    """A name that the study's figures use, and what its clients have: a controller, and further keys of theirs."""

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
class Only:
    """Limits something to cells whose columns have one of these values, and to so many clients or more."""

    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    clients_from: int = 0

    def covers(self, columns: Mapping[str, Value]) -> bool:
        """Whether a cell with these columns is meant."""
        return int(columns["clients"]) >= self.clients_from and all(
            columns.get(name) in values for name, values in self.values.items()
        )


@dataclass(frozen=True)
class PathVariant:
    """One reading of the test bed. `only` limits it to some cells."""

    name: str
    label: str
    changes: Mapping[str, Any]
    only: Only = field(default_factory=Only)


@dataclass(frozen=True)
class Vary:
    """What a column of the matrix changes in the scenario."""

    places: tuple[str, ...] = ()
    text: str = ""
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changes(self, value: Value) -> dict[str, Any]:
        """The places that this value sets."""
        told = {place: self.text.format(value) for place in self.places}
        return {**told, **self.sets.get(str(value), {})}


@dataclass(frozen=True)
class Matrix:
    """Every combination of the lists is one cell of this scenario."""

    values: Mapping[str, tuple[Value, ...]]
    scenario: Mapping[str, Any]
    scenario_file: Path

    @property
    def further(self) -> tuple[str, ...]:
        """The columns beside those that every matrix lists."""
        return tuple(name for name in self.values if name not in LISTED)

    def but(self, column: str, values: Sequence[Value]) -> Matrix:
        """The same with another list."""
        return replace(self, values={**self.values, column: tuple(values)})

    def kept(self, only: Mapping[str, tuple[Value, ...]]) -> Matrix | None:
        """The same with those values alone; None if one of its lists has none of them."""
        values = dict(self.values)
        for column, wanted in only.items():
            if column in values:
                values[column] = tuple(value for value in values[column] if value in wanted)
                if not values[column]:
                    return None
        return replace(self, values=values)


@dataclass(frozen=True)
class Mix:
    """Populations of several controllers, in equal parts, on one bottleneck."""

    algorithms: tuple[str, ...]
    clients: tuple[int, ...]
    buffers: tuple[int, ...]
    workloads: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """What is traced, of the most crowded cells of each place or of all cells: replication 0."""

    tables: tuple[str, ...] = ()
    step_us: int = 1_000_000
    flows: int = 8
    only: Only = field(default_factory=Only)
    #: Every cell that `only` covers, however crowded.
    all: bool = False


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

    def metric(self, name: str) -> str:
        """The metric that a published row means by a name."""
        return self.metrics.get(name, name)


@dataclass(frozen=True)
class Plan:
    """A study's plan, as read from `plan.toml`."""

    name: str
    title: str
    source: str
    folder: Path
    #: None: a study whose claims are its own.
    published: Path | None
    claims: Path
    replications: int
    matrices: tuple[Matrix, ...]
    known: Mapping[str, Algorithm]
    columns: Mapping[str, Value]
    vary: Mapping[str, Vary]
    mixes: tuple[Mix, ...]
    paths: tuple[PathVariant, ...]
    quick_replications: int
    quick_values: Mapping[str, tuple[Value, ...]]
    trace: Trace
    reading: Reading

    @property
    def clients(self) -> tuple[int, ...]:
        """The numbers of clients of all matrices."""
        return tuple(int(value) for value in self._all("clients"))

    @property
    def buffers(self) -> tuple[int, ...]:
        """The buffers of all matrices, in bytes."""
        return tuple(int(value) for value in self._all("buffer_bytes"))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms of all matrices."""
        return tuple(str(value) for value in self._all("algorithm"))

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads of all matrices."""
        return tuple(str(value) for value in self._all("workload"))

    @property
    def further(self) -> tuple[str, ...]:
        """Every column of the plan beside those that every study has."""
        named = (name for matrix in self.matrices for name in matrix.further)
        return tuple(name for name in dict.fromkeys([*self.columns, *named]) if name not in BASE_COLUMNS)

    def quick(self) -> Plan:
        """The small version: fewer replications, and fewer of what the plan names."""
        kept = (matrix.kept(self.quick_values) for matrix in self.matrices)
        return replace(
            self, replications=self.quick_replications, matrices=tuple(matrix for matrix in kept if matrix is not None)
        )

    def narrowed(
        self,
        *,
        controllers: Sequence[str] = (),
        clients: Sequence[int] = (),
        buffers: Sequence[int] = (),
        replications: int | None = None,
    ) -> Plan:
        """The same plan with other values where some are given. Raises `UsageError` for one that makes no sense."""
        plan = self
        if controllers:
            plan = plan._with_controllers(controllers)
        if clients:
            plan = plan._with_column("clients", _counts("clients", clients))
        if buffers:
            plan = plan._with_column("buffer_bytes", _counts("buffers", buffers))
        if replications is not None:
            plan = replace(plan, replications=_counts("replications", [replications])[0])
        return plan

    def _with_column(self, column: str, values: Sequence[Value]) -> Plan:
        return replace(self, matrices=tuple(matrix.but(column, values) for matrix in self.matrices))

    def _with_controllers(self, controllers: Sequence[str]) -> Plan:
        """Only these; of a matrix those that it has, one that has none of them is left out."""
        names = [self._algorithm(name) for name in dict.fromkeys(controllers)]
        matrices = []
        for matrix in self.matrices:
            here = [name for name in names if name in matrix.values["algorithm"]]
            if here:
                matrices.append(matrix.but("algorithm", here))
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

    def _all(self, column: str) -> Iterable[Value]:
        return dict.fromkeys(value for matrix in self.matrices for value in matrix.values[column])


def read(folder: Path) -> Plan:
    """Read a study's plan. Raises `UsageError` with one line: file, key and mend."""
    file = folder / PLAN
    top = Table(read_tree(file), file)
    algorithms = top.table("algorithms")
    known = {name: _read_algorithm(name, algorithms.table(name)) for name in algorithms.names()}
    columns = top.table("columns").raw()
    vary_tables = top.table("vary")
    vary = {name: _read_vary(vary_tables.table(name)) for name in vary_tables.names()}
    scenario = top.get("scenario", str)
    matrices = tuple(_read_matrix(table, folder, scenario, vary) for table in _matrix_tables(top))
    quick, trace, reading = (top.table(name) for name in ("quick", "trace", "reading"))
    replications = top.get("replications", int)
    of_all = tuple(dict.fromkeys(str(name) for matrix in matrices for name in matrix.values["algorithm"]))
    workloads = tuple(dict.fromkeys(str(name) for matrix in matrices for name in matrix.values["workload"]))
    plan = Plan(
        name=top.get("name", str),
        title=top.get("title", str),
        source=top.get("source", str),
        folder=folder,
        published=folder / top.get("published", str) if "published" in top else None,
        claims=folder / top.get("claims", str),
        replications=replications,
        matrices=matrices,
        known=known,
        columns=columns,
        vary=vary,
        mixes=tuple(_read_mix(entry, workloads) for entry in top.tables("mix")),
        paths=tuple(_read_path(entry) for entry in top.tables("path")) or (PathVariant("fixed", "as given", {}),),
        quick_replications=quick.get("replications", int, replications),
        quick_values={name: _values(quick, name) for name in quick.names() if name != "replications"},
        trace=Trace(
            tuple(trace.items("tables", str, [])),
            round(trace.get("step", float, 1.0) * 1e6),
            trace.get("flows", int, Trace.flows),
            _read_only(trace.table("only")),
            trace.get("all", bool, False),
        ),
        reading=Reading(
            reading.get("replications", int, replications),
            tuple(reading.items("algorithms", str, of_all)),
            reading.get("apart", bool, False),
            _texts(reading.table("metrics")),
            _reasons(reading.table("unmeasured")),
        ),
    )
    for table in (quick, trace, reading, top):
        table.done()
    for table_name in plan.trace.tables:
        if table_name not in TRACES:
            raise UsageError(f"{trace.where('tables')}: {unknown('trace', table_name, TRACES)}")
    for name in (*of_all, *plan.reading.algorithms, *(name for mix in plan.mixes for name in mix.algorithms)):
        if name not in known:
            raise UsageError(f"{file}: {unknown('algorithm', name, known)}")
    limits = [*(path.only.values for path in plan.paths), plan.trace.only.values, plan.quick_values]
    for column in (name for limit in limits for name in limit):
        if column not in (*LISTED, *plan.further):
            raise UsageError(f"{file}: {unknown('column', column, (*LISTED, *plan.further))}")
    return plan


# ----------------------------------------------------------------------------------------------- helpers


def _matrix_tables(top: Table) -> list[Table]:
    several = isinstance(top.get("matrix", object), list)
    return top.tables("matrix") if several else [top.table("matrix")]


def _read_matrix(table: Table, folder: Path, scenario: str, vary: Mapping[str, Vary]) -> Matrix:
    file = folder / table.get("scenario", str, scenario)
    values: dict[str, tuple[Value, ...]] = {}
    for column in LISTED:
        values[column] = tuple(table.items(column, int if column in NUMBERS else str))
    for column in table.names():
        if column in LISTED or column == "scenario":
            continue
        if column not in vary:
            raise UsageError(f"{table.where(column)}: {unknown('column', column, [*LISTED, *vary])}")
        values[column] = _values(table, column)
        for value in values[column]:
            if not vary[column].places and str(value) not in vary[column].sets:
                raise UsageError(f"{table.where(column)}: {unknown('value', str(value), vary[column].sets)}")
    return Matrix(values, scenarios.load_tree(file), file)


def _read_vary(table: Table) -> Vary:
    sets = table.table("set")
    vary = Vary(
        places=tuple(table.items("places", str, [])),
        text=table.get("write", str, "{}"),
        sets={name: sets.table(name).raw() for name in sets.names()},
    )
    table.done()
    try:
        vary.text.format(0)
    except (KeyError, ValueError, IndexError):
        raise UsageError(f"{table.where('write')}: {vary.text!r} does not say where the value goes: {{}}") from None
    if not vary.places and not vary.sets:
        raise UsageError(f"{table.place}: changes nothing: `places` and `write`, or tables `set.<value>`")
    return vary


def _read_algorithm(name: str, table: Table) -> Algorithm:
    keys = dict(table.raw())
    label, controller = table.get("label", str, name), keys.pop("controller", None)
    keys.pop("label", None)
    if controller is None and "transport" not in keys:
        raise UsageError(
            f"{table.where('controller')}: expected the name of a preset or a table, or else a `transport`"
        )
    if controller is not None and not isinstance(controller, str | dict):
        raise UsageError(f"{table.where('controller')}: expected the name of a preset or a table")
    return Algorithm(name, label, controller, keys)


def _read_mix(table: Table, workloads: Sequence[str]) -> Mix:
    mix = Mix(
        tuple(table.items("algorithms", str)),
        tuple(table.items("clients", int)),
        tuple(table.items("buffer_bytes", int)),
        tuple(table.items("workload", str, workloads)),
    )
    table.done()
    return mix


def _read_path(table: Table) -> PathVariant:
    variant = PathVariant(
        name=table.get("name", str),
        label=table.get("label", str, ""),
        changes=table.table("set").raw(),
        only=_read_only(table.table("only")),
    )
    table.done()
    return variant


def _read_only(table: Table) -> Only:
    return Only(
        {name: _values(table, name) for name in table.names() if name != "clients_from"},
        table.get("clients_from", int, 0),
    )


def _values(table: Table, column: str) -> tuple[Value, ...]:
    """A list of numbers or of texts."""
    found = table.items(column, object)
    for value in found:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UsageError(f"{table.where(column)}: expected numbers or texts, found {value!r}")
    return tuple(value for value in found if isinstance(value, str | int | float))


def _texts(table: Table) -> dict[str, str]:
    return {name: table.get(name, str) for name in table.names()}


def _reasons(table: Table) -> dict[str, str]:
    """Lists of names under the reason that they share, turned round."""
    return {name: reason for reason in table.names() for name in table.items(reason, str)}


def _preset(controller: Any) -> str:
    return str(controller.get("preset", "")) if isinstance(controller, dict) else str(controller)


def _counts(what: str, values: Sequence[int]) -> tuple[int, ...]:
    for value in values:
        if value < 1:
            raise UsageError(f"--{what}: {value} makes no sense here: at least 1")
    return tuple(dict.fromkeys(values))
