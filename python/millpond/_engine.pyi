"""The native engine: scenarios in, Arrow tables out. Use it through the package `millpond`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Final, Literal, SupportsFloat, SupportsIndex, TypeAlias, final

__all__ = [
    "COLLAPSE",
    "Batch",
    "Controller",
    "Cx",
    "Exchange",
    "Feedback",
    "Group",
    "Outcome",
    "Sample",
    "Scenario",
    "ScenarioError",
    "Table",
    "View",
    "Wait",
    "Wishes",
    "built",
    "commit",
    "defaults",
    "diagnose",
    "groups_of",
    "live",
    "live_verbs",
    "presets",
    "profiles",
    "quantity",
    "verb_groups",
    "version",
]

_Micros: TypeAlias = SupportsIndex | SupportsFloat
_SettingRow: TypeAlias = tuple[str, str, str]
_Find: TypeAlias = Callable[[str, dict[str, bool | int | float | str]], Callable[[], object]]

@final
class Controller:
    """The controller of one peer.

    It is watched: a call that breaks the contract raises ValueError, and changes nothing if the controller is built in.
    """

    def __new__(cls, preset: str, settings: Mapping[str, object] | None = None) -> Controller:
        """Make a built-in controller.

        `settings` are those of a scenario, `{"max-wait": "60 s"}`, and `least-wait`: no wait is shorter.
        """

    @staticmethod
    def own(make: Callable[[], object], name: str) -> Controller:
        """Watch a controller of one's own: `make` is its class, or a factory; `name` is what errors call it."""

    @property
    def name(self) -> str:
        """The preset's name, or that of one's own."""

    @property
    def source(self) -> str:
        """Where it is described; empty for one's own."""

    @property
    def summary(self) -> str:
        """What it does, in one line; empty for one's own."""

    @property
    def readings(self) -> list[str]:
        """How its source was read, by number."""

    @property
    def state_bytes(self) -> int | None:
        """Bytes that it keeps for each peer, its parameters included; None for one's own."""

    @property
    def id(self) -> int | None:
        """The preset's number; None for one's own."""

    @property
    def settings(self) -> list[_SettingRow]:
        """Its settings: name, value in force, what is legal. Empty for one's own."""

    def admit(self, kind: str, length: int, cx: Cx) -> Literal["now", "when-one-ends"] | int:
        """May a message of this kind (`confirmable` or `plain`) leave now? If not, when; in microseconds."""

    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> Wait:
        """The first copy of a confirmable message leaves. How long until the second?"""

    def on_timeout(self, exchange: Exchange, cx: Cx) -> Wait:
        """The timer expired and a retransmission leaves. How long is the next wait?"""

    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        """The exchange ended with an answer."""

    def on_end(self, exchange: Exchange, why: str, cx: Cx) -> None:
        """The exchange ended without an answer: `gave-up`, `reset` or `cancelled`."""

    def on_plain_send(self, length: int, cx: Cx) -> None:
        """A message left that nobody will acknowledge."""

    def on_feedback(self, feedback: Feedback, cx: Cx) -> None:
        """It became known what happened to a message that nobody acknowledges."""

    def wishes(self) -> Wishes:
        """What the algorithm asks of the endpoint."""

    def view(self) -> View:
        """Numbers for traces and reports."""

    def base_rtt_us(self) -> int | None:
        """The round trip of the path without a queue, as far as it was measured; None if it keeps none."""

    def recall(self, base_rtt_us: _Micros) -> None:
        """A base round trip from an earlier life. 0, and what comes after the first certain sample, changes nothing."""

    def shortest_wait_us(self) -> int:
        """The shortest wait that it can ever arm."""

    def longest_wait_us(self, copy: int, previous_us: int) -> int:
        """The longest wait after this copy (0 is the first), given the longest after the copy before."""

    def copy(self) -> Controller:
        """A controller that knows what this one knows; from now on each goes its own way."""

@final
class Cx:
    """What a call may know."""

    def __new__(cls, now_us: int, chance: int | None = None, open: int | None = None, waiting: int | None = None) -> Cx:  # noqa: A002
        """Tell the time; chance is 0, open 1 and waiting 0 unless given."""

    @property
    def now_us(self) -> int:
        """The time of the call; never earlier than in the call before."""

    @property
    def chance(self) -> int:
        """One uniform 32-bit word that belongs to this call alone."""

    @property
    def open(self) -> int:
        """Exchanges outstanding to this peer, the one the call is about included."""

    @property
    def waiting(self) -> int:
        """Messages held back for this peer; zero means that the application is what limits the rate."""

    def between(self, low_us: _Micros, high_us: _Micros) -> int:
        """A length that the word of chance spreads evenly over `low_us` to `high_us`, both included."""

@final
class Exchange:
    """The record of one exchange, begun by the controller to which it is given first."""

    memory: object
    """Whatever a controller of one's own keeps of this exchange; None at first."""

    def __new__(cls) -> Exchange:
        """Make a blank record."""

    @property
    def started_us(self) -> int:
        """When the first copy left."""

    @property
    def current_us(self) -> int:
        """The wait in force."""

    @property
    def first_wait_us(self) -> int:
        """The first wait."""

    @property
    def retransmissions(self) -> int:
        """Copies sent after the first."""

@final
class Sample:
    """How an exchange was answered."""

    def __new__(
        cls,
        kind: str,
        since_first_us: _Micros,
        since_last_us: _Micros,
        retransmissions: int,
        named: int | str | None = None,
        since_named_us: _Micros | None = None,
    ) -> Sample:
        """Tell an answer: `kind` is `empty-ack`, `piggybacked` or `separate`.

        `named` is the number of the copy that it names (0: the first), sent `since_named_us` ago; or `further`.
        """

    def marked(self) -> Sample:
        """The same, but a queue marked the answer in place of dropping it."""

    @property
    def is_marked(self) -> bool:
        """Whether a queue marked the answer in place of dropping it."""

    @property
    def kind(self) -> str:
        """`empty-ack`, `piggybacked` or `separate`."""

    @property
    def since_first_us(self) -> int:
        """Time from the first copy to the reply."""

    @property
    def since_last_us(self) -> int:
        """Time from the last copy to the reply."""

    @property
    def retransmissions(self) -> int:
        """Copies sent after the first before the reply came."""

    @property
    def named(self) -> int | str | None:
        """The copy that the reply names: its number (0: the first), `further` for one after the first, or None."""

    @property
    def since_named_us(self) -> int | None:
        """Time from the copy that the reply names; None if it names no single one, or is a separate response."""

    @property
    def grade(self) -> str:
        """How far it may be trusted: `exact`, `echoed` (at most so long), `ambiguous` or `none`."""

    @property
    def exact_us(self) -> int | None:
        """The round-trip time, if it is certain."""

@final
class Feedback:
    """What became of a message that nobody acknowledges."""

    def __new__(
        cls,
        message: str,
        fate: str,
        since_us: int,
        length: int | None = None,
        reply_length: int | None = None,
        number: int | None = None,
    ) -> Feedback:
        """Tell the fate (`answered`, `arrived`, `lost`) of a `request`, a `further` response or a `block`."""

    @property
    def message(self) -> str:
        """What was sent: `request`, `further` (a notification) or `block` (of RFC 9177)."""

    @property
    def fate(self) -> str:
        """What became of it: `answered` now, `arrived`, or `lost`."""

    @property
    def since_us(self) -> int:
        """How long ago it left: a round-trip time, if it was answered."""

    @property
    def length(self) -> int:
        """Its length in bytes."""

    @property
    def reply_length(self) -> int:
        """The length of the answer in bytes; zero unless it was answered."""

    @property
    def number(self) -> int:
        """Of a request: how many non-confirmable ones left on the path before it, wrapping at 2^32."""

    def __eq__(self, value: object, /) -> bool: ...

@final
class Wait:
    """How long to wait, why, and what then."""

    def __new__(cls, us: _Micros, reason: str = "initial", then: str = "retransmit") -> Wait:
        """Wait so many microseconds, rounded to the nearest.

        `reason` is `initial`, `backed-off`, `slow`, `carried` or `blind`; `then` is `retransmit` or `abandon`.
        """

    @property
    def us(self) -> int:
        """How long."""

    @property
    def reason(self) -> str:
        """Why this long."""

    @property
    def then(self) -> str:
        """What follows."""

    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class View:
    """Numbers for traces and reports. What a controller does not keep is None."""

    def __new__(
        cls,
        *,
        rto_us: _Micros | None = None,
        srtt_us: _Micros | None = None,
        rttvar_us: _Micros | None = None,
        weak_srtt_us: _Micros | None = None,
        weak_rttvar_us: _Micros | None = None,
        carried_us: _Micros | None = None,
    ) -> View:
        """Tell the numbers that there are."""

    @property
    def rto_us(self) -> int | None:
        """The timeout, before limit and dither, that the next exchange starts from unless a wait is carried."""

    @property
    def srtt_us(self) -> int | None:
        """Smoothed round-trip time of the (strong) estimator."""

    @property
    def rttvar_us(self) -> int | None:
        """Round-trip time variation of the (strong) estimator."""

    @property
    def weak_srtt_us(self) -> int | None:
        """Smoothed round-trip time of the weak estimator."""

    @property
    def weak_rttvar_us(self) -> int | None:
        """Round-trip time variation of the weak estimator."""

    @property
    def carried_us(self) -> int | None:
        """A backed-off wait kept for the next exchange."""

    def __eq__(self, value: object, /) -> bool: ...

@final
class Wishes:
    """What an algorithm asks of the endpoint."""

    def __new__(
        cls,
        naming: str = "none",
        confirmable_every: int | None = None,
        nstart: int | None = None,
        governs_requests: bool = False,
        last_wait_us: int | None = None,
        ecn: bool = False,
    ) -> Wishes:
        """Wish copies told apart (`token`, `count`, `flag`, `timestamp`), one in so many confirmable, so many open."""

    @property
    def naming(self) -> str:
        """How copies of a request are to be told apart: `none`, `token`, `count`, `flag` or `timestamp`."""

    @property
    def confirmable_every(self) -> int:
        """Among this many consecutive unacknowledged messages, make one confirmable; zero: no wish."""

    @property
    def nstart(self) -> int:
        """Exchanges that may be open at once; zero: no wish."""

    @property
    def governs_requests(self) -> bool:
        """Whether it governs non-confirmable requests by their answers, and no other such messages."""

    @property
    def last_wait_us(self) -> int:
        """How long an answer to the last copy is awaited at least while nothing else is to leave; zero: no wish."""

    @property
    def ecn(self) -> bool:
        """Whether it reacts to answers that a queue marked, so that they may be marked in place of being dropped."""

    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class ScenarioError(ValueError):
    """A scenario that cannot be run. Its text is one line: the place and the mend."""

@final
class Scenario:
    """A validated scenario. Immutable; cheap to hand to many runs."""

    @staticmethod
    def from_toml(text: str, origin: str, find: _Find | None = None) -> Scenario:
        """Read a scenario from TOML; `origin` names it in errors, as a rule the file's path.

        `find` is asked for every controller that is not built in: it takes name and settings, and gives what makes one.
        """

    @staticmethod
    def from_json(text: str, origin: str = "scenario", find: _Find | None = None) -> Scenario:
        """Read a scenario from JSON, as `to_json` writes it."""

    def groups(self) -> list[Group]:
        """Give all groups of flows by their numbers."""

    def to_json(self) -> str:
        """Give the whole scenario with every default filled in; equal scenarios give equal text."""

    def nodes(self, seed: int) -> list[tuple[str, int, int, str, str | None, int]]:
        """Give the nodes of its mesh: name, place in millimetres, role, parent with this seed, hops to the root.

        None without a mesh.
        """

    def estimated_bytes(self) -> int:
        """Estimate how many bytes one run of it holds at its peak."""

    @property
    def clients(self) -> int:
        """Clients of all groups together."""

    @property
    def title(self) -> str:
        """The line for people."""

@final
class Group:
    """Flows that are alike: one for each client of a table, or what the server sends to each of these."""

    @property
    def table(self) -> int:
        """The number of the clients' table."""

    @property
    def traffic(self) -> Literal["requests", "commands", "notifications"]:
        """Who asks."""

    @property
    def name(self) -> str:
        """The scenario's name for it; empty if it has none."""

    @property
    def count(self) -> int:
        """How many clients."""

    @property
    def transport(self) -> Literal["udp", "tcp"]:
        """How requests travel."""

    @property
    def starts_endless(self) -> bool:
        """Whether work that it begins by itself, and not after an event, goes on until the run ends."""

    @property
    def is_endless(self) -> bool:
        """Whether it is never done because its work goes on until the run ends; that after an event has an end."""

    @property
    def is_loop(self) -> bool:
        """Whether every request follows on the one before, and none on an event."""

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
        capture: bool = False,
        together: bool = False,
    ) -> Batch:
        """Start the jobs `(scenario, seed, run)` in their order; `workers=0` uses every core.

        `capture` keeps every packet of every run, which is for a few runs at a time. `together`: they are sites that
        share the links which their scenarios name as shared, all under way at the same time.
        """

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

    @property
    def cause(self) -> BaseException | None:
        """What a controller of one's own raised, if that is why the run failed."""

    def tables(self) -> dict[str, Table]:
        """Give the run's tables by name; none if it failed."""

    def capture(self) -> bytes | None:
        """Give every packet as a pcapng file; None if that was not asked for or the run failed."""

@final
class Table:
    """A result table, read by anything that knows the Arrow PyCapsule interface; its columns are shared, not copied."""

    @property
    def num_rows(self) -> int:
        """Rows of the table."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""

    def followed_by(self, others: Sequence[Table]) -> Table:
        """Give the rows of this table, and behind them those of others of the same columns, in one piece."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def diagnose(
    sources: Sequence[bytes | PathLike[str]], side: str | None = None, ports: Sequence[int] = ...
) -> tuple[str, str, Table]:
    """Diagnose captures, by their bytes or files: figures as JSON, the first screen, and a row for each transmission.

    Raises OSError for a file that cannot be read, ValueError with one line for what is no capture of CoAP.
    """

def version() -> str:
    """Give the version of the engine, which is the version of the package."""

def built() -> str:
    """Give the version with the commit that this was built from, where that is known, as `--version` prints it."""

def commit() -> tuple[str, bool] | None:
    """Give that commit, and whether the sources were as committed."""

def groups_of(text: str) -> list[Group]:
    """Give all groups of flows of a scenario that results keep, as `to_json` wrote it."""

def quantity(kind: Literal["time", "rate", "queue", "size"], written: str) -> str:
    """Give a quantity as scenarios write it back; `written` is JSON. Raises ValueError with what is wrong."""

def presets() -> list[tuple[str, str, int, str, list[str], int, list[_SettingRow], str, str]]:
    """List every built-in controller: name, source, number, summary, readings, bytes of state, settings, names."""

def profiles() -> list[tuple[str, str, str, str]]:
    """List every path that has a name: name, title, source, and its file with the place of every figure."""

def live(arguments: Sequence[str], further: str | None = None) -> int:
    """Run a verb that needs no laboratory: `arguments` begin with the program's name. Gives the exit code.

    Completions and manual tell of the `further` verbs of the program, too, which are JSON.
    """

def defaults() -> list[tuple[str, str]]:
    """What they do unless told otherwise: the controller, its settings, the least wait."""

#: Of the bytes that a link carries, the share that completes no exchange above which it has collapsed.
COLLAPSE: Final[float]

def live_verbs() -> list[tuple[str, str]]:
    """The verbs that need no laboratory, each with its line of help."""

def verb_groups() -> list[tuple[str, list[str]]]:
    """The same verbs by what they are for."""
