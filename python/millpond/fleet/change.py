"""What could be done: remedies, whom each needs, and what each changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Effort(IntEnum):
    """Who must do something, from the least trouble to the most."""

    NONE = 0
    #: A setting of your own server or gateway: no device is touched.
    SERVER = 1
    #: A setting of the devices, where they can be configured from afar.
    DEVICES = 2
    #: New software on devices.
    FIRMWARE = 3
    #: Another setting of the base station, which belongs to the operator.
    OPERATOR = 4

    @property
    def words(self) -> str:
        """Who must do what."""
        return ("nothing", "your server", "devices' settings", "devices' firmware", "the operator")[self]


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
    duplicates: str | None = None
    buffer: str | None = None
    #: The share of the devices that have it, where devices are changed.
    reach: float = 1.0

    @property
    def on_devices(self) -> bool:
        """Whether devices are changed."""
        told = (self.reconnect, self.load, self.controller, self.max_retransmit)
        return any(part is not None for part in told)


AS_IT_IS = Change("as-it-is", "as it is", Effort.NONE)
