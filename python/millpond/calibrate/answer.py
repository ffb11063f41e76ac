"""What came of a calibration: the best setting, how flat its surroundings are, and what holds under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.calibrate import trial
from millpond.calibrate.description import Calibration, Parameter, read
from millpond.calibrate.search import Told, search
from millpond.calibrate.trial import Judged, Trial
from millpond.plan.plan import Plan
from millpond.results.factor import Value
from millpond.run.campaign import Watcher

#: Settings whose misfit is at most so many times the least are nearly as good.
NEARLY = 1.1
#: So many of the closest settings are run again, so often in each cell.
CLOSEST, AGAIN = 10, 4


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    calibration: Calibration
    version: str
    #: All settings, the reading chosen before first.
    tried: tuple[Trial, ...]
    #: Of the closest ones the closest by more runs.
    best: Trial
    #: The study under the reading that it has first, and under the best setting.
    before: Judged
    after: Judged

    @property
    def near(self) -> tuple[Trial, ...]:
        """The settings that are nearly as good, the best among them."""
        return tuple(one for one in self.tried if one.misfit <= max(self.best.misfit, NEARLY * self.tried_least))

    @property
    def tried_least(self) -> float:
        """The least misfit of all."""
        return min(one.misfit for one in self.tried)

    def spread(self, parameter: Parameter) -> tuple[Value, ...]:
        """Of the settings that are nearly as good the least and greatest value, or all choices."""
        values = [one.setting[parameter.name] for one in self.near]
        if parameter.choices:
            return tuple(word for word in parameter.choices if word in values)
        return min(values, key=float), max(values, key=float)

    def fitting(self, names: Sequence[str], judged: Judged) -> int:
        """How many of these rows fit."""
        found = (judged.figures[name] for name in names)
        return sum(trial.fits(figure.published, figure.ours) for figure in found)

    def misfit(self, names: Sequence[str], judged: Judged) -> float:
        """How far these rows lie from the published ones."""
        found = [judged.figures[name] for name in names]
        return trial.misfit([trial.distance(one.published, one.ours, one.unit) for one in found])

    @property
    def explains(self) -> bool:
        """Whether all rows that chose the setting fit under it."""
        return self.fitting(self.calibration.fit, self.after) == len(self.calibration.fit)

    def to_json(self) -> dict[str, Any]:
        """The answer for programs."""
        rows = {
            key: [
                {
                    "id": name,
                    "published": self.before.figures[name].published,
                    "before": self.before.figures[name].ours,
                    "calibrated": self.after.figures[name].ours,
                    "fits": trial.fits(self.after.figures[name].published, self.after.figures[name].ours),
                }
                for name in names
            ]
            for key, names in (("fit", self.calibration.fit), ("test", self.calibration.test))
        }
        return {
            "study": self.calibration.plan.name,
            "version": self.version,
            "tried": len(self.tried),
            "explains": self.explains,
            "best": {"setting": dict(self.best.setting), "misfit": self.best.misfit},
            "before": {"setting": self.calibration.first, "misfit": self.tried[0].misfit},
            "nearly": {one.name: list(self.spread(one)) for one in self.calibration.parameters},
            "rows": rows,
            "claims": [
                {"id": old.id, "before": old.verdict, "calibrated": new.verdict}
                for old, new in zip(self.before.claims, self.after.claims, strict=True)
            ],
        }


def calibrate(
    plan: Plan,
    folder: Path,
    *,
    quick: bool = False,
    tries: int | None = None,
    jobs: int = 0,
    told: Told = lambda _number, _best: None,
    watcher: Callable[[], Watcher] = Watcher,
) -> Answer:
    """Search the setting under which the rows of a study come out that it declares for that, and judge it.

    Args:
        plan: The study's.
        folder: Where trials are kept, and taken from if there are some.
        quick: The small version.
        tries: How many settings instead.
        jobs: Processes; 0 for one per core.
        told: Told after each setting.
        watcher: Told of the runs by which the best is judged.

    Raises:
        MillpondError: one line, if what is declared makes no sense, or was stopped.
    """
    calibration = read(plan)
    folder.mkdir(parents=True, exist_ok=True)
    count = tries or (calibration.quick if quick else calibration.tries)
    tried = tuple(search(calibration, count, folder, jobs, told))
    # one run of each cell flatters some settings
    close = sorted(tried, key=lambda one: one.misfit)[:CLOSEST]
    again = [trial.tried(calibration, one.setting, AGAIN) for one in close]
    best = close[min(range(len(close)), key=lambda place: again[place].misfit)]
    before, after = (trial.judged(calibration, setting, quick, jobs, watcher()) for setting in (None, best.setting))
    return Answer(calibration, _engine.version(), tried, best, before, after)
