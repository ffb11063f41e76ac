"""The source of a class that was typed into a notebook, as a file that stands by itself."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from millpond.errors import UsageError

#: What such a file is called.
FILE = "notebook.py"


def source_of(make: Any) -> str | None:
    """The text of a class or function and of all that it uses of the notebook; None if its text is nowhere.

    Raises:
        UsageError: one line that names what it uses and cannot be written down.
    """
    texts: dict[str, str] = {}
    return "\n\n".join(["from __future__ import annotations", *texts.values()]) + "\n" if _add(make, texts) else None


@cache
def written(text: str) -> Path:
    """A folder of this process with that text in its `FILE`."""
    folder = Path(tempfile.mkdtemp(prefix="millpond-"))
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder


# ----------------------------------------------------------------------------------------------- helpers


def _add(what: Any, texts: dict[str, str]) -> bool:
    """Adds what `what` uses, and then its own text."""
    text = _text(what)
    if text is None:
        return False
    home = vars(sys.modules.get(what.__module__, ModuleType("gone")))
    # before the others: two functions may call each other
    texts[what.__name__] = ""
    for name in _names(text):
        if name in texts or name not in home:
            continue
        value = home[name]
        if isinstance(value, ModuleType):
            texts[name] = f"import {value.__name__} as {name}"
        elif getattr(value, "__module__", what.__module__) != what.__module__ and hasattr(value, "__qualname__"):
            texts[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
        elif isinstance(value, type) or inspect.isfunction(value):
            if not _add(value, texts):
                raise UsageError(f"{what.__name__}: uses {name}, whose source is nowhere: write both into a file")
        elif _is_plain(value):
            texts[name] = f"{name} = {value!r}"
        else:
            kind = type(value).__name__
            raise UsageError(
                f"{what.__name__}: uses {name} of the notebook, a {kind} that cannot be kept: make it a number or a "
                "text, or write the class into a file"
            )
    texts[what.__name__] = texts.pop(what.__name__) or text
    return True


def _text(what: Any) -> str | None:
    """Its lines, wherever it was typed."""
    for code in _codes(what):
        lines = linecache.getlines(code.co_filename)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == what.__name__:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                return "".join(lines[first - 1 : node.end_lineno]).rstrip()
    return None


def _codes(what: Any) -> Iterator[CodeType]:
    for value in vars(what).values() if isinstance(what, type) else (what,):
        code = getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            yield code


def _names(text: str) -> list[str]:
    """The names that a text asks for, in their order."""
    return list(dict.fromkeys(node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(entry) for pair in value.items() for entry in pair)
    return value is None or type(value) in (bool, int, float, str, bytes)
