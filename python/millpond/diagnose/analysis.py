"""What the engine finds in a capture, as Python reads it: figures with their grades, and tables for frames."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as parquet

from millpond import _engine
from millpond.diagnose.ends import End, Seen
from millpond.errors import MillpondError, UsageError, unknown
from millpond.results.html_table import html_table

Grade = Literal["exact", "at-least", "at-most", "estimate", "unknown"]
#: Where a capture was taken.
SIDES = ("server", "devices", "both")
Verdict = Literal["healthy", "strained", "collapse", "unknown"]


@dataclass(frozen=True)
class Given:
    """A figure, how far it can be believed, and why."""

    value: float | None
    grade: Grade
    because: str

    def __str__(self) -> str:
        sign = {"exact": "", "at-least": "\N{GREATER-THAN OR EQUAL TO} ", "at-most": "\N{LESS-THAN OR EQUAL TO} "}
        value = "not visible" if self.value is None else f"{sign.get(self.grade, 'about ')}{self.value:.4g}"
        return f"{value}: {self.because}" if self.because else value


@dataclass(frozen=True)
class Diagnosis:
    """What a capture says."""

    #: What `millpond diagnose --json` prints.
    figures: Mapping[str, Any]
    #: A row a transmission, in the order of time: `peer`, `server`, `message_id`, `token`, `transmission` (from 1 on),
    #: `t_us` (since 1970), `verdict` (`first`, `spurious`, `needed`, `unknown`), `confidence`, `bytes`, `payload`,
    #: `answered_us` (when the exchange's answer of the same number was seen; null if there was none), `answer_bytes`,
    #: `answer_payload`.
    exchanges: pa.Table
    #: What the program prints first.
    text: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The lines of that."""
        return tuple(line for line in self.text.splitlines() if line)

    @property
    def verdict(self) -> Verdict:
        """`healthy`, `strained`, `collapse` or `unknown`."""
        told: Verdict = self.figures["verdict"]
        return told

    def figure(self, place: str) -> Given:
        """A figure by its place in the JSON, such as `path.uplink.rate_bps`; *unknown* where there is none."""
        told: Any = self.figures
        for step in place.split("."):
            told = (told or {}).get(step)
        return Given(None, "unknown", "") if told is None else Given(told["value"], told["grade"], told["because"])

    def with_figure(self, place: str, told: Any) -> Diagnosis:
        """The same with what stands at a place of the JSON told in another way."""
        figures: dict[str, Any] = dict(self.figures)
        *way, last = place.split(".")
        spot = figures
        for step in way:
            spot[step] = dict(spot[step])
            spot = spot[step]
        spot[last] = told
        return replace(self, figures=figures)

    @cached_property
    def requests(self) -> pa.Table:
        """A row an exchange, in the order of time.

        `peer`, `message_id`, `token`, `first_us`, `last_us`, `transmissions`, `spurious`, `needed`, `unknown`,
        `answers`, `accepted_us` (when the answer that was taken passed; null if there was none), `next_us` (when the
        device began its next exchange; null for its last), `bytes`, `payload`, `answer_bytes`, `answer_payload`.
        """
        return _requests(self.exchanges)

    @cached_property
    def devices(self) -> pa.Table:
        """A row a device, in the order of its first request.

        `peer`, `requests`, `transmissions`, `spurious`, `needed`, `unknown`, `answered` (requests), `first_us`,
        `last_us`.
        """
        found = self.requests.group_by("peer", use_threads=False).aggregate(
            [
                ("message_id", "count"),
                *((name, "sum") for name in ("transmissions", "spurious", "needed", "unknown")),
                ("accepted_us", "count"),
                ("first_us", "min"),
                ("last_us", "max"),
            ]
        )
        names = {
            "peer": "peer",
            "message_id_count": "requests",
            **{f"{name}_sum": name for name in ("transmissions", "spurious", "needed", "unknown")},
            "accepted_us_count": "answered",
            "first_us_min": "first_us",
            "last_us_max": "last_us",
        }
        return found.select(list(names)).rename_columns(list(names.values())).sort_by("first_us")

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column of `exchanges`; times that are null are NaN."""
        return _column(self.exchanges, name)

    def labels(self) -> dict[Seen, str]:
        """The verdict of each transmission, by its device, message ID and time."""
        keys = zip(*(self.column(name).tolist() for name in ("peer", "message_id", "t_us")), strict=True)
        return dict(zip(keys, self.column("verdict").tolist(), strict=True))

    def report(self, file: Path | str, exchange: str | None = None) -> Path:
        """Write a page with pictures, among them one exchange: `PEER/MESSAGE_ID`, or that with most transmissions."""
        from millpond.diagnose import page

        return page.write(page.document(self, Path(file).stem, self.sentences, exchange), Path(file))

    def write(self, folder: Path | str) -> list[Path]:
        """Write a path, a scenario and a fleet that repeat the capture. Gives the files. What is not visible is fitted.

        Raises:
            MillpondError: one line that says what is wrong and how to fix it.
        """
        from millpond.diagnose import written
        from millpond.diagnose.fitted import fitted

        written.check(Path(folder))
        source = Path(folder).name
        return written.write(written.of(fitted(self, source), source), Path(folder))

    def repeat(self, folder: Path | str, seeds: int = 10) -> pa.Table:
        """Run what was written into a folder with so many seeds, and put the runs beside the capture.

        Returns:
            A row a number: `number`, `unit`, `capture`, `median` of the runs, `low`, `high`, and `off`, the difference
            of capture and median, relative, of ratios in points.
        """
        from millpond.diagnose import repeat

        found = repeat.check(self, Path(folder), range(1, seeds + 1))
        columns = {
            "number": [one.name for one in found],
            "unit": [one.unit for one in found],
            "capture": [one.capture for one in found],
            "median": [one.middle for one in found],
            "low": [min(one.runs) for one in found],
            "high": [max(one.runs) for one in found],
            "off": [one.off for one in found],
        }
        return pa.table(columns)

    def _repr_html_(self) -> str:
        given = {place: self.figure(place) for place in places(self.figures)}
        rows = {
            "figure": list(given),
            "value": [figure.value for figure in given.values()],
            "grade": [figure.grade for figure in given.values()],
            "because": [figure.because for figure in given.values()],
        }
        return html_table(pa.table(rows), f"Diagnosis: {self.verdict}")


def of_files(files: Sequence[Path], side: str | None = None, ports: Sequence[int] = ()) -> Diagnosis:
    """Diagnose captures, which are read one after the other as parts of one.

    Args:
        files: pcap or pcapng.
        side: Where they were taken: `server`, `devices` or `both`; None: it is found.
        ports: Of servers, besides 5683.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    for port in ports:
        if not 1 <= port <= 65535:
            raise UsageError(f"--port: {port} is no port: 1 to 65535")
    if side not in (None, *SIDES):
        raise UsageError(f"--side: {unknown('side', str(side), SIDES)}")
    return _found(files, side, ports, ", ".join(map(str, files)))


def of_capture(capture: bytes, side: End) -> Diagnosis:
    """Diagnose what one end saw of a run that was captured at both."""
    return _found([capture], side, (), "the capture of the run")


def write_exchanges(found: Diagnosis, file: Path) -> None:
    """Write `exchanges` as Parquet. Raises `MillpondError` with one line if that cannot be done."""
    try:
        parquet.write_table(found.exchanges, file)
    except OSError as error:
        raise MillpondError(f"{file}: {error.strerror or error}") from None


def places(figures: Mapping[str, Any], within: str = "") -> list[str]:
    """The places of all figures that have a grade."""
    found = []
    for key, told in figures.items():
        if isinstance(told, Mapping):
            place = f"{within}{key}"
            found += [place] if "grade" in told else places(told, f"{place}.")
    return found


# ----------------------------------------------------------------------------------------------- helpers


def _found(sources: Sequence[Path | bytes], side: str | None, ports: Sequence[int], name: str) -> Diagnosis:
    try:
        figures, text, rows = _engine.diagnose(sources, side, list(ports))
    except ValueError as error:
        raise MillpondError(f"{name}: {error}") from None
    except OSError as error:
        raise MillpondError(f"{error.filename}: {os.strerror(error.errno or 0)}") from None
    return Diagnosis(json.loads(figures), pa.table(rows).sort_by("t_us"), text)


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = table.column(name).to_numpy(zero_copy_only=False)
    return values


def _requests(rows: pa.Table) -> pa.Table:
    """Transmissions put together: an exchange begins with transmission 1."""
    known: dict[tuple[str, int, str], int] = {}
    found: list[dict[str, Any]] = []
    last_of: dict[str, int] = {}
    for row in rows.to_pylist():
        key = (row["peer"], row["message_id"], row["token"])
        if row["transmission"] == 1:
            known[key] = len(found)
            if (before := last_of.get(row["peer"])) is not None:
                found[before]["next_us"] = row["t_us"]
            last_of[row["peer"]] = len(found)
            found.append(
                {
                    "peer": row["peer"], "message_id": row["message_id"], "token": row["token"],
                    "first_us": row["t_us"], "last_us": row["t_us"], "transmissions": 0, "spurious": 0, "needed": 0,
                    "unknown": 0, "answers": 0,
                    "accepted_us": None, "next_us": None, "bytes": row["bytes"], "payload": row["payload"],
                    "answer_bytes": None, "answer_payload": None,
                }
            )  # fmt: skip
        if key not in known:
            continue
        of = found[known[key]]
        of["last_us"] = row["t_us"]
        of["transmissions"] += 1
        if row["verdict"] in ("spurious", "needed", "unknown"):
            of[row["verdict"]] += 1
        if row["answered_us"] is not None:
            of["answers"] += 1
            of["answer_bytes"], of["answer_payload"] = row["answer_bytes"], row["answer_payload"]
            # a spurious transmission has an earlier answer that was taken
            if row["verdict"] != "spurious" or of["accepted_us"] is None:
                of["accepted_us"] = row["answered_us"]
    return pa.Table.from_pylist(found, schema=_REQUESTS)


_REQUESTS = pa.schema(
    [
        ("peer", pa.string()), ("message_id", pa.int64()), ("token", pa.string()), ("first_us", pa.int64()),
        ("last_us", pa.int64()), ("transmissions", pa.int64()), ("spurious", pa.int64()), ("needed", pa.int64()),
        ("unknown", pa.int64()), ("answers", pa.int64()), ("accepted_us", pa.int64()), ("next_us", pa.int64()),
        ("bytes", pa.int64()), ("payload", pa.int64()), ("answer_bytes", pa.int64()), ("answer_payload", pa.int64()),
    ]
)  # fmt: skip
