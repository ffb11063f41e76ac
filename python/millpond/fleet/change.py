"""What could be done: remedies, whom each needs, and what each changes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum

from millpond.fleet.security import Security


class Effort(IntEnum):
    """Who must do something, from the least trouble to the most."""

    NONE = 0
    #: A setting of your own server: no device is touched.
    SERVER = 1
    #: A node between devices and link, and one between server and link: no device is touched.
    GATEWAY = 2
    #: A setting of the devices, where they can be configured from afar.
    DEVICES = 3
    #: New software on devices.
    FIRMWARE = 4
    #: Another setting of the base station, which belongs to the operator.
    OPERATOR = 5

    @property
    def words(self) -> str:
        """Who must do what."""
        told = ("nothing", "your server", "a gateway", "devices' settings", "devices' firmware", "the operator")
        return told[self]


@dataclass(frozen=True)
class Change:
    """What is different from how it is. Whatever is None stays."""

    name: str
    title: str
    effort: Effort
    #: Another reconnect rule.
    reconnect: str | None = None
    #: Starts are spread over so long that the cell is so busy; for any number of devices.
    load: float | None = None
    controller: str | None = None
    max_retransmit: int | None = None
    #: Another security layer.
    security: Security | None = None
    duplicates: str | None = None
    #: A gateway before each link drops a retransmission while the transmission before it waits in the link's queue.
    gateway: bool | None = None
    #: Requests at a time of a gateway that takes the devices' requests and asks the server for them.
    asks: int | None = None
    buffer: str | None = None
    #: The interval of CoDel in the queues of the base station, in milliseconds.
    codel_ms: int | None = None
    #: The share of the devices that have it, where devices are changed.
    reach: float = 1.0

    @property
    def on_devices(self) -> bool:
        """Whether devices are changed."""
        told = (self.reconnect, self.load, self.controller, self.max_retransmit, self.security)
        return any(part is not None for part in told)

    def beside(self, other: Change) -> Change:
        """Both changes at once. What both change is as the other has it."""
        told = {name: value for name, value in vars(other).items() if name in _WHAT and value is not None}
        return replace(
            self,
            **told,
            name=f"{self.name}+{other.name}",
            title=f"{self.title}, {other.title}",
            effort=max(self.effort, other.effort),
            reach=min(self.reach, other.reach),
        )


#: The fields that say what is different.
_WHAT = {field.name for field in fields(Change)} - {"name", "title", "effort", "reach"}

AS_IT_IS = Change("as-it-is", "as it is", Effort.NONE)
