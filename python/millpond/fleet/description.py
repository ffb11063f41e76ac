"""A fleet as its operator speaks of it: devices, their cell, what happens, what each does then, and the goal.

Every key has a default, and every default its source, in `millpond fleet --example`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from millpond.controllers.own import OwnControllers, is_own
from millpond.engine import presets
from millpond.errors import UsageError, unknown
from millpond.fleet.security import Security
from millpond.plan import path_files, values
from millpond.plan.scenario import check_arrival, check_controller, with_changes
from millpond.plan.toml_file import Declared, checked, read_tree, where

#: What happens to the fleet.
Event = Literal["power-cut", "hourly", "command", "firmware"]
Duplicates = Literal["stored", "afresh", "calm"]
Link = Literal["uplink", "downlink"]
LINKS: tuple[Link, ...] = ("uplink", "downlink")

#: Reconnect rules that have a name; others are written as arrivals of a scenario are.
RECONNECT = ("at-once", "by-load", "capped-exponential", "lwm2m")
#: The mix of reports of 3GPP TR 45.820 annex E, by the name that a scenario gives it.
REPORTING = "tr45820"

#: The group that the event leaves alone: a few devices whose reports tell how the cell is.
OTHERS = "others"
#: No reports from day to day.
NEVER = "never"

#: The keys that are quantities.
_QUANTITIES: dict[str, dict[str, values.Kind]] = {
    "cell": {"uplink": "rate", "downlink": "rate", "delay": "time", "buffer": "queue"},
    "everyday": {"every": "time", "report": "size"},
    "event": {"image": "size", "block": "size", "command": "size"},
    "waking": {"registration": "size", "answer": "size"},
}

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Some = Annotated[int, msgspec.Meta(ge=1)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Each(Declared):
    """A value for each direction; one that is left out is as the profile has it."""

    uplink: float | str | None = None
    downlink: float | str | None = None


class CellKeys(Declared):
    """The keys of `[cell]`: a named path or the file of one, and what is laid over it."""

    profile: str = "nbiot-anrw18"
    uplink: str | None = None
    downlink: str | None = None
    #: Of a round trip on the idle cell, half of it each way; or of each direction.
    delay: str | Each | None = None
    #: Of the base station, each way.
    buffer: str | Each | None = None
    #: At random, each way.
    loss: float | str | Each | None = None

    def of(self, key: Literal["delay", "buffer", "loss"], link: Link) -> Any:
        """What is laid over the profile's value of a direction; None: nothing."""
        told = getattr(self, key)
        return getattr(told, link) if isinstance(told, Each) else told


class GroupKeys(Declared):
    """The keys of a `[[group]]`: devices that are alike."""

    name: str = "devices"
    share: _Share = 1.0
    controller: str | dict[str, Any] = "rfc7252"
    max_retransmit: _Count = 4
    reconnect: str | dict[str, Any] = "at-once"


class EverydayKeys(Declared):
    """The keys of `[everyday]`: traffic of every day, of the fleet and of others in the cell."""

    every: str = "1 d"
    report: str = "100 B"
    others: _Count = 20
    #: What they take of the cell, all together.
    others_load: _Share = 0.02


class EventKeys(Declared):
    """The keys of `[event]`."""

    kind: Event = "power-cut"
    #: When devices are back, have the hour, or hear of the campaign; None: as is usual for the kind.
    arrival: str | dict[str, Any] | None = None
    image: str = "100 kB"
    block: str = "512 B"
    command: str = "20 B"


class WakingKeys(Declared):
    """The keys of `[waking]`: what a device does after a power cut."""

    registration: str = "200 B"
    observations: _Count = 1
    readings: _Count = 1
    answer: str = "60 B"


class ServerKeys(Declared):
    """The keys of `[server]`."""

    duplicates: Duplicates = "stored"
    controller: str | dict[str, Any] = "rfc7252"


class GoalKeys(Declared):
    """The keys of `[goal]`."""

    done: str = "99 % in 5 min"
    copies: Annotated[float, msgspec.Meta(ge=1)] = 3.0
    useful: float | str = "80 %"


class Keys(Declared):
    """The keys of a description."""

    title: str = ""
    devices: _Some = 400
    #: Devices that get no new software.
    old_firmware: _Share = 0.0
    #: What protects messages.
    security: Security = "none"
    horizon: str = "1 h"
    cell: CellKeys = msgspec.field(default_factory=CellKeys)
    group: list[GroupKeys] = msgspec.field(default_factory=lambda: [GroupKeys()])
    everyday: EverydayKeys = msgspec.field(default_factory=EverydayKeys)
    event: EventKeys = msgspec.field(default_factory=EventKeys)
    waking: WakingKeys = msgspec.field(default_factory=WakingKeys)
    server: ServerKeys = msgspec.field(default_factory=ServerKeys)
    goal: GoalKeys = msgspec.field(default_factory=GoalKeys)
    #: Controllers that are tried as a remedy.
    try_controllers: list[str] = msgspec.field(
        default_factory=lambda: ["default-fb2", "cocoa-03", "cocoa-fb2", "fasor-token", "calm"]
    )
    #: Whether a gateway is that asks the server for the devices.
    try_gateway: bool = False


@dataclass(frozen=True)
class Goal:
    """What counts as good enough."""

    #: So large a share of the devices is done ...
    share: float
    #: ... within so many seconds of the event.
    within_s: float
    #: Copies of a message at most, on average.
    copies: float
    #: Of the bytes that the bottleneck carries from the event until the fleet is done, at least.
    useful: float

    def __str__(self) -> str:
        return (
            f"{100 * self.share:g} % done within {self.within_s:g} s, at most {self.copies:g} copies a message, "
            f"link useful at least {100 * self.useful:g} %"
        )


@dataclass(frozen=True)
class Fleet:
    """A description that was read and makes sense."""

    keys: Keys
    goal: Goal
    horizon_s: float
    #: Where it came from, for errors.
    origin: str
    #: Where files of custom controllers are looked for.
    folder: Path
    #: The path of the file that `cell.profile` names; None if that is the name of a path.
    path: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """One line: who, what happens, where."""
        told = {
            "power-cut": "after a power cut",
            "hourly": "that all report on the hour",
            "command": "that get a command at once",
            "firmware": "in a firmware campaign",
        }[self.keys.event.kind]
        return self.keys.title or f"{self.who} {told}, cell {Path(self.keys.cell.profile).name}"

    @property
    def who(self) -> str:
        """How many devices, with their noun."""
        return "1 device" if self.keys.devices == 1 else f"{self.keys.devices} devices"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Devices of each group: their shares, rounded so that the sum is right."""
        shares = [group.share for group in self.keys.group]
        exact = [self.keys.devices * share / sum(shares) for share in shares]
        sizes = [int(size) for size in exact]
        largest = sorted(range(len(exact)), key=lambda at: sizes[at] - exact[at])
        for at in largest[: self.keys.devices - sum(sizes)]:
            sizes[at] += 1
        return tuple(sizes)

    def with_devices(self, devices: int) -> Fleet:
        """The same with another number of devices."""
        return replace(self, keys=msgspec.structs.replace(self.keys, devices=devices))


def read(file: Path | None, changes: Mapping[str, Any], options: Mapping[str, str] | None = None) -> Fleet:
    """A description, from its file or of defaults alone, with values set at dotted places.

    Args:
        file: The description; None for one of defaults.
        changes: Values by their places.
        options: By which option a place was set, where that is not `--set PLACE`.

    Raises:
        UsageError: one line: the file or the option to blame, the key, and the fix.
    """
    tree = {} if file is None else read_tree(file)
    origin, folder = str(file or "fleet"), Path() if file is None else file.parent

    def fleet_of(tree: Mapping[str, Any], places: Collection[str]) -> Fleet:
        # a path that is named on the command line lies where that is typed
        found = understood(tree, origin, folder)
        near = Path() if "cell.profile" in places else folder
        file = path_files.found(found.keys.cell.profile, near, where(origin, "cell", "profile"))
        _check_with_the_engine(found)
        return replace(found, path=None if file is None else path_files.read(file))

    here: Mapping[str, Any] = tree
    for place, value in changes.items():
        try:
            here = _changed(here, place, value)
        except UsageError as error:
            raise UsageError(f"--set: {error}") from None
    try:
        return fleet_of(here, changes)
    except UsageError as error:
        set_by = {place: f"--set {place}" for place in changes} | dict(options or {})
        if (told := _blame(str(error), tree, changes, set_by, origin, fleet_of)) is not None:
            raise UsageError(told) from None
        raise


def example() -> str:
    """A description that runs, with every key, what it means and where its default comes from."""
    return (Path(__file__).parent / "example.toml").read_text(encoding="utf-8")


def understood(
    tree: Mapping[str, Any],
    origin: str,
    folder: Path = Path(),
    path: Mapping[str, Any] | None = None,
) -> Fleet:
    """A tree of keys as a fleet. Nothing that it names is opened.

    Args:
        tree: The keys.
        origin: Where they came from, for errors.
        folder: Where files of custom controllers are looked for.
        path: What the file says that `cell.profile` names, if that names one.

    Raises:
        UsageError: one line.
    """
    if "clients" in tree:
        raise UsageError(f"{origin}: a scenario, which `millpond run` takes; `millpond fleet --example` prints a fleet")
    keys = checked(dict(tree), Keys, origin)
    if not keys.group or not any(group.share for group in keys.group):
        raise UsageError(f"{where(origin, 'group')}: no devices: write at least one group with a share above 0")
    names = [group.name for group in keys.group]
    for name in names:
        if name in ("", OTHERS):
            raise UsageError(f"{where(origin, 'group')}: {name!r} is no name for a group of the fleet: choose another")
        if names.count(name) > 1:
            raise UsageError(f"{where(origin, 'group')}: {name!r} is there twice: name groups apart")
    for at, group in enumerate(keys.group):
        if isinstance(group.reconnect, str) and re.fullmatch(r"[a-z-]+", group.reconnect) is not None:
            _among(RECONNECT, group.reconnect, where(origin, f"group[{at}]", "reconnect"))
    known = [preset.name for preset in presets()]
    for name in keys.try_controllers:
        if name not in known and not is_own(name):
            raise UsageError(f"{where(origin, 'try_controllers')}: {unknown('controller', name, known)}")
    keys = _canonical(keys, origin)
    nothing = not values.in_units(keys.waking.registration) and not keys.waking.observations + keys.waking.readings
    if keys.event.kind == "power-cut" and nothing:
        raise UsageError(f"{where(origin, 'waking')}: a device that does nothing: write readings = 1, for example")
    horizon, goal = values.in_units(keys.horizon), _goal(keys.goal, origin)
    if horizon < goal.within_s:
        raise UsageError(
            f"{where(origin, 'horizon')}: {keys.horizon} ends before the time that the goal gives: write at least "
            f'"{math.ceil(goal.within_s)} s"'
        )
    return Fleet(keys, goal, horizon, origin, folder, path)


# ----------------------------------------------------------------------------------------------- helpers


def _blame(
    told: str,
    tree: Mapping[str, Any],
    changes: Mapping[str, Any],
    options: Mapping[str, str],
    origin: str,
    fleet_of: Callable[[Mapping[str, Any], Collection[str]], Fleet],
) -> str | None:
    """What was told, with an option in the place of the file: the first that brings it; None if the file does."""

    def complains(tree: Mapping[str, Any], places: Collection[str]) -> bool:
        try:
            fleet_of(tree, places)
        except UsageError as error:
            return str(error) == told
        return False

    here = tree
    if complains(here, ()):
        return None
    for at, (place, value) in enumerate(changes.items(), 1):
        here = _changed(here, place, value)
        if complains(here, list(changes)[:at]):
            return f"{options[place]}: {told.removeprefix(f'{origin}: ').removeprefix(f'{place}: ')}"
    return None


def _changed(tree: Mapping[str, Any], place: str, value: Any) -> dict[str, Any]:
    """The tree with a value at a place. A description without groups has one."""
    known = {**tree, "group": tree.get("group", [{}])} if place.startswith("group[") else tree
    return with_changes(known, {place: value})


def _check_with_the_engine(fleet: Fleet) -> None:
    """Look at what else is told by the scenario's place, or by none: what the engine alone knows, and shares."""
    keys, own = fleet.keys, OwnControllers(fleet.folder)
    for link in LINKS:
        if (loss := keys.cell.of("loss", link)) is not None:
            share(loss, where(fleet.origin, "cell", "loss", link if isinstance(keys.cell.loss, Each) else ""))
    if keys.event.arrival is not None:
        check_arrival(keys.event.arrival, where(fleet.origin, "event", "arrival"))
    for at, group in enumerate(keys.group):
        place = where(fleet.origin, f"group[{at}]")
        check_controller(group.controller, f"{place}.controller", own)
        if group.reconnect not in RECONNECT:
            check_arrival(group.reconnect, f"{place}.reconnect")
    check_controller(keys.server.controller, where(fleet.origin, "server", "controller"), own)


def _goal(keys: GoalKeys, origin: str) -> Goal:
    place = where(origin, "goal", "done")
    found = re.fullmatch(r"\s*([\d.]+\s*%)\s*(?:in|within)\s+(\S.*)", keys.done)
    if found is None:
        raise UsageError(f"{place}: {keys.done!r} is no goal: write a share and a time, such as '99 % in 5 min'")
    within = values.in_units(values.canonical("time", found[2].strip(), place))
    done = share(found[1], place)
    if done == 0:
        raise UsageError(f"{place}: {found[1]} of the devices are none: write a share such as 99 %")
    return Goal(done, within, keys.copies, share(keys.useful, where(origin, "goal", "useful")))


def share(written: float | str, place: str) -> float:
    """A share as a scenario takes it: a fraction, or text in percent. Raises `UsageError` with the place."""
    text = str(written).strip()
    try:
        found = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        raise UsageError(f'{place}: {text!r} is no share: write a fraction such as 0.8, or "80 %"') from None
    if not 0 <= found <= 1:
        raise UsageError(f'{place}: {text} is no share: write a fraction from 0 to 1, or "80 %"')
    return found


def _canonical(keys: Keys, origin: str) -> Keys:
    """The same with every quantity as the engine writes it."""
    found: dict[str, Any] = {"horizon": values.canonical("time", keys.horizon, where(origin, "horizon"))}
    for table, kinds in _QUANTITIES.items():
        told = getattr(keys, table)
        read = {
            key: _as_written_back(kind, getattr(told, key), where(origin, table, key))
            for key, kind in kinds.items()
            if getattr(told, key) not in (None, REPORTING, NEVER)
        }
        found[table] = msgspec.structs.replace(told, **read)
    return msgspec.structs.replace(keys, **found)


def _as_written_back(kind: values.Kind, told: Any, place: str) -> Any:
    if not isinstance(told, Each):
        return values.canonical(kind, told, place)
    each = {link: getattr(told, link) for link in LINKS}
    read = {link: values.canonical(kind, value, f"{place}.{link}") for link, value in each.items() if value is not None}
    return Each(**read)


def _among(known: tuple[str, ...], word: str, place: str) -> None:
    if word not in known:
        raise UsageError(f'{place}: {unknown("rule", word, known)}, or a time to spread over, such as "60 s"')
