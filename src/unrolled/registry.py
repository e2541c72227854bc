"""Find the members of a package by class: cells, expansions, datasets, tasks.

To add a member, add its class to a module of the package. Nobody registers it by hand, and the tests that run over
``names()`` include it at once.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from unrolled.errors import UnknownNameError

__all__ = ["Registry", "names_in_source", "texts_in_source"]

M = TypeVar("M")


def names_in_source(package: str) -> list[str]:
    """List the names of a package's members as they stand in its source, without importing it, which may take torch."""
    return sorted(texts_in_source(package))


def texts_in_source(package: str) -> dict[str, dict[str, str]]:
    """Return the texts that are attributes of a package's members, by the members' names; see above."""
    return {name: found.texts for name, found in _find_in_source(package).items()}


class _Source(NamedTuple):
    module: str
    texts: dict[str, str]


@cache
def _find_in_source(package: str) -> dict[str, _Source]:
    spec = importlib.util.find_spec(package)
    folders = [] if spec is None else list(map(Path, spec.submodule_search_locations or ()))
    found = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            module = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
            for texts in _texts_of_classes(ast.parse(path.read_text(encoding="utf-8"))):
                if "name" in texts:
                    found[texts["name"]] = _Source(module, texts)
    return found


def _texts_of_classes(module: ast.Module) -> Iterator[dict[str, str]]:
    """Find ``name = "…"`` and ``name: ClassVar[str] = "…"`` and the like in the public classes of a module."""
    for kind in module.body:
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("_"):
            yield dict(chain.from_iterable(map(_texts_of_line, kind.body)))


def _texts_of_line(line: ast.stmt) -> Iterator[tuple[str, str]]:
    """Find the names that a line gives a text, and the text."""
    targets = line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
    for target in targets:
        value = getattr(line, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield target.id, value.value


class Registry(Generic[M]):
    """The public concrete subclasses of ``base`` that the modules of ``package`` define, by their attribute ``name``.

    An abstract class, or one whose name begins with an underscore, is a base of members and no member itself.

    Args:
        package: Dotted name of the package.
        base: The class that every member derives from; each member has a class attribute ``name`` of its own.
        kind: The word for a member in an error message.
    """

    def __init__(self, package: str, base: type[M], kind: str) -> None:
        self.package = package
        self.base = base
        self.kind = kind

    @cached_property
    def members(self) -> dict[str, type[M]]:
        """Every member by name, in alphabetical order.

        Raises:
            TypeError: If a member has no name, or the name of another one.
        """
        found: dict[str, type[M]] = {}
        paths = importlib.import_module(self.package).__path__
        for info in pkgutil.walk_packages(paths, f"{self.package}."):
            for value in self._defined_in(importlib.import_module(info.name)):
                name = getattr(value, "name", None)
                if not isinstance(name, str) or name in found:
                    problem = f"{name!r}, the name of {found[name].__qualname__}" if name in found else repr(name)
                    raise TypeError(
                        f"{value.__qualname__}.name is {problem}: give the {self.kind} a name of its own, "
                        "or begin the name of a class that only serves as a base with an underscore"
                    )
                found[name] = value
        return dict(sorted(found.items()))

    def _defined_in(self, module: ModuleType) -> list[type[M]]:
        return [value for value in vars(module).values() if self._is_member(value, module.__name__)]

    def _is_member(self, value: object, module: str) -> TypeGuard[type[M]]:
        return (
            inspect.isclass(value)
            and issubclass(value, self.base)
            and not inspect.isabstract(value)
            and not value.__name__.startswith("_")
            and value.__module__ == module
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of all members, in alphabetical order."""
        return tuple(self.members)

    def get(self, name: str) -> type[M]:
        """Return the member of that name.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest name.
        """
        if not isinstance(name, str) or name not in self.members:
            raise UnknownNameError(self.kind, name, self.members)
        return self.members[name]

    def get_alone(self, name: str) -> type[M]:
        """Return the member of that name, and import no other; its ``name`` stands in its source as text.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest name.
        """
        known = _find_in_source(self.package)
        if name not in known:
            raise UnknownNameError(self.kind, name, sorted(known))
        module = importlib.import_module(known[name].module)
        return next(member for member in self._defined_in(module) if getattr(member, "name", None) == name)
