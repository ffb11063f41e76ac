"""The keys of a plan, with their types and defaults. Tables whose keys are names of the user's stay as they are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from millpond.errors import UsageError
from millpond.plan.toml_file import Declared
from millpond.plan.values import whole

Count = Annotated[int, msgspec.Meta(ge=1)]
#: More runs of one cell than anybody waits for; their seeds alone would fill the memory.
MOST_RUNS = 1_000_000
Runs = Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)]
Tree = dict[str, Any]


def counted(replications: int) -> int:
    """A number of replications. Raises `UsageError` with one line if it makes no sense."""
    count = whole(replications, "--replications")
    if not 1 <= count <= MOST_RUNS:
        raise UsageError(f"--replications: {count} makes no sense here: 1 to {MOST_RUNS:,}")
    return count


class PathTable(Declared):
    """`[[path]]`."""

    name: str
    label: str = ""
    #: What it is called among other words of a place; left out: its name.
    told: str | None = None
    only: Tree = {}
    set: Tree = {}


class TraceTable(Declared):
    """`[trace]`."""

    tables: list[str] = []
    step: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    flows: Count = 8
    only: Tree = {}
    largest: list[str] = []


class ReadingTable(Declared):
    """`[reading]`."""

    replications: Count | None = None
    algorithms: list[str] | None = None
    apart: bool = False
    metrics: dict[str, str] = {}
    unmeasured: dict[str, list[str]] = {}
    confidence: Annotated[float, msgspec.Meta(ge=0.5, lt=1)] = 0.95
    bins: dict[str, Tree] = {}


class PlanFile(Declared):
    """What a plan may hold; tables whose keys are names of the user's are read one by one."""

    scenario: str | Tree
    matrix: list[Tree] | Tree
    name: str = ""
    title: str = ""
    source: str = ""
    published: str = ""
    claims: str = ""
    replications: Runs | None = None
    sites: Runs | None = None
    seed: int | None = None
    bottleneck: str = ""
    page: str = ""
    columns: Tree = {}
    vary: dict[str, Tree] = {}
    algorithms: dict[str, Tree] = {}
    mix: list[Tree] = []
    path: list[PathTable] = []
    quick: Tree = {}
    trace: TraceTable = msgspec.field(default_factory=TraceTable)
    reading: ReadingTable = msgspec.field(default_factory=ReadingTable)
