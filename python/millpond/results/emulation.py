"""What an emulation came to, as Parquet: the rows that the emulator itself writes, in the tables of the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.errors import MillpondError
from millpond.given_files import read_json
from millpond.results.store import write_table

#: The file that the emulator writes into the folder of `--out`.
REPORT = "report.json"
#: The rows of it that are tables.
TABLES = ("links", "flows")


def write_tables(folder: Path) -> list[Path]:
    """Write the tables of the report in a folder beside it; a column more than it has is `run`, which is 0.

    Raises:
        MillpondError: one line, if there is no report or it cannot be read.
    """
    file = folder / REPORT
    try:
        report = read_json(file)
        tables = {name: _table(report[name]) for name in TABLES}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise MillpondError(f"{file}: no report of an emulation ({error})") from None
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    return [folder / f"{name}.parquet" for name in tables]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table: counts unsigned, times signed, as the simulator has them."""
    names = list(rows[0]) if rows else []
    columns = {"run": pa.array([0] * len(rows), pa.uint32())}
    for name in names:
        values = [row[name] for row in rows]
        known = next((value for value in values if value is not None), None)
        if isinstance(known, int):
            kind = pa.int64() if name.endswith("_us") else pa.uint32() if name == "flow" else pa.uint64()
        elif isinstance(known, float):
            kind = pa.float64()
        else:
            kind = pa.int64() if name.endswith("_us") else pa.string()
        columns[name] = pa.array(values, kind)
    return pa.table(columns)
