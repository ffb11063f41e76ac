"""Many settings tried, in processes: differential evolution, whose every trial is kept in a file as it ends.

The search is the same every time: one that was stopped takes the trials that are kept, and goes on where it was.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, differential_evolution

from millpond.calibrate import description, trial
from millpond.calibrate.description import Calibration
from millpond.calibrate.trial import Setting, Trial
from millpond.errors import MillpondError, UsageError
from millpond.given_files import read_text
from millpond.plan import study
from millpond.results.store import write_text

#: Trials, a line each.
TRIALS = "trials.jsonl"
#: Where the search begins: chance that is the same every time.
SEED = 7252
#: Settings of a generation, for each parameter. Few, so that there are several generations.
EACH = 3

#: Told after each trial: how many there are, and the best so far.
Told = Callable[[int, Trial], None]


class _Enough(Exception):
    """As many settings were tried as were to be."""


def search(calibration: Calibration, tries: int, folder: Path, jobs: int, told: Told) -> list[Trial]:
    """So many settings, the reading chosen before first, in the order in which they were tried.

    Args:
        calibration: What may change, and by which rows.
        tries: How many settings.
        folder: Where trials are kept; those that are there are taken instead of tried again.
        jobs: Processes; 0 for one per core.
        told: Told after each.

    Raises:
        MillpondError: one line, if a file there is damaged.
    """
    file = folder / TRIALS
    kept = _kept(file)
    # a last line that was cut short goes
    write_text(file, "".join(_line(one) for one in kept.values()))
    found: dict[str, Trial] = {}
    with (
        ProcessPoolExecutor(
            jobs or None, multiprocessing.get_context("spawn"), _begin, (calibration.plan.file,)
        ) as pool,
        file.open("a", encoding="utf-8") as out,
    ):

        def try_all(settings: Iterable[Setting]) -> list[Trial]:
            wanted = {_key(setting): setting for setting in settings}
            under_way: dict[str, Future[Trial]] = {}
            for key, setting in wanted.items():
                if key not in kept:
                    if len(found) + len(under_way) >= tries:
                        break
                    under_way[key] = pool.submit(_try, dict(setting))
            for key in wanted:
                if key not in found and len(found) >= tries:
                    raise _Enough
                if key not in kept:
                    kept[key] = under_way[key].result()
                    out.write(_line(kept[key]))
                    out.flush()
                if key not in found:
                    found[key] = kept[key]
                    told(len(found), min(found.values(), key=_misfit))
            return [found[_key(setting)] for setting in settings]

        try:
            try_all([calibration.first])
            _evolve(calibration, tries, lambda places: try_all([_setting(calibration, place) for place in places]))
        except _Enough:
            pass
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return list(found.values())


# ----------------------------------------------------------------------------------------------- helpers


def _evolve(calibration: Calibration, tries: int, try_all: Callable[[list[Any]], list[Trial]]) -> None:
    """Differential evolution over the places of all parameters, a generation at a time, until somebody says enough."""
    size = len(calibration.parameters)
    start = np.array([parameter.place(parameter.first) for parameter in calibration.parameters])

    def generation(_: object, places: Iterable[Any]) -> Iterator[float]:
        return iter([one.misfit for one in try_all(list(places))])

    def unused(_: Any) -> float:
        return 0.0

    for turn in range(tries):  # one that has converged begins elsewhere
        differential_evolution(
            unused,
            Bounds(np.zeros(size), np.ones(size)),
            popsize=EACH,
            maxiter=tries,
            tol=1e-6,
            init="sobol",
            x0=start,
            polish=False,
            updating="deferred",
            workers=generation,
            seed=SEED + turn,
        )
        start = np.random.default_rng(SEED + turn).random(size)


def _setting(calibration: Calibration, places: Iterable[float]) -> Setting:
    return {one.name: one.at(float(place)) for one, place in zip(calibration.parameters, places, strict=True)}


def _key(setting: Setting) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def _line(one: Trial) -> str:
    return json.dumps(asdict(one)) + "\n"


def _misfit(one: Trial) -> float:
    return one.misfit


def _kept(file: Path) -> dict[str, Trial]:
    """The trials of a file by their settings; a last line that was cut short is none."""
    if not file.is_file():
        return {}
    lines = read_text(file).splitlines()
    found = {}
    for number, line in enumerate(lines, start=1):
        try:
            one = Trial(**json.loads(line))
            found[_key(one.setting)] = replace(one, misfit=float(one.misfit))
        except (ValueError, TypeError, AttributeError):
            if number < len(lines):
                raise MillpondError(f"{file}: line {number}: no trial of a calibration: choose another --out") from None
    return found


_HERE: list[Calibration] = []


def _begin(file: Path) -> None:
    """A process reads what is calibrated."""
    _HERE[:] = [description.read(study.load(file))]


def _try(setting: Setting) -> Trial:
    if not _HERE:
        raise UsageError("no calibration was read")
    return trial.tried(_HERE[0], setting)
