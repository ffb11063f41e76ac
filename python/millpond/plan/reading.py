"""Reads plans: their file, checked key by key, as what `millpond.plan.plan` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond.controllers.own import is_own, short
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.factor import RESERVED, Vary, must_be_known, read_only, read_values, read_vary
from millpond.plan.keys import PlanFile, Runs, Tree
from millpond.plan.plan import PLAN, TRACES, Algorithm, Matrix, Mix, PathVariant, Plan, Reading, Trace
from millpond.plan.toml_file import checked, read_tree, where
from millpond.plan.values import plain
from millpond.results.factor import ALGORITHM, Value

_RUNS: Any = Runs
_SCENARIO: Any = str | Tree


def read(place: Path | Mapping[str, Any], presets: Sequence[str] = ()) -> Plan:
    """Read a plan: its file, a folder with a `plan.toml`, or its keys as a tree.

    Args:
        place: The file, folder or tree.
        presets: Controllers that a plan may name without a table for them.

    Raises:
        UsageError: one line: file, key and fix.
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
        PathVariant(
            entry.name, entry.label, entry.set, read_only(entry.only, file, f"path[{n}].only", factors), entry.told
        )
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
        paths=paths or (PathVariant("fixed", "as given", {}, told=""),),
        quick_replications=None if quick is None else checked(quick, _RUNS, file, "quick.replications"),
        quick_values=quick_values,
        trace=Trace(
            tuple(top.trace.tables),
            round(top.trace.step * 1e6),
            top.trace.flows,
            only=read_only(top.trace.only, file, "trace.only", factors),
            largest=tuple(top.trace.largest),
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
        page=top.page,
    )
    _touch_something(plan)
    return plan


# ----------------------------------------------------------------------------------------------- helpers


def _listed(matrix: list[Tree] | Tree) -> list[Tree]:
    return matrix if isinstance(matrix, list) else [matrix]


def _read_matrix(tree: Tree, file: Path, place: str, top: PlanFile, vary: Mapping[str, Vary]) -> Matrix:
    lists = dict(tree)
    own = place if "scenario" in lists else ""
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
    if not scenario_file.exists() and (beside := file.parent / scenario_file.name).exists():
        # results keep all that a plan names beside it
        scenario_file = beside
    if not scenario_file.exists():
        raise UsageError(f"{where(file, own, 'scenario')}: {scenario_file}: no such file")
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
