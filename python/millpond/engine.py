"""The built-in controllers, as the engine lists them."""

from __future__ import annotations

from typing import NamedTuple

from millpond import _engine


class Preset(NamedTuple):
    """A built-in controller."""

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
    #: What people call it.
    label: str
    #: The algorithm that it is a setting of.
    family: str


def presets() -> list[Preset]:
    """All of them, in their order."""
    return [Preset(*row) for row in _engine.presets()]
