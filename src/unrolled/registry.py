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
from pathlib import Path
from typing import Generic, TypeVar

from unrolled.errors import UnknownNameError

__all__ = ["Registry", "names_in_source", "texts_in_source"]

M = TypeVar("M")


def names_in_source(package: str) -> list[str]:
    """List the names of a package's members as they stand in its source, without importing it, which may take torch."""
    return sorted(texts_in_source(package))


@cache
def texts_in_source(package: str) -> dict[str, dict[str, str]]:
    """Return the texts that are attributes of a package's members, by the members' names; see above."""
    spec = importlib.util.find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    files = (path for folder in folders for path in Path(folder).rglob("*.py"))
    members = (texts for path in files for texts in _texts_of_classes(ast.parse(path.read_text(encoding="utf-8"))))
    return {texts["name"]: texts for texts in members if "name" in texts}


def _texts_of_classes(module: ast.Module) -> Iterator[dict[str, str]]:
    """Find ``name = "…"`` and the like in the public classes of a module."""
    for kind in module.body:
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("_"):
            yield {
                target.id: line.value.value
                for line in kind.body
                if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
                for target in line.targets
                if isinstance(target, ast.Name) and isinstance(line.value.value, str)
            }


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
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                if not self._is_member(value) or value.__module__ != module.__name__:
                    continue
                name = getattr(value, "name", None)
                if not isinstance(name, str) or name in found:
                    problem = f"{name!r}, the name of {found[name].__qualname__}" if name in found else repr(name)
                    raise TypeError(
                        f"{value.__qualname__}.name is {problem}: give the {self.kind} a name of its own, "
                        "or begin the name of a class that only serves as a base with an underscore"
                    )
                found[name] = value
        return dict(sorted(found.items()))

    def _is_member(self, value: object) -> bool:
        return (
            inspect.isclass(value)
            and issubclass(value, self.base)
            and not inspect.isabstract(value)
            and not value.__name__.startswith("_")
        )

    def names(self) -> tuple[str, ...]:
        """The names of all members, in alphabetical order."""
        return tuple(self.members)

    def get(self, name: str) -> type[M]:
        """Return the member of that name.

        Raises:
            UnknownNameError: If there is none; the message suggests the nearest name.
        """
        try:
            return self.members[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self.members) from None
