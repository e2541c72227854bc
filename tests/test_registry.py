"""A registry finds members by class, and refuses a member that nobody could ask for."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod

import pytest

from unrolled.errors import UnknownNameError
from unrolled.registry import Registry, names_in_source, texts_in_source


class Animal(ABC):
    name: str

    @abstractmethod
    def sound(self): ...


FAMILY = """
from test_registry_base import Animal

class Cat(Animal):
    name = "cat"
    def sound(self): return "miaow"

class Tiger(Cat):
    name = "tiger"

class _Nameless(Animal):
    def sound(self): return ""

class Bird(Animal):
    "abstract: no sound"
"""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    package = f"animals_{tmp_path.name}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "family.py").write_text(FAMILY)
    monkeypatch.setitem(sys.modules, "test_registry_base", sys.modules[__name__])
    monkeypatch.syspath_prepend(tmp_path)
    return Registry(package, Animal, "animal"), tmp_path / package


def test_members_are_the_public_concrete_classes(registry):
    found, _ = registry
    assert found.names() == ("cat", "tiger")
    assert found.get("tiger")().sound() == "miaow"
    with pytest.raises(UnknownNameError, match="unknown animal 'TIGER'; did you mean 'tiger'"):
        found.get("TIGER")
    with pytest.raises(UnknownNameError, match="unknown animal 'tigre'; did you mean 'tiger'"):
        found.get("tigre")


def test_one_member_is_found_without_importing_the_others(registry):
    found, package = registry
    (package / "broken.py").write_text("raise RuntimeError('imported')")
    assert found.get_alone("tiger").__name__ == "Tiger"
    with pytest.raises(UnknownNameError, match="unknown animal 'tigre'; did you mean 'tiger'"):
        found.get_alone("tigre")
    with pytest.raises(RuntimeError, match="imported"):
        found.get("tiger")


def test_a_name_is_found_in_the_source_with_a_type_and_without(registry):
    found, package = registry
    lines = ('    name: ClassVar[str] = "lynx"', "    tail: ClassVar[str]", "    legs: ClassVar[int] = 4")
    heading = "from typing import ClassVar\nfrom .family import Cat\nclass Lynx(Cat):\n"
    (package / "more.py").write_text(heading + "\n".join(lines) + "\n")
    assert names_in_source(package.name) == list(found.names()) == ["cat", "lynx", "tiger"]
    assert texts_in_source(package.name)["lynx"] == {"name": "lynx"}  # neither what has no value nor a number
    assert found.get_alone("lynx").__name__ == "Lynx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Dog(Animal):\n    def sound(self): return 'woof'\n", "Dog.name is None: give the animal a name"),
        ("from .family import Cat\nclass Lion(Cat): pass\n", "Lion.name is 'cat', the name of Cat: give"),
    ],
)
def test_a_member_needs_a_name_of_its_own(registry, text, message):
    found, folder = registry
    (folder / "more.py").write_text(f"from test_registry_base import Animal\n{text}")
    with pytest.raises(TypeError, match=message):
        found.names()
