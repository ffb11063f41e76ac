"""How far completion times depend on how long a state of the radio lasts: the same share of losses in other turns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from millpond.judge.compare import Comparison
from millpond.show.report import style
from millpond.show.report.data import Data, number, only
from millpond.show.report.figures import marks
from millpond.show.report.values import Missing, Rows, Spread
from millpond.studies.tcp20 import errors
from millpond.studies.tcp20.errors import PROFILES, Scene

USUAL = "100 ms"
"""How long a bad state lasts where the profile's name does not say it."""
MEMORYLESS = "memory-\nless"
ABREAST = 5
"""With more lengths than this their names stand upright."""

Found = Mapping[tuple[str, str, int, str], Spread]
"""Profile, dwell, buffer in bytes and preset, and the completion times there."""


def completion_by_dwell(data: Data, scene: Scene, comparison: Comparison | None) -> Figure:
    """Median completion time over the length of a bad state, the share of losses being the same.

    A row per error profile, a column per buffer; dotted lines are the published medians. Raises `Missing` if it was not
    varied.
    """
    found = _found(data, scene)
    profiles = [name for name in PROFILES if any(key[0] == name for key in found)]
    dwells = _ordered({key[1] for key in found})
    buffers = sorted({key[2] for key in found})
    controllers = [name for name in data.controllers() if any(key[3] == name for key in found)]
    looks = data.looks
    theirs = errors.published(data, scene, comparison)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.7 * len(profiles) + 1.0), layout="constrained")
        panels = figure.subplots(len(profiles), len(buffers), squeeze=False, sharex=True, sharey="row")
        told = False
        for row, profile in enumerate(profiles):
            values = [v for key, s in found.items() if key[0] == profile for v in (s.p10, s.p90)]
            for column, buffer in enumerate(buffers):
                panel = panels[row][column]
                for place, name in enumerate(controllers):
                    shift = (place - (len(controllers) - 1) / 2) * 0.09
                    line = [
                        (x + shift, found[profile, dwell, buffer, name])
                        for x, dwell in enumerate(dwells)
                        if (profile, dwell, buffer, name) in found
                    ]
                    at, spreads = [x for x, _ in line], [spread for _, spread in line]
                    look = looks[name]
                    marks.medians(panel, look, at, spreads)
                    # lengths in time are joined by a line, and those in packets by another
                    split = sum(not dwell.endswith("packets") for dwell in dwells)
                    for low, high in ((0, split), (split, len(dwells))):
                        part = [(x, s.median) for x, s in line if low - 0.5 < x < high - 0.5]
                        if part:
                            panel.plot(*zip(*part, strict=True), color=look.colour, linestyle=look.dash, linewidth=0.9)
                    said = theirs.get((profile, buffer, name), {}).get("median")
                    if said is not None and line:
                        panel.axhline(said, color=look.colour, linestyle=":", linewidth=1.4, zorder=1)
                        values.append(said)
                        told = True
                panel.set_title(f"{PROFILES[profile]}, {errors.short(buffer)}", fontsize=10)
                upright = len(dwells) > ABREAST
                words = [_plain(dwell) for dwell in dwells] if upright else dwells
                panel.set_xticks(range(len(dwells)), words, fontsize=8 if upright else 7.5, rotation=90 * upright)
                panel.set_xlim(-0.5, len(dwells) - 0.5)
                if column == 0:
                    panel.set_ylabel("flow completion time (s)")
                if row == len(profiles) - 1:
                    panel.set_xlabel("bad state lasts", fontsize=9.5)
            errors.scaled(panels[row][0], values)
        keys = marks.line_keys(data, controllers)
        if told:
            keys.append(Line2D([], [], color=style.INK, linestyle=":", linewidth=1.4, label="published median"))
        marks.legend_below(figure, keys, 5)
    return figure


def completion_by_dwell_rows(data: Data, scene: Scene) -> Rows:
    """The percentiles that `completion_by_dwell` draws from."""
    rows = [
        (profile, _plain(dwell), buffer, name, *spread.row())
        for (profile, dwell, buffer, name), spread in _found(data, scene).items()
    ]
    return Rows(("error_profile", "bad_state", "buffer_bytes", "controller", *Spread.HEADER), tuple(rows))


# ----------------------------------------------------------------------------------------------- helpers


def _found(data: Data, scene: Scene) -> Found:
    found: dict[tuple[str, str, int, str], Spread] = {}
    varied: set[tuple[str, int, str]] = set()
    for cell in data.cells:
        said = cell.columns
        here = (said.get("workload"), said.get("clients"), said.get("path"))
        if here != (scene.workload, scene.clients, scene.path) or cell.mixed:
            continue
        profile, _, dwell = str(said.get("error_profile", "none")).partition("-")
        spread = data.spread("fct_us", cell)
        if profile not in PROFILES or spread is None:
            continue
        buffer, name = int(number(cell, "buffer_bytes")), only(cell)
        if dwell:
            varied.add((profile, buffer, name))
        found[profile, _words(dwell), buffer, name] = spread
    found = {key: spread for key, spread in found.items() if (key[0], *key[2:]) in varied}
    if not found:
        raise Missing("Not drawn: how long a bad state of the radio lasts was not varied in these runs.")
    return found


def _plain(dwell: str) -> str:
    return dwell.replace("-\n", "").replace("\n", " ")


def _words(dwell: str) -> str:
    if not dwell:
        return USUAL
    length = re.fullmatch(r"([\d.]+)(ms|s|packets)", dwell)
    if length is None:
        return MEMORYLESS
    return f"{length[1]}\npackets" if length[2] == "packets" else f"{length[1]} {length[2]}"


def _ordered(dwells: set[str]) -> list[str]:
    """Lengths in time from the shortest on, then those in packets."""

    def length(dwell: str) -> tuple[int, float]:
        if dwell == MEMORYLESS:
            return 0, 0.0
        size, _, unit = dwell.replace("\n", " ").partition(" ")
        if unit in ("ms", "s"):
            return 0, float(size) * {"ms": 1e-3, "s": 1.0}[unit]
        return 1, float(size)

    return sorted(dwells, key=length)
