"""Studies: a folder with a plan, scenarios, published figures and claims; the plan unfolds into a program."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from millpond.controllers.own import OwnControllers
from millpond.engine import presets
from millpond.errors import UsageError, nearest, unknown
from millpond.plan import reading
from millpond.plan import scenario as scenarios
from millpond.plan.factor import Vary, places_of
from millpond.plan.plan import PLAN, TRACES, Matrix, PathVariant, Plan, Reading, Trace
from millpond.plan.program import FLEET, Point, Program, program
from millpond.results.factor import ALGORITHM, PATH, Factor, Value

__all__ = [
    "PLAN", "STUDIES", "TRACES", "Plan", "Reading", "Trace", "find", "load", "seed", "studies",
    "unfold",
]  # fmt: skip

#: The tables that grow with clients and seconds, not with sites.
CLIENT_BY_CLIENT = ("flows", "arrivals")
#: How an error begins that blames a key.
_UNKNOWN_KEY = re.compile(r": unknown key `([^`]+)`")
#: A time as it is written.
_TIME = re.compile(r"\s*([0-9.]+)\s*(\S+)\s*")

STUDIES = Path(__file__).parent.parent / "scenarios" / "studies"


@dataclass(frozen=True)
class _Point:
    """One point of a matrix before its scenario is built."""

    matrix: Matrix
    #: None: the scenario's own.
    algorithms: tuple[str, ...]
    columns: Mapping[str, Value]
    path: PathVariant

    @property
    def name(self) -> str:
        """What the cell is called: unlike that of any other cell."""
        told = [str(self.columns[name]) for name in self.matrix.factors]
        return "-".join([*(["+".join(self.algorithms)] if self.algorithms else []), *told, self.path.name])

    def size(self, largest: Sequence[str]) -> tuple[Value, ...]:
        """The values of these factors."""
        return tuple(self.columns.get(name, 0) for name in largest)

    def place(self, largest: Sequence[str]) -> tuple[tuple[str, Value], ...]:
        """All other factors: within one such place the largest cells are traced."""
        apart = (ALGORITHM, PATH, *largest)
        return tuple(sorted((name, value) for name, value in self.columns.items() if name not in apart))


def studies(root: Path = STUDIES) -> dict[str, Path]:
    """The studies that can be reproduced: name and folder."""
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / PLAN).is_file()}


def find(name: str, root: Path = STUDIES) -> Path:
    """The folder of a study: one of those that come with the program, or any folder, such as `./mystudy`.

    Raises:
        UsageError: that lists those there are, if there is none of that name.
    """
    known = studies(root)
    if name not in known and (Path(name).name != name or (Path(name) / PLAN).is_file()):
        return Path(name)
    if name not in known:
        raise UsageError(unknown("study", name, known))
    return known[name]


def seed(study: str, replication: int) -> int:
    """The seed of a replication: 53 bits, so that every program that reads JSON keeps it whole."""
    digest = hashlib.sha256(f"{study}/{replication}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def load(place: Path | Mapping[str, Any]) -> Plan:
    """Read a plan, its file, its folder or its keys. Raises `UsageError` with one line: file, key and fix."""
    return reading.read(place, [preset.name for preset in presets()])


def unfold(plan: Plan, own: OwnControllers | None = None) -> Program:
    """All cells of a plan, in a fixed order: path variants inside the last factor inside ... inside algorithms.

    Raises:
        UsageError: one line, if a factor touches no place, or what it makes is no scenario.
    """
    own = own or OwnControllers(plan.folder)
    plan = _may_change(_placed(plan, own))
    sets = {f"--set {place}": {place: value} for place, value in plan.changes.items()}
    wanted = list({point.name: point for point in (*_points(plan), *_mixed_points(plan))}.values())
    largest = plan.trace.largest
    most: dict[tuple[tuple[str, Value], ...], tuple[Value, ...]] = {}
    for point in wanted:
        place = point.place(largest)
        most[place] = max(most.get(place, point.size(largest)), point.size(largest))
    first_seed = _first_seeds(plan)

    def built(point: _Point) -> Point:
        tree, names = _scenario(plan, point)
        origin = f"{plan.file}, cell {point.name} of {point.matrix.scenario_file.name}"
        try:
            scenario = scenarios.changed(tree, sets, own, origin)
        except UsageError as error:
            raise UsageError(_with_factor(plan, str(error), origin)) from None
        return Point(
            id=point.name,
            scenario=scenario,
            columns=point.columns,
            algorithms=names,
            replications=point.matrix.replications,
            first_seed=first_seed[plan.matrices.index(point.matrix)],
            traced=point.size(largest) == most[point.place(largest)]
            and len(point.algorithms) <= 1
            and point.path.name == plan.paths[0].name
            and plan.trace.only.covers(point.columns),
        )

    found = program(
        map(built, wanted),
        own,
        kind=FLEET if plan.sites else "study" if plan.judged else "sweep",
        dropped=CLIENT_BY_CLIENT if plan.sites else (),
        name=plan.name,
        title=plan.title,
        seeds=seeds(plan),
        trace=plan.trace,
        labels={name: plan.known[name].label for name in plan.known},
        bottleneck=plan.bottleneck,
        page=plan.page,
        factors={name: plan.wording(name) for name in (*plan.factors, PATH)},
        paths={path.name: path.label for path in reversed(plan.paths)},
    )
    for planned in found.cells:
        links = _links(planned.cell.scenario)
        if plan.bottleneck and links and plan.bottleneck not in links:
            raise UsageError(f"{plan.file}: bottleneck: {unknown('link', plan.bottleneck, links)}")
    return found


def seeds(plan: Plan) -> tuple[int, ...]:
    """The seeds of the replications, or of the sites, in their order."""
    if plan.first_seed is not None:
        return tuple(range(plan.first_seed, plan.first_seed + plan.seed_count))
    return tuple(seed(plan.name, number) for number in range(plan.seed_count))


# ----------------------------------------------------------------------------------------------- helpers


def _links(scenario: Mapping[str, Any]) -> list[str]:
    """The names of a scenario's links, as tables have them; none of a mesh, where every radio is one."""
    if "network" in scenario:
        return list(scenario["network"]["links"])
    return ["uplink", "downlink"] if "path" in scenario else []


def _first_seeds(plan: Plan) -> list[int]:
    """The number of the first seed of each matrix: sites of the next one are further ones, replications the same."""
    counts = [matrix.replications if matrix.sites else 0 for matrix in plan.matrices]
    return [sum(counts[:number]) for number in range(len(counts))]


def _placed(plan: Plan, own: OwnControllers) -> Plan:
    """The plan with a place for every factor. Raises `UsageError` for one that has none, or that may have several."""
    named = {name for matrix in plan.matrices for name in matrix.factors if "." in name}
    # called after their places
    plan = replace(plan, vary={**{name: Vary(Factor(name), (name,)) for name in named}, **plan.vary})
    found = dict(plan.vary)
    for matrix in plan.matrices:
        for name in matrix.factors:
            if name in found or name in plan.on_paths:
                continue
            places = places_of(name, _first_of(plan, matrix, own))
            if len(places) != 1:
                near = nearest(name, [*plan.vary, ALGORITHM])
                why = f"it may mean {' or '.join(places)}" if places else f"{matrix.scenario_file} has no such key"
                hint = f"did you mean {near!r}? or say it" if near and not places else "say which"
                raise UsageError(
                    f'{plan.file}: factor {name!r} touches no place: {why}: {hint} in [vary.{name}]: places = ["..."]'
                )
            found[name] = Vary(Factor(name), tuple(places))
    for matrix in plan.matrices:
        home: dict[str, str] = {}
        for name in (name for name in matrix.factors if name in found):
            for place in found[name].reach:
                if home.setdefault(place, name) != name:
                    raise UsageError(
                        f"{plan.file}: factors {home[place]!r} and {name!r} both set {place}: one of them would count "
                        "for nothing: leave one out"
                    )
    return replace(plan, vary=found)


def _first_of(plan: Plan, matrix: Matrix, own: OwnControllers) -> dict[str, Any]:
    """The scenario of a matrix's first cell in full, as far as its factors have places."""
    first = {name: values[0] for name, values in matrix.values.items()}
    point = next(iter(_on_every_path(plan, matrix, matrix.algorithms[:1], first)), None)
    tree = matrix.scenario if point is None else _scenario(plan, point)[0]
    return scenarios.in_full(scenarios.build(tree, str(matrix.scenario_file), own))


def _may_change(plan: Plan) -> Plan:
    """The plan itself. Raises `UsageError` if what is set beside it is what a factor or a reading of it sets."""
    for place in plan.changes:
        for name, vary in plan.vary.items():
            if name in plan.factors and any(scenarios.overlap(place, spot) for spot in vary.reach):
                hint = f"choose its values by --factor {name}=..." if plan.values(name) else "[columns] gives it"
                raise UsageError(f"--set {place}: the plan varies it by its factor {name!r}: {hint}")
        for path in plan.paths:
            if any(scenarios.overlap(place, spot) for spot in path.changes):
                raise UsageError(f"--set {place}: the reading {path.name!r} of the test bed sets it")
    return plan


def _points(plan: Plan) -> Iterable[_Point]:
    for matrix in plan.matrices:
        for values in itertools.product(*matrix.values.values()):
            chosen = dict(zip(matrix.values, values, strict=True))
            algorithm = chosen.get(ALGORITHM)
            yield from _on_every_path(plan, matrix, () if algorithm is None else (str(algorithm),), chosen)


def _mixed_points(plan: Plan) -> Iterable[_Point]:
    for mix in plan.mixes:
        if not set(mix.algorithms) <= set(plan.algorithms):
            continue
        matrix = plan.matrices[0]
        lists = [
            [value for value in mix.values.get(name, plan.values(name)) if value in plan.values(name)]
            for name in matrix.factors
        ]
        for values in itertools.product(*lists):
            chosen = dict(zip(matrix.factors, values, strict=True))
            yield from list(_on_every_path(plan, matrix, mix.algorithms, chosen))[:1]


def _on_every_path(
    plan: Plan, matrix: Matrix, algorithms: tuple[str, ...], chosen: Mapping[str, Value]
) -> Iterable[_Point]:
    named = {name: value for name, value in chosen.items() if name != ALGORITHM}
    columns = {**named, **({ALGORITHM: ";".join(algorithms)} if algorithms else {})}
    covered: set[str] = set()
    for path in plan.paths:
        whole: dict[str, Value] = {**columns, PATH: path.name, **plan.columns, **named}
        if path.name not in covered and path.only.covers(whole):
            covered.add(path.name)
            yield _Point(matrix, algorithms, whole, path)


def _with_factor(plan: Plan, error: str, origin: str) -> str:
    """What is wrong with a cell's scenario, with the factor in place of the cell where its place is what is wrong."""
    why = error.removeprefix(origin)
    if (unknown_key := _UNKNOWN_KEY.match(why)) is None:
        return error
    for name, vary in plan.vary.items():
        for place in sorted(vary.reach):
            if unknown_key[1] in re.split(r"\.|\[\d+\]", place):
                return f"{plan.file}: vary.{name}: {place}{why}"
    return error


def _scenario(plan: Plan, point: _Point) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The scenario of a point, and for each of its groups the algorithm that it was given."""
    changes: dict[str, Any] = {}
    for name, vary in plan.vary.items():
        if name in point.columns:
            changes.update(vary.changes(point.columns[name]))
    try:
        tree = scenarios.with_changes(point.matrix.scenario, changes)
    except UsageError as error:
        raise UsageError(f"{plan.file}, for {point.matrix.scenario_file.name}: {error}") from None
    if not point.algorithms:
        return _on_path(plan, point, tree), ()
    tables, names = [], []
    for template in tree["clients"] if len(point.algorithms) == 1 else tree["clients"][:1]:
        shares = _shares(template, len(point.algorithms))
        for name, share in zip(point.algorithms, shares, strict=True):
            algorithm = plan.known[name]
            plain = {key: value for key, value in template.items() if key != "controller"}
            table = scenarios.laid_over(plain, {**algorithm.keys, **share})
            if algorithm.controller is not None:
                table["controller"] = algorithm.controller
            tables.append(table)
            names.append(name)
    if len(point.algorithms) == 1:
        return _on_path(plan, point, {**tree, "clients": tables}), tuple(names)
    # what the path changes of the clients it changes of each population
    parts = [
        _on_path(plan, _alone(plan, point, name), {**tree, "clients": [t]})
        for name, t in zip(names, tables, strict=True)
    ]
    groups = [part["clients"][0] for part in parts]
    everybody = sum(int(group.get("count", 1)) for group in groups)
    shared = _on_path(plan, point, {**tree, "clients": tables[:1]})
    return {**shared, "clients": [_of_all(group, everybody) for group in groups]}, tuple(names)


def _alone(plan: Plan, point: _Point, algorithm: str) -> _Point:
    """A mix as the reading of the test bed has it that is for the clients with one of its algorithms."""
    theirs = {**point.columns, ALGORITHM: algorithm}
    found = (path for path in plan.paths if path.name == point.path.name and path.only.covers(theirs))
    return replace(point, path=next(found, point.path))


def _shares(template: Mapping[str, Any], parts: int) -> list[dict[str, Any]]:
    """The clients of a group in equal parts; what is left over goes to the first."""
    if parts == 1:
        return [{}]
    count = int(template.get("count", 1))
    each = count // parts
    return [{"count": each + (count - each * parts if part == 0 else 0)} for part in range(parts)]


def _of_all(group: Mapping[str, Any], clients: int) -> dict[str, Any]:
    """A population whose periods of all clients `together` are those of so many: a mix offers what all alike do."""

    def apart(workload: Any) -> Any:
        if isinstance(workload, list):
            return [apart(one) for one in workload]
        period = workload.get("period") if isinstance(workload, dict) else None
        told = _TIME.fullmatch(str(period.get("together"))) if isinstance(period, dict) else None
        if told is None:
            return workload
        return {**workload, "period": f"{Decimal(told[1]) * clients:f} {told[2]}"}

    return {**group, **({"workload": apart(group["workload"])} if "workload" in group else {})}


def _on_path(plan: Plan, point: _Point, tree: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for place, value in point.path.changes.items():
        try:
            changes[place] = _filled(value, point.columns)
        except (KeyError, ValueError, IndexError):
            where = f"{plan.file}: path {point.path.name}: {place}"
            raise UsageError(f"{where}: {value!r} names no factor: known: {', '.join(point.columns)}") from None
    try:
        return scenarios.with_files(scenarios.with_changes(tree, changes), plan.folder)
    except UsageError as error:
        raise UsageError(f"{plan.file}: path {point.path.name}: {error}") from None


def _filled(value: Any, columns: Mapping[str, Value]) -> Any:
    """The value with `{column}` written out in its texts."""
    if isinstance(value, str):
        return value.format_map(columns)
    if isinstance(value, dict):
        return {key: _filled(entry, columns) for key, entry in value.items()}
    return value
