"""A zoo: a package in which every module holds one member, found by listing.

Adding a member is adding a file. Nothing is registered by hand, so nothing can be forgotten: the tests that
run over ``names()`` meet the new file without an edit.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cached_property
from typing import Generic, TypeVar

from unrolled.errors import UnknownNameError

__all__ = ["Registry"]

M = TypeVar("M")


class Registry(Generic[M]):
    """The concrete subclasses of ``base`` defined in the modules of ``package``, by their ``name``.

    A private one, which members of a module share, is none of them.

    Args:
        package: the dotted name of the package whose modules are the members.
        base: the class that a member derives from; each member carries a class attribute ``name``.
        kind: what a member is called in an error message.
    """

    def __init__(self, package: str, base: type[M], kind: str) -> None:
        self.package = package
        self.base = base
        self.kind = kind

    @cached_property
    def members(self) -> dict[str, type[M]]:
        """Every member by name, in alphabetical order."""
        found: dict[str, type[M]] = {}
        paths = importlib.import_module(self.package).__path__
        for info in pkgutil.walk_packages(paths, f"{self.package}."):
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                if (
                    inspect.isclass(value)
                    and issubclass(value, self.base)
                    and value.__module__ == module.__name__
                    and not inspect.isabstract(value)
                    and not value.__name__.startswith("_")
                    and hasattr(value, "name")  # a base that members share has none
                ):
                    found[value.name] = value  # type: ignore[attr-defined]  # every base declares `name`
        return dict(sorted(found.items()))

    def names(self) -> tuple[str, ...]:
        """The names of all members, in alphabetical order."""
        return tuple(self.members)

    def get(self, name: str) -> type[M]:
        """The member called ``name``.

        Args:
            name: a member's name.

        Returns:
            The class.

        Raises:
            UnknownNameError: when there is none; the text offers the nearest name.
        """
        try:
            return self.members[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self.members) from None
