"""The check of what was written: it is run with several seeds, and each run is measured as the capture was."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from millpond.diagnose import analysis
from millpond.diagnose.analysis import Diagnosis
from millpond.diagnose.ends import End
from millpond.diagnose.written import SCENARIO
from millpond.plan import scenario as scenarios
from millpond.run import capture

#: So near is a repetition that repeats.
NEAR = 0.1


@dataclass(frozen=True)
class Beside:
    """A number of the capture, and of each run of what was written."""

    name: str
    unit: str
    capture: float
    runs: Sequence[float]

    @property
    def middle(self) -> float:
        """The median over the runs."""
        return float(np.median(self.runs))

    @property
    def off(self) -> float:
        """How far the middle of the runs is from the capture, of that; a ratio in its own points."""
        if math.isnan(self.capture) or math.isnan(self.middle):
            return math.nan
        if self.unit == "1" or self.capture == 0:
            return self.middle - self.capture
        return self.middle / self.capture - 1

    @property
    def is_near(self) -> bool:
        """Whether that is within a tenth."""
        return math.isnan(self.off) or abs(self.off) <= NEAR


def check(found: Diagnosis, folder: Path, seeds: Sequence[int]) -> list[Beside]:
    """Run the scenario of a folder with these seeds, and put the runs beside the capture.

    Args:
        found: The diagnosis of the capture.
        folder: What was written for it.
        seeds: One for each run.
    """
    scenario = scenarios.load(folder / SCENARIO)
    end: End = "devices" if found.figures["side"] == "devices" else "server"
    runs = [analysis.of_capture(capture.of_run(scenario, seed), end) for seed in seeds]
    return beside(found, runs)


def beside(found: Diagnosis, runs: Sequence[Diagnosis]) -> list[Beside]:
    """The numbers of a capture beside those of runs."""
    return [
        Beside(name, unit, number(found), [number(run) for run in runs]) for name, (unit, number) in NUMBERS.items()
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _transmissions(found: Diagnosis) -> float:
    return float(found.exchanges.num_rows)


def _requests(found: Diagnosis) -> float:
    return float(found.requests.num_rows)


def _goodput(found: Diagnosis) -> float:
    ratio = found.figures["goodput_ratio"]
    return math.nan if ratio is None else float(ratio)


def _completion(share: float) -> Callable[[Diagnosis], float]:
    """The time in which this share of the devices is done: from the first transmission of each to its last."""

    def of(found: Diagnosis) -> float:
        devices = found.devices
        first, last = (devices.column(name).to_numpy() for name in ("first_us", "last_us"))
        return float(np.quantile(last - first, share)) / 1e6 if len(first) else math.nan

    return of


#: What is compared: its unit and how it is measured, of the capture and of a run.
NUMBERS: Mapping[str, tuple[str, Callable[[Diagnosis], float]]] = {
    "transmissions": ("", _transmissions),
    "requests": ("", _requests),
    "a device is done after, median": ("s", _completion(0.5)),
    "a device is done after, 90 %": ("s", _completion(0.9)),
    "goodput ratio": ("1", _goodput),
}
