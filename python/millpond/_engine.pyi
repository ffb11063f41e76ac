"""The native engine: scenarios in, Arrow tables out. Use it through the package `millpond`."""

from collections.abc import Sequence
from typing import final

__all__ = ["Batch", "Outcome", "Scenario", "ScenarioError", "Table", "presets", "version"]

class ScenarioError(ValueError):
    """A scenario that cannot be run. Its text is one line: the place and the mend."""

@final
class Scenario:
    """A validated scenario. Immutable; cheap to hand to many runs."""

    @staticmethod
    def from_toml(text: str, origin: str) -> Scenario:
        """Read a scenario from TOML; `origin` names it in errors, as a rule the file's path."""

    @staticmethod
    def from_json(text: str, origin: str = "scenario") -> Scenario:
        """Read a scenario from JSON, as `to_json` writes it."""

    def to_json(self) -> str:
        """Give the whole scenario with every default filled in; equal scenarios give equal text."""

    def estimated_bytes(self) -> int:
        """Estimate how many bytes one run of it holds at its peak."""

    @property
    def clients(self) -> int:
        """Clients of all groups together."""

    @property
    def title(self) -> str:
        """The line for people."""

@final
class Batch:
    """Runs spread over worker threads, handed out as they finish.

    Each run depends on its scenario and seed alone: the number of workers changes the order, never a result.
    """

    def __new__(
        cls,
        jobs: Sequence[tuple[Scenario, int, int]],
        *,
        workers: int = 0,
        trace: Sequence[str] = ...,
        trace_step_us: int = 1_000_000,
    ) -> Batch:
        """Start the jobs `(scenario, seed, run)` in their order; `workers=0` uses every core."""

    def next(self, timeout: float | None = None) -> Outcome | None:
        """Wait up to `timeout` seconds (`None`: as long as it takes) for the next run that has finished.

        `None` if none did, or if none is left. The interpreter lock is released meanwhile; Ctrl-C is noticed at once.
        """

    def cancel(self) -> None:
        """Stop the workers promptly. Runs that had finished can still be fetched."""

    @property
    def done(self) -> bool:
        """Whether no further run will come."""

    @property
    def total(self) -> int:
        """Runs in all."""

    @property
    def finished(self) -> int:
        """Runs handed out so far."""

    @property
    def workers(self) -> int:
        """Threads at work."""

@final
class Outcome:
    """One run that has finished."""

    @property
    def run(self) -> int:
        """The number that the caller gave the run."""

    @property
    def error(self) -> str | None:
        """Why the run failed, in one line; `None` if it did not."""

    def tables(self) -> dict[str, Table]:
        """Give the run's tables by name; none if it failed."""

@final
class Table:
    """A result table, read by anything that knows the Arrow PyCapsule interface; its columns are shared, not copied."""

    @property
    def num_rows(self) -> int:
        """Rows of the table."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def version() -> str:
    """Give the version of the engine, which is the version of the package."""

def presets() -> list[tuple[str, str]]:
    """List every named controller preset as `(name, source)`."""
