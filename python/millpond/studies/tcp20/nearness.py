"""How near a study of downloads comes to what was published: by clients, error profile, algorithm and path variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from millpond.judge.compare import Comparison
from millpond.show import labels
from millpond.show.document import Listing
from millpond.show.report.grid import Grid
from millpond.studies.tcp20.errors import PROFILES, STATISTICS

NEAR, FAR = 0.05, 0.20
"""Up to the first share published figures count as met, from the second on as missed."""


@dataclass(frozen=True)
class Nearness:
    """Ours beside the published completion times of one algorithm, over all buffers and percentiles."""

    clients: int
    profile: str
    algorithm: str
    path: str
    #: Shares of what was published, without their sign, by buffer in bytes.
    by_buffer: Mapping[int, tuple[float, ...]]

    @property
    def differences(self) -> list[float]:
        """All of them."""
        return [difference for found in self.by_buffer.values() for difference in found]

    @property
    def typical(self) -> float:
        """The median of the differences."""
        return float(np.median(self.differences))

    @property
    def met(self) -> int:
        """How many are met."""
        return sum(difference <= NEAR for difference in self.differences)

    def words(self, grid: Grid) -> str:
        """Which it is, in words."""
        name = grid.label(self.algorithm)
        told = [f"{labels.clients(self.clients)}, {PROFILES[self.profile]}"]
        missed = [size for size, found in self.by_buffer.items() if self.typical <= FAR < float(np.median(found))]
        if missed:
            told.append(f"but not with {labels.listed([_buffer(size) for size in sorted(missed)])}")
        return f"{name} ({', '.join(told)})"


def of(comparison: Comparison | None, paths: Sequence[str]) -> list[Nearness]:
    """All that can be compared, on each path variant; figures that do not depend on it count for every one."""
    found: dict[tuple[int, str, str], dict[str, dict[int, list[float]]]] = {}
    for figure in comparison.figures if comparison is not None else []:
        said = figure.scenario
        wanted = figure.metric == "fct" and figure.statistic in STATISTICS and not figure.bin and not figure.qualifier
        if not wanted or figure.relative is None or str(said.get("error_profile")) not in PROFILES:
            continue
        if not all(str(said.get(name)).isdigit() for name in ("clients", "buffer_bytes")):
            continue
        if ";" in str(said.get("algorithm", ";")):
            continue
        key = int(said["clients"]), str(said["error_profile"]), str(said["algorithm"])
        place = found.setdefault(key, {path: {} for path in paths})
        for path in [str(said["path"])] if "path" in said else paths:
            if path in place:
                place[path].setdefault(int(said["buffer_bytes"]), []).append(abs(figure.relative))
    order = list(PROFILES)
    return [
        Nearness(*key, path, {size: tuple(values) for size, values in by_buffer.items()})
        for key, by_path in sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1])))
        for path, by_buffer in by_path.items()
        if by_buffer
    ]


def story(found: Sequence[Nearness], grid: Grid) -> list[str]:
    """What is met and what is missed on the first path variant, in two sentences."""
    first = [one for one in found if one.path == grid.paths[0]]
    if not first:
        return []
    near = [one.words(grid) for one in first if one.typical <= NEAR]
    far = [one.words(grid) for one in first if one.typical > FAR]
    between = [one.words(grid) for one in first if NEAR < one.typical <= FAR]
    told = []
    if near:
        told.append(f"Published completion times come out, typically within 5 %, for {labels.listed(near)}.")
    if between:
        told.append(f"They are 5 to 20 % apart for {labels.listed(between)}.")
    if far:
        told.append(f"They do not come out, more than 20 % apart, for {labels.listed(far)}.")
    return [" ".join(told)]


def table(found: Sequence[Nearness], grid: Grid) -> Listing:
    """How many figures are met, and the typical difference, a pair of columns for each path variant."""
    paths = [path for path in grid.paths if any(one.path == path for one in found)]
    rows: list[tuple[str, ...]] = []
    before = 0
    for clients, profile, algorithm in dict.fromkeys((one.clients, one.profile, one.algorithm) for one in found):
        if clients != before:
            rows.append((labels.clients(clients),))
            before = clients
        key = (clients, profile, algorithm)
        here = {one.path: one for one in found if (one.clients, one.profile, one.algorithm) == key}
        cells: list[str] = []
        for path in paths:
            one = here.get(path)
            cells += ["", ""] if one is None else [f"{one.met} of {len(one.differences)}", labels.percent(one.typical)]
        rows.append((PROFILES[profile], grid.label(algorithm), *cells))
    header = ["", ""]
    for path in paths:
        words = f"{grid.results.reading.say(path) or path}: " if len(paths) > 1 else ""
        header += [f"{words}within 5 %", f"{words}typical difference"]
    caption = (
        "Published completion times that are met, of all buffers and percentiles, and the median difference without "
        "its sign."
    )
    return Listing("nearness", tuple(header), tuple(rows), caption, numeric=tuple(range(2, len(header))))


def _buffer(size: float) -> str:
    return f"a buffer of {labels.size(size)}"
