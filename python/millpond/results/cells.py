"""What was varied, as tables: one row a cell with a column a factor, one row a group of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from millpond.results.directory import Cell
from millpond.results.factor import Value


def cells_table(cells: Sequence[Cell]) -> pa.Table:
    """`cell`, `id`, `first_run`, `replications`, then each factor under its own name: whole numbers, numbers or texts.

    A cell without a factor has null there.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.columns)
    return pa.table(
        {
            "cell": pa.array([cell.number for cell in cells], pa.uint32()),
            "id": pa.array([cell.id for cell in cells], pa.string()),
            "first_run": pa.array([cell.first_run for cell in cells], pa.uint32()),
            "replications": pa.array([cell.replications for cell in cells], pa.uint32()),
            **{name: _typed([cell.columns.get(name) for cell in cells]) for name in names},
        }
    )


def groups_table(cells: Sequence[Cell], labels: Mapping[str, str]) -> pa.Table:
    """`cell`, `group`, `name`, `label`, `algorithm`, `clients` (how many), `transport`, `traffic` (who asks).

    Args:
        cells: The cells.
        labels: What algorithms are called in figures.
    """
    rows = [(cell, group) for cell in cells for group in cell.groups]
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "cell": ([cell.number for cell, _ in rows], pa.uint32()),
        "group": ([group.index for _, group in rows], pa.uint32()),
        "name": ([group.name for _, group in rows], pa.string()),
        "label": ([labels.get(group.algorithm, group.label) for _, group in rows], pa.string()),
        "algorithm": ([group.algorithm for _, group in rows], pa.string()),
        "clients": ([group.count for _, group in rows], pa.uint32()),
        "transport": ([group.transport for _, group in rows], pa.string()),
        "traffic": ([group.traffic for _, group in rows], pa.string()),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def _typed(values: Sequence[Value | None]) -> pa.Array:
    there = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in there):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) for value in there):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
