"""Custom controllers: found by name, tried out, and distinguished by their code.

A name is `file.py:Class`, relative to a folder (of a compiled module `file.so:Class`), or `package.module:Class`. Where
Python code names a controller, the class itself will do, or any callable that makes one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import re
import sys
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from millpond import _engine
from millpond.controller import Controller
from millpond.controllers import typed
from millpond.errors import UsageError, nearest, unknown

Make: TypeAlias = Callable[..., Controller]
"""A class of controllers, or whatever else makes one when called."""
AnyController: TypeAlias = str | Mapping[str, object] | Make
"""A controller as callers give it: a name, a table as in a scenario, or what makes it."""

#: The calls without which there is no controller.
_NEEDED = ("on_start", "on_timeout", "on_reply")
#: How the names of files end that are modules, written in Python and compiled ones.
COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
FILES = (".py", *COMPILED)
_NONE = "it has no controllers: write `class Mine(millpond.Controller)`"


@dataclass(frozen=True)
class Own:
    """A user's controller."""

    name: str
    make: Make
    #: Digests of the source it comes from, by file. Those of code without a file are unlike any other.
    code: Mapping[str, str]
    #: The folder of those files; None for code without a file.
    root: Path | None = None


class OwnControllers:
    """Finds users' controllers. Files are looked for in the folders in their order, each is loaded once."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders or (Path(),)
        self._known: dict[str, Own] = {}
        self._used: dict[str, Own] = {}

    @property
    def code(self) -> dict[str, dict[str, str]]:
        """The digests of all that scenarios asked for, by name and file."""
        return {name: dict(own.code) for name, own in sorted(self._used.items())}

    @property
    def sources(self) -> dict[str, Path]:
        """The files of all that scenarios asked for, by the place that results keep them in."""
        return {
            f"{kept(name)}/{file}": own.root / file
            for name, own in self._used.items()
            if own.root is not None
            for file, digest in own.code.items()
            if _digest_of_file(own.root / file) == digest
        }

    def know(self, name: str, folder: Path) -> None:
        """Takes the controller of this name from files that were handed over in a folder. Errors as for `find`."""
        place, _, of_class = name.rpartition(":")
        if place.endswith(FILES) and (file := folder / kept(name) / Path(place).name).is_file():
            self._known[name] = replace(self.find(f"{file}:{of_class}"), name=name)

    @staticmethod
    def of_results(directory: Path, code: Mapping[str, Mapping[str, str]], run_code: bool) -> OwnControllers:
        """Those whose source results keep, and no others; none of them is loaded before it is asked for.

        Results come from anybody: what their manifest names is neither looked for elsewhere nor executed unless the
        caller says so, and then only if every file in its folder has the digest that was kept of it.
        """
        return _Kept(directory, code, run_code)

    def find(self, name: str) -> Own:
        """The controller of this name. Raises `UsageError` with one line."""
        if name not in self._known:
            self._known[name] = _load(name, self.folders)
        return self._known[name]

    def add(self, make: Make) -> str:
        """Makes a class (or factory) known; gives the name by which scenarios may call it."""
        _check(make, getattr(make, "__name__", repr(make)))
        folder, code = _folder(_home(make)), _code_of(_home(make))
        name = base = _name_of(make)
        if folder is None and isinstance(make, type) and (text := typed.source_of(make)) is not None:
            folder = typed.written(text)
            name = base = f"{typed.FILE}:{make.__name__}"
            code = _digests([folder / typed.FILE], folder)
        number = 1
        while name in self._known and self._known[name].make is not make:
            number += 1
            name = f"{base}-{number}"
        self._known[name] = Own(name, make, {**code, **_code_of_given(make)}, folder)
        return name

    def written(self, controller: AnyController) -> str | dict[str, object]:
        """The controller as a scenario writes it. Its class, if it is a user's, is made known or loaded."""
        if isinstance(controller, Mapping):
            table = dict(controller)
            if callable(table.get("own")):
                table["own"] = self.add(cast(Make, table["own"]))
            return table
        if not isinstance(controller, str):
            return self.add(controller)
        if is_own(controller):
            self.find(controller)
        return controller

    def __call__(self, name: str, settings: Mapping[str, Any]) -> Callable[[], Controller]:
        """What makes controllers with these settings: the engine asks. Raises `UsageError` with one line."""
        own = self.find(name)
        keywords = {key.replace("-", "_"): value for key, value in settings.items()}
        with contextlib.suppress(ValueError):  # some callables do not tell their parameters
            _bind(name, inspect.signature(own.make), keywords)
        self._used[name] = own
        return functools.partial(own.make, **keywords)


class _Kept(OwnControllers):
    """Controllers whose source lies with results."""

    def __init__(self, directory: Path, code: Mapping[str, Mapping[str, str]], run_code: bool) -> None:
        super().__init__(directory)
        self._directory, self._digests, self._run_code = directory, code, run_code

    def find(self, name: str) -> Own:
        """The controller of this name. Raises `UsageError` with one line if it may not, or cannot, be loaded."""
        if name in self._known:
            return self._known[name]
        place, _, of_class = name.rpartition(":")
        folder = self._directory / kept(name)
        if not place.endswith(FILES) or name not in self._digests:
            raise UsageError(f"{self._directory}: {name}: no source of it is kept: its runs cannot be run again")
        if not self._run_code:
            raise UsageError(
                f"{self._directory}: its runs execute code that came with these results: read {folder}, then add "
                "--run-code"
            )
        self._check(folder, self._digests[name])
        self._known[name] = replace(_load(f"{folder / Path(place).name}:{of_class}", (Path(),)), name=name)
        return self._known[name]

    def _check(self, folder: Path, digests: Mapping[str, str]) -> None:
        """That the folder holds the files that were kept, and nothing else that could be imported in their place."""
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
        told = {file: digest for file, digest in digests.items() if not file.startswith("(")}
        for file in sorted(there | told.keys()):
            path = folder / file
            if file not in told:
                raise UsageError(f"{path}: not among the sources that these results name: take it away")
            if not path.is_file() or path.is_symlink() or _digest_of_file(path) != told[file]:
                raise UsageError(f"{path}: not the code that these results were made with")


def kept(name: str) -> str:
    """Where results keep the source of a user's controller."""
    return f"controllers/{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}"


def is_own(name: str) -> bool:
    """Whether a name is that of a user's controller."""
    return ":" in name


def short(name: str) -> str:
    """The name without the folders."""
    plain, asked, settings = name.partition("?")
    place, _, of_class = plain.rpartition(":")
    return f"{Path(place).name}:{of_class}{asked}{settings}" if place.endswith(FILES) else name


def watched(
    controller: str | Make, settings: Mapping[str, Any] | None = None, folder: Path | None = None
) -> Callable[[], _engine.Controller]:
    """What makes controllers that can be driven by hand, as `millpond._engine.Controller`.

    Args:
        controller: A name, or the class itself.
        settings: Its parameters.
        folder: Where files are looked for; the current one unless given.

    Raises:
        UsageError: one line, if there is no such controller.
    """
    known = OwnControllers(folder or Path())
    name = controller if isinstance(controller, str) else known.add(controller)
    make = known(name, settings or {})
    return lambda: _engine.Controller.own(make, name)


# ----------------------------------------------------------------------------------------------- by name


@dataclass(frozen=True)
class _File:
    """What a file gave, and the digests of the source behind it, helpers included."""

    module: ModuleType
    root: Path
    code: Mapping[str, str]

    @property
    def is_fresh(self) -> bool:
        """Whether loading it again would give the same."""
        return all(_digest_of_file(self.root / file) == digest for file, digest in self.code.items())


_files: dict[Path, _File] = {}


def _load(name: str, folders: Sequence[Path]) -> Own:
    place, _, of_class = name.rpartition(":")
    if place.endswith(FILES):
        files = [folder / Path(place).expanduser() for folder in folders]
        file = _from_file(next((file for file in files if file.exists()), files[0]))
        return Own(name, _found(file.module, place, of_class, name), file.code, file.root)
    module = _from_package(place, folders)
    return Own(name, _found(module, place, of_class, name), _code_of(module), _folder(module))


def _found(module: ModuleType, place: str, of_class: str, name: str) -> Any:
    found: Any = module
    for part in of_class.split("."):
        if not hasattr(found, part):
            classes = _classes(found)
            raise UsageError(f"{place}: {unknown('class', part, classes) if classes else _NONE}")
        found = getattr(found, part)
    _check(found, name)
    return found


def _from_file(file: Path) -> _File:
    try:
        path = file.resolve(strict=True)
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}{_beside(file)}") from None
    if path not in _files or not _files[path].is_fresh:
        is_compiled = path.name.endswith(COMPILED)  # then its name is how it begins
        name = path.name.partition(".")[0] if is_compiled else f"own_{path.stem}_{_digest(source)[7:19]}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise UsageError(f"{file}: cannot be loaded as Python")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        with _forgetting(path.parent, but=name), _importing_from(path.parent), _failures(str(file)):
            # the very bytes whose digest is kept, whatever becomes of the file meanwhile
            if is_compiled and spec.loader is not None:
                spec.loader.exec_module(module)
            else:
                exec(compile(source, path, "exec"), module.__dict__)
            sources = _sources(module, path.parent)
        code = {**_digests(sources, path.parent), path.name: _digest(source)}
        _files[path] = _File(module, path.parent, code)
    return _files[path]


def _beside(file: Path) -> str:
    """The file that was most likely meant."""
    try:
        near = nearest(file.name, [entry.name for entry in file.parent.glob("*.py")])
    except OSError:
        near = None
    return f": did you mean {str(file.with_name(near))!r}?" if near else ""


def _from_package(place: str, folders: Sequence[Path]) -> ModuleType:
    with _importing_from(*folders, Path()):
        try:
            with _failures(place):
                return importlib.import_module(place)
        except UsageError as error:
            cause = error.__cause__
            if isinstance(cause, ModuleNotFoundError) and cause.name and f"{place}.".startswith(f"{cause.name}."):
                raise UsageError(f"{place}: no such module; a file is named with its ending: `file.py:Class`") from None
            raise


@contextlib.contextmanager
def _forgetting(folder: Path, but: str) -> Iterator[None]:
    """Modules of the folder are not kept: the next controller may have a helper of the same name, or a later one."""
    before, writes_none = set(sys.modules), sys.dont_write_bytecode
    # compiled files know their source by second and size: too coarse for one that is being worked on
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    except BaseException:
        del sys.modules[but]
        raise
    finally:
        sys.dont_write_bytecode = writes_none
        for name in set(sys.modules) - before - {but}:
            if _source(sys.modules[name], folder) is not None:
                del sys.modules[name]


@contextlib.contextmanager
def _importing_from(*folders: Path) -> Iterator[None]:
    """Modules beside the controller can be imported by it."""
    added = [str(folder.resolve()) for folder in folders]
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    """Whatever importing raises is told in one line."""
    try:
        yield
    except SyntaxError as error:
        raise UsageError(f"{error.filename or what}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        told = (str(error).splitlines() or [""])[0]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise UsageError(f"{what}: importing it raised {type(error).__name__}: {told} ({where})") from error


def _classes(found: Any) -> list[str]:
    """The controllers that a module (or class) has."""
    types = {name: value for name, value in vars(found).items() if isinstance(value, type) and value is not Controller}
    return [name for name, value in types.items() if issubclass(value, Controller) or hasattr(value, "__millpond__")]


def _check(make: Any, name: str) -> None:
    """That it can make controllers. Raises `UsageError` with one line."""
    if not callable(make):
        kind = "module" if isinstance(make, ModuleType) else type(make).__name__
        raise UsageError(f"{name}: {kind} makes no controllers: name a class")
    # what has `__millpond__` hands over a controller of a compiled module (crate `millpond-plugin`)
    if isinstance(make, type) and not hasattr(make, "__millpond__"):
        if not issubclass(make, Controller):
            raise UsageError(f"{name}: no controller: write `class {make.__name__}(millpond.Controller)`")
        lacking = [call for call in _NEEDED if getattr(getattr(make, call), "__isabstractmethod__", False)]
        if lacking:
            raise UsageError(f"{name}: lacks {' and '.join(lacking)}: every controller has {', '.join(_NEEDED)}")


def _bind(name: str, signature: inspect.Signature, keywords: Mapping[str, Any]) -> None:
    parameters = signature.parameters.values()
    takes = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for key in keywords:
            if key not in takes:
                raise UsageError(f"{name}: {unknown('setting', key, takes) if takes else f'takes no setting {key!r}'}")
    try:
        signature.bind(**keywords)
    except TypeError as error:
        raise UsageError(f"{name}: {error}") from None


# ----------------------------------------------------------------------------------------------- code


def _name_of(make: Make) -> str:
    target, module = _unwrapped(make), _home(make)
    of_class = getattr(target, "__name__", type(target).__name__).strip("<>")
    file = getattr(module, "__file__", None)
    return f"{Path(file).name if file else module.__name__}:{of_class}"


def _unwrapped(make: Any) -> Any:
    """What a partial call is about, and the class of a callable object."""
    while isinstance(make, functools.partial):
        make = make.func
    return make if isinstance(make, type) or inspect.isroutine(make) else type(make)


def _home(make: Make) -> ModuleType:
    """The module that the class or factory comes from."""
    name = str(_unwrapped(make).__module__)
    return sys.modules.get(name) or ModuleType(name)


def _code_of(module: ModuleType) -> dict[str, str]:
    """Digests of the source of a module."""
    if getattr(module, "__file__", None):
        root = _root(module)
        return _digests(_sources(module, root), root)
    # typed in: its text could be had, but not the values that it finds around it
    return {module.__name__: _unlike_any()}


def _code_of_given(make: Make) -> dict[str, str]:
    """A digest of what the source does not tell: what a class or factory was given."""
    given = list(_given(make))
    if not given:
        return {}
    return {"(given)": _digest(repr(given).encode()) if all(_is_plain(value) for _, value in given) else _unlike_any()}


def _digests(files: Iterable[Path], root: Path) -> dict[str, str]:
    return {file.relative_to(root).as_posix(): _digest_of_file(file) for file in files}


def _digest_of_file(file: Path) -> str:
    try:
        return _digest(file.read_bytes())
    except OSError:
        return _unlike_any()


def _folder(module: ModuleType) -> Path | None:
    return _root(module) if getattr(module, "__file__", None) else None


def _root(module: ModuleType) -> Path:
    """The folder of the file, or the one that holds its package."""
    folder = Path(str(module.__file__)).resolve().parent
    for _ in (module.__package__ or "").split(".") if module.__package__ else ():
        folder = folder.parent
    return folder


def _sources(module: ModuleType, root: Path) -> list[Path]:
    """The file of a module, and those below the same folder that it imports."""
    if str(module.__file__).endswith(COMPILED):
        return [Path(str(module.__file__)).resolve()]
    found: dict[Path, None] = {}
    waiting = [module]
    while waiting:
        here = waiting.pop()
        file = _source(here, root)
        if file is None or file in found:
            continue
        found[file] = None
        for value in list(vars(here).values()):
            other = value if isinstance(value, ModuleType) else _home(value)
            waiting.append(other)
    return sorted(found)


def _source(module: ModuleType, root: Path) -> Path | None:
    """The module's file, if it is the user's own."""
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py") or module.__name__.partition(".")[0] == "millpond":
        return None
    path = Path(file).resolve()
    if not path.is_relative_to(root):
        return None
    parts = path.relative_to(root).parts
    return None if any(part.startswith(".") or part.endswith("-packages") for part in parts) else path


def _given(make: Any) -> Iterator[tuple[str, Any]]:
    """What a class or factory was given: arguments of a partial call, values closed over, plain values of the class."""
    while isinstance(make, functools.partial):
        yield from ((str(place), value) for place, value in enumerate(make.args))
        yield from make.keywords.items()
        make = make.func
    if not isinstance(make, type):
        yield from _closed_over(make)
        if not inspect.isroutine(make):
            yield "self", make
        return
    for base in make.__mro__[: make.__mro__.index(Controller)]:
        for name, value in vars(base).items():
            if callable(value):
                yield from _closed_over(value)
            elif not name.startswith("_") and _is_plain(value):
                yield f"{base.__name__}.{name}", value


def _closed_over(function: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # not filled yet
            if not isinstance(cell.cell_contents, type | ModuleType):
                yield name, cell.cell_contents


def _is_plain(value: Any) -> bool:
    """Whether its text tells all about it."""
    if isinstance(value, tuple | list):
        return all(_is_plain(entry) for entry in value)
    return value is None or type(value) in (bool, int, float, str)


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _unlike_any() -> str:
    """Of what cannot be compared: it is never taken for the same."""
    return f"unknown:{uuid.uuid4()}"
