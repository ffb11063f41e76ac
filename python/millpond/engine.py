"""What the laboratory asks of the native engine, as types; tests put a small stand-in behind the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast


class Preset(NamedTuple):
    """A built-in controller, as the engine lists it."""

    name: str
    source: str
    #: Its number; no other preset ever gets it.
    id: int
    #: What it does, in one line.
    summary: str
    #: How its source was read, by number.
    readings: list[str]
    #: Bytes kept for each peer, parameters included.
    state_bytes: int
    #: Each with its value in force and what is legal.
    settings: list[tuple[str, str, str]]


class Find(Protocol):
    """Gives controllers that are not built in, see `millpond.controllers.own.OwnControllers`."""

    def __call__(self, name: str, settings: Mapping[str, Any]) -> Callable[[], object]:
        """What makes one of this name and with these settings; raises an error with one line."""
        ...


class EngineScenario(Protocol):
    """A validated scenario, see `millpond._engine.Scenario`."""

    def to_json(self) -> str:
        """The whole scenario with every default filled in."""
        ...

    def nodes(self, seed: int) -> list[tuple[str, int, int, str, str | None, int]]:
        """The nodes of its mesh with the tree of a run: name, place in millimetres, role, parent, hops to the root."""
        ...

    def estimated_bytes(self) -> int:
        """Estimated peak memory of one run."""
        ...

    @property
    def clients(self) -> int:
        """Clients of all groups."""
        ...


class EngineTable(Protocol):
    """Rows that are not in Python yet, see `millpond._engine.Table`."""

    @property
    def num_rows(self) -> int:
        """How many."""
        ...

    def followed_by(self, others: Sequence[Any]) -> EngineTable:
        """These rows, and behind them those of others of the same columns."""
        ...

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        ...


class EngineOutcome(Protocol):
    """One finished run, see `millpond._engine.Outcome`."""

    @property
    def run(self) -> int:
        """The number the caller gave the run."""
        ...

    @property
    def error(self) -> str | None:
        """Why it failed; None if it did not."""
        ...

    @property
    def cause(self) -> BaseException | None:
        """What a controller of one's own raised, if that is why."""
        ...

    def tables(self) -> Mapping[str, EngineTable]:
        """Its tables by name."""
        ...

    def capture(self) -> bytes | None:
        """Every packet as a pcapng file; None if it was not asked for."""
        ...


class EngineBatch(Protocol):
    """Runs spread over threads, see `millpond._engine.Batch`."""

    def next(self, timeout: float | None = None) -> EngineOutcome | None:
        """The next finished run; None if there was none in time."""
        ...

    def cancel(self) -> None:
        """Stop promptly."""
        ...

    @property
    def done(self) -> bool:
        """Whether no further run will come."""
        ...

    @property
    def workers(self) -> int:
        """Threads at work."""
        ...


class Engine(Protocol):
    """The calls used of the module `millpond._engine`."""

    def scenario_from_toml(self, text: str, origin: str, find: Find | None = None) -> EngineScenario:
        """Read a scenario; raises ValueError with one line."""
        ...

    def scenario_from_json(self, text: str, origin: str, find: Find | None = None) -> EngineScenario:
        """Read a scenario; raises ValueError with one line."""
        ...

    def batch(
        self,
        jobs: Sequence[tuple[EngineScenario, int, int]],
        *,
        workers: int,
        trace: Sequence[str],
        trace_step_us: int,
        capture: bool = False,
        together: bool = False,
    ) -> EngineBatch:
        """Start the jobs `(scenario, seed, run)`. `together`: they are sites that share links."""
        ...

    def version(self) -> str:
        """Version of the engine."""
        ...

    def presets(self) -> list[Preset]:
        """The built-in controllers."""
        ...


class _Native:
    """The native module behind those calls."""

    def scenario_from_toml(self, text: str, origin: str, find: Find | None = None) -> EngineScenario:
        from millpond import _engine

        return cast(EngineScenario, _engine.Scenario.from_toml(text, origin, find))

    def scenario_from_json(self, text: str, origin: str, find: Find | None = None) -> EngineScenario:
        from millpond import _engine

        return cast(EngineScenario, _engine.Scenario.from_json(text, origin, find))

    def batch(
        self,
        jobs: Sequence[tuple[EngineScenario, int, int]],
        *,
        workers: int,
        trace: Sequence[str],
        trace_step_us: int,
        capture: bool = False,
        together: bool = False,
    ) -> EngineBatch:
        from millpond import _engine

        native = cast("Sequence[tuple[_engine.Scenario, int, int]]", jobs)
        further = {name: True for name, is_so in (("capture", capture), ("together", together)) if is_so}
        started = _engine.Batch(native, workers=workers, trace=trace, trace_step_us=trace_step_us, **further)
        return cast(EngineBatch, started)

    def version(self) -> str:
        from millpond import _engine

        return _engine.version()

    def presets(self) -> list[Preset]:
        from millpond import _engine

        return [Preset(*row) for row in _engine.presets()]


def native() -> Engine:
    """The engine that ships with the package. Raises ImportError if the native module was not built."""
    return _Native()
