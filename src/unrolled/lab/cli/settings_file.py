"""Settings files: YAML with one ``key: value`` a line, all of them checked.

A settings file may come from somebody else. So YAML's safe loader reads it, and aliases are refused, since nine lines
of them can stand for a billion values. A key must not occur twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.cli.other_names import name_here
from unrolled.errors import ConfigError, FileError, UnknownNameError, UnrolledError

if TYPE_CHECKING:
    import yaml

__all__ = ["SettingsFile", "read_settings"]

_LARGEST = 100_000  # bytes; a settings file has a few hundred, and these take seconds already
_DEEPEST = 20  # levels; a settings file has two, and what YAML's reader does grows with the square of them
_SHOWN = 40
_OTHER_BASE = re.compile(r"[-+]?0[0-9_]*[1-7][0-9_]*|[^:]+(:[^:]+)+")
"""Numbers that YAML reads in base 8, for a zero in front, or in base 60, for a colon."""


@dataclass(frozen=True)
class SettingsFile:
    """The values of a settings file, and their lines."""

    path: Path
    values: dict[str, Any]
    lines: dict[str, int]

    def check(self, known: Iterable[str]) -> None:
        """Raise a ConfigError for the first key that is not a setting; it suggests the nearest name."""
        names = tuple(known)
        for key, line in self.lines.items():
            if key not in names:
                if (here := name_here(key, names)) is not None:
                    raise ConfigError(f"{self.path}:{line}: unknown setting {key!r}; did you mean {here!r}?")
                raise ConfigError(f"{self.path}:{line}: {UnknownNameError('setting', key, names)}")

    def locate(self, error: UnrolledError) -> ConfigError:
        """Return an error about a value of this file, with its line if the text of ``error`` starts with the key."""
        key = next((key for key in self.lines if re.match(rf"(unknown )?{re.escape(key)}\b", str(error))), None)
        where = f"{self.path}:{self.lines[key]}" if key else f"{self.path}"
        return ConfigError(f"{where}: {error}")


def read_settings(path: Path) -> SettingsFile:
    """Read a settings file; a key may contain - or _."""
    import yaml

    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} has {len(data):,} bytes; a settings file may have at most {_LARGEST:,}")
    try:
        return _parse(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not valid UTF-8; save the file as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        raise ConfigError(f"{where}: expected YAML; {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: expected YAML; {error}") from None


def _parse(path: Path, text: str) -> SettingsFile:
    """Read the keys of a file and their values; an error of YAML passes."""
    import yaml

    _check_plain(path, text)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        raise ConfigError(f"{path} is empty; write key: value lines, such as hidden: 128")
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{path}:1: expected key: value lines, such as hidden: 128; found something else")
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    loader = yaml.SafeLoader("")
    for node in _scalars(root):
        _check_scalar(path, loader, node)
    for key_node, value_node in root.value:
        line = key_node.start_mark.line + 1
        key = str(loader.construct_object(key_node, deep=True)).replace("-", "_")
        if key in values:
            raise ConfigError(f"{path}:{line}: {key} is already set in line {lines[key]}; remove one line")
        values[key], lines[key] = loader.construct_object(value_node, deep=True), line
    return SettingsFile(path, values, lines)


def _check_plain(path: Path, text: str) -> None:
    """Refuse aliases and deep nesting, which would take long to read."""
    import yaml

    begins = (
        yaml.FlowSequenceStartToken,
        yaml.FlowMappingStartToken,
        yaml.BlockSequenceStartToken,
        yaml.BlockMappingStartToken,
    )
    ends = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
    depth = 0
    for token in yaml.scan(text):
        depth += isinstance(token, begins) - isinstance(token, ends)
        where = f"{path}:{token.start_mark.line + 1}"
        if isinstance(token, yaml.AliasToken):
            raise ConfigError(f"{where}: expected plain values, found the alias *{token.value}")
        if depth > _DEEPEST:
            raise ConfigError(f"{where}: expected plain values, found brackets or indents more than {_DEEPEST} deep")


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield all scalars of a file, including those in lists and maps."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        yield node
    else:
        for each in node.value:
            for part in each if isinstance(node, yaml.MappingNode) else (each,):
                yield from _scalars(part)


def _check_scalar(path: Path, loader: yaml.SafeLoader, node: yaml.ScalarNode) -> None:
    """Refuse a scalar that cannot be read as its type, or that YAML reads as a number that nobody would."""
    import yaml

    try:
        found = loader.construct_object(node, deep=True)
    except yaml.YAMLError:
        raise
    except Exception:  # invalid dates or numbers of thousands of digits raise all kinds of errors
        shown = node.value if len(node.value) <= _SHOWN else f"{node.value[: _SHOWN - 1]}…"
        kind = node.tag.rpartition(":")[2]
        where = f"{path}:{node.start_mark.line + 1}"
        raise ConfigError(f"{where}: expected a plain value, found {shown!r}, which cannot be read as {kind}") from None
    if isinstance(found, int | float) and _OTHER_BASE.fullmatch(node.value):
        where = f"{path}:{node.start_mark.line + 1}"
        raise ConfigError(
            f"{where}: found {node.value}, which YAML reads as {found}; write {found}, or put it in quotes"
        )
