"""Where an answer is kept: the report for people, and the same for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from millpond.errors import MillpondError, UsageError
from millpond.fleet import told, verdict
from millpond.fleet.answer import Answer
from millpond.fleet.change import Change, Effort
from millpond.fleet.description import understood
from millpond.fleet.outcome import Demand, Drawn, Outcome, Run
from millpond.fleet.remedies import Remedy
from millpond.fleet.search import Edge, Spread
from millpond.given_files import read_text
from millpond.measure.links import COLLAPSE
from millpond.measure.reported import SHARES
from millpond.results.directory import free_directory
from millpond.results.store import write_text
from millpond.show.text import as_json

REPORT, NUMBERS, GATEWAY = "report.html", "answer.json", "gateway.toml"


def folder(asked: Path, name: str) -> Path:
    """The folder that is meant, which holds no results yet; one whose last part is `*` is a free one.

    Raises:
        MillpondError: one line, if there is something else, or nothing can be written there.
    """
    found = free_directory(asked, name)
    if found.exists() and not found.is_dir():
        raise UsageError(f"--out: {found} is a file: name a folder")
    if found.is_dir() and {file.name for file in found.iterdir()} - {REPORT, NUMBERS, GATEWAY, "figures", "tables"}:
        raise UsageError(f"--out: {found} holds something else: name another folder")
    there = next(above for above in (found, *found.absolute().parents) if above.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise MillpondError(f"{found}: cannot write results here ({there} is not for writing): choose another --out")
    return found


def write(answer: Answer, to: Path) -> Path:
    """Write all files, each whole or not at all. Gives the report."""
    from millpond.fleet import page

    text = page.render(answer)
    to.mkdir(parents=True, exist_ok=True)
    write_text(to / NUMBERS, as_json(to_json(answer)))
    if answer.gateway is None:
        (to / GATEWAY).unlink(missing_ok=True)
    else:
        write_text(to / GATEWAY, answer.gateway)
    write_text(to / REPORT, text)
    return to / REPORT


def export(
    answer: Answer, to: Path, figures: Sequence[str] = (), tables: Sequence[str] = (), width: float = 10.5
) -> list[Path]:
    """Write figures and tables of the report as files of their own into two folders of `to`. Gives the files."""
    from millpond.fleet import page
    from millpond.show import export

    sections = page.sections(answer)
    written = export.figures(sections, to / "figures", figures, width) if figures else []
    return written + (export.tables(sections, to / "tables", tables) if tables else [])


def holds_answer(folder: Path) -> bool:
    """Whether a folder is one that `write` has written."""
    return (folder / NUMBERS).is_file()


def read(folder: Path) -> Answer:
    """The answer that a folder holds. Raises `MillpondError` with one line."""
    file = folder / NUMBERS
    try:
        found = json.loads(read_text(file))
    except (ValueError, RecursionError):
        raise MillpondError(f"{file}: no JSON: ask again") from None
    return from_json(found, str(file))


#: Counts up when something that was there is gone or means something else.
FORMAT = 1
#: What a program reads of a setting: medians over its runs.
_MEDIANS = (
    "never", "copies", "spurious", "useful", "queue_bytes", "queue_s", "uplink_s", "others_s", "messages", "bytes",
)  # fmt: skip
#: The fields of a run that are numbers.
_NUMBERS = tuple(field.name for field in fields(Run) if field.name not in ("seed", "done", "verdict"))


def to_json(answer: Answer) -> dict[str, Any]:
    """Everything. A time is null where what it tells of never comes."""
    fleet, cost = answer.fleet, answer.cost
    goal = fleet.goal
    return {
        "format": FORMAT,
        "version": answer.version,
        "inputs": {
            "from": fleet.origin,
            "description": msgspec.to_builtins(fleet.keys),
            "path": fleet.path,
            "seeds": list(answer.seeds),
        },
        "title": fleet.title,
        "words": told.lead(answer),
        "assumed": told.assumed(answer),
        "thresholds": {
            "safe_share_of_runs": verdict.SURE,
            "given_up_share_of_devices": verdict.GIVEN_UP,
            "collapse_useless_share": COLLAPSE,
            "congested_useful_share": verdict.MOSTLY,
            "barely_times_the_minimum": verdict.BARELY,
        },
        "devices": fleet.keys.devices,
        "goal": {"share": goal.share, "within_s": goal.within_s, "copies": goal.copies, "useful": goal.useful},
        "seeds": list(answer.seeds),
        "one_device": _demand(cost),
        "least_s": answer.least_s,
        "answer": _outcome(answer.as_it_is),
        "remedies": [_remedy(remedy) for remedy in answer.remedies],
        "pairs_without_gain": list(answer.no_gain),
        "new_firmware": [_remedy(remedy) for remedy in answer.shares],
        "calm_server_after_uplink_s": answer.uplink_first_s,
        "least_spread": None if answer.spread is None else _spread(answer.spread),
        "edges": [_edge(edge) for edge in answer.edges],
        "gateway": answer.gateway,
    }


def from_json(found: Mapping[str, Any], file: str) -> Answer:
    """The reverse of `to_json`. Raises `MillpondError` with one line if it is none, or damaged."""
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        raise MillpondError(f"{file}: not an answer of this version of millpond fleet: ask again")
    try:
        inputs = found["inputs"]
        fleet = understood(inputs["description"], str(inputs["from"]), path=inputs["path"])
        return Answer(
            fleet,
            Demand(**found["one_device"]),
            tuple(int(seed) for seed in inputs["seeds"]),
            _outcome_of(found["answer"]),
            tuple(_remedy_of(one) for one in found["remedies"]),
            tuple(map(str, found["pairs_without_gain"])),
            tuple(_remedy_of(one) for one in found["new_firmware"]),
            None if found["least_spread"] is None else _spread_of(found["least_spread"]),
            tuple(_edge_of(one) for one in found["edges"]),
            str(found["version"]),
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise MillpondError(f"{file}: damaged: {type(error).__name__} {error}: ask again") from None


# ----------------------------------------------------------------------------------------------- helpers


def _demand(cost: Demand) -> dict[str, Any]:
    return dict(vars(cost))


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "change": _change(outcome.change),
        "devices": outcome.devices,
        "verdict": outcome.verdict,
        "probability": {
            word: dict(zip(("share", "low", "high"), outcome.probability(word), strict=True))
            for word in verdict.VERDICTS
        },
        "done_s": {f"{100 * share:g} %": outcome.median(f"done_{100 * share:.0f}") for share in SHARES},
        "bottleneck": outcome.bottleneck,
        **{name: outcome.median(name) for name in _MEDIANS},
        "runs": [_run(run) for run in outcome.runs],
        "drawn": None if outcome.drawn is None else outcome.drawn.to_json(),
    }


def _outcome_of(found: Mapping[str, Any]) -> Outcome:
    drawn = found["drawn"]
    return Outcome(
        _change_of(found["change"]),
        int(found["devices"]),
        tuple(_run_of(run) for run in found["runs"]),
        str(found["bottleneck"]),
        None if drawn is None else Drawn.from_json(drawn),
    )


def _run(run: Run) -> dict[str, Any]:
    """What is no number is left out, so that null says one thing: never."""
    told = {name: value for name, value in vars(run).items() if not (isinstance(value, float) and math.isnan(value))}
    return told | {"done": {f"{share:g}": time for share, time in run.done.items()}}


def _run_of(found: Mapping[str, Any]) -> Run:
    numbers = {name: _number(found.get(name, math.nan)) for name in _NUMBERS}
    if found["verdict"] not in verdict.VERDICTS:
        raise ValueError(f"unknown verdict {found['verdict']!r}")
    done = {float(share): _number(time) for share, time in found["done"].items()}
    return Run(seed=int(found["seed"]), done=done, verdict=found["verdict"], **numbers)


def _number(found: Any) -> float:
    return math.inf if found is None else float(found)


def _change(change: Change) -> dict[str, Any]:
    told = {name: value for name, value in vars(change).items() if value is not None}
    return told | {"effort": change.effort.name.lower(), "needs": change.effort.words}


def _change_of(found: Mapping[str, Any]) -> Change:
    told = {name: value for name, value in found.items() if name != "needs"}
    return Change(**{**told, "effort": Effort[str(found["effort"]).upper()]})


def _remedy(remedy: Remedy) -> dict[str, Any]:
    interval = None if remedy.interval is None else list(remedy.interval)
    return {**_outcome(remedy.outcome), "sooner_s": remedy.sooner, "sooner_interval_s": interval}


def _remedy_of(found: Mapping[str, Any]) -> Remedy:
    interval = found["sooner_interval_s"]
    return Remedy(_outcome_of(found), found["sooner_s"], None if interval is None else (interval[0], interval[1]))


def _spread(spread: Spread) -> dict[str, Any]:
    points = [{"over_s": over, **_outcome(outcome)} for over, outcome in spread.points]
    return {"least_s": spread.least_s, "unsafe_s": spread.unsafe_s, "points": points}


def _spread_of(found: Mapping[str, Any]) -> Spread:
    points = tuple((float(point["over_s"]), _outcome_of(point)) for point in found["points"])
    return Spread(points, found["least_s"], float(found["unsafe_s"]))


def _edge(edge: Edge) -> dict[str, Any]:
    return {
        "change": _change(edge.change),
        "largest": edge.largest,
        "smallest_unsafe": edge.smallest_unsafe,
        "points": [_outcome(point) for point in edge.points],
    }


def _edge_of(found: Mapping[str, Any]) -> Edge:
    points = tuple(_outcome_of(point) for point in found["points"])
    return Edge(_change_of(found["change"]), points, int(found["largest"]), found["smallest_unsafe"])
