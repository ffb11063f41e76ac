"""Errors a user can mend: each is one line that names the place and the mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MillpondError(Exception):
    """The work failed. The program prints the message as one line and exits with 1."""

    exit_code = 1


class UsageError(MillpondError):
    """The request cannot be understood or carried out as asked. The program exits with 2."""

    exit_code = 2


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None if none is near enough to be meant."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """One line for an unknown name: the nearest known one first, then all of them."""
    names = list(known)
    near = nearest(word, names)
    hint = f"did you mean {near!r}? " if near is not None else ""
    return f"unknown {what} {word!r}: {hint}known: {', '.join(names)}"
