"""Errors a user can fix: each is one line that names the place and the fix."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

#: A line that names more than this is not read.
_MOST_TOLD = 40

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The arguments of Python's calls whose names are not those of the program's flags.
_ARGUMENTS = {"factor": "factors", "set": "changes"} | {flag: f"{flag}=True" for flag in ("quick", "resume", "live")}
#: A flag; with the name of a factor, or the place of a change, where those follow.
_FLAG = re.compile(r"(?<![\w-])--(?:(factor|set) ([\w.\[\]-]*[\w\]])|([a-z]+(?:-[a-z]+)*))")


class MillpondError(Exception):
    """The work failed. The program prints the message as one line and exits with 1."""

    exit_code = 1


class UsageError(MillpondError):
    """The request cannot be understood or carried out as asked. The program exits with 2."""

    exit_code = 2


_OF_FLAGS: ContextVar[bool] = ContextVar("_OF_FLAGS", default=False)

#: What the laboratory stands on, and the verbs on the wire do not: the extra `lab`, by the names of modules.
LABORATORY = frozenset(
    ("jinja2", "matplotlib", "msgspec", "numpy", "psutil", "pyarrow", "rich", "scipy", "tomli"),
)


class NoLaboratoryError(MillpondError, ImportError):
    """The package was installed without the libraries of the laboratory."""


def without_laboratory(missing: ModuleNotFoundError) -> NoLaboratoryError | None:
    """One line that names the extra, where a module of the laboratory is missing; None if it is another one."""
    name = (missing.name or "").partition(".")[0]
    if name not in LABORATORY:
        return None
    return NoLaboratoryError(f"this needs the laboratory ({name} is missing): pip install 'millpond[lab]'")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None if none is near enough to be meant."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """One line for an unknown name: the nearest known one first, then all of them; of very many those most like it."""
    names = list(known)
    near = nearest(word, names)
    hint = f"did you mean {near!r}? " if near is not None else ""
    if len(names) <= _MOST_TOLD:
        return f"unknown {what} {word!r}: {hint}known: {', '.join(names)}"
    alike = difflib.get_close_matches(word, names, n=10, cutoff=0)
    return f"unknown {what} {word!r}: {hint}most like it of {len(names)}: {', '.join(alike)}"


@contextmanager
def telling_of_flags() -> Iterator[None]:
    """Errors are told to a user who wrote flags."""
    before = _OF_FLAGS.set(True)
    try:
        yield
    finally:
        _OF_FLAGS.reset(before)


def told_to_programs(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """A call that the program makes too: its errors speak of arguments, and of flags inside of `telling_of_flags`.

    A notebook is told `factors["traffic"]: unknown value ...` where a terminal is told `--factor traffic: ...`.
    """

    @functools.wraps(call)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return call(*args, **kwargs)
        except MillpondError as error:
            if not _OF_FLAGS.get() and error.args:
                error.args = (_FLAG.sub(_argument, str(error.args[0])), *error.args[1:])
            raise

    return told


def _argument(flag: re.Match[str]) -> str:
    keyed, key, alone = flag.groups()
    if keyed:
        return f'{_ARGUMENTS[keyed]}["{key}"]'
    return _ARGUMENTS.get(alone, alone.replace("-", "_"))
