"""Settings out of a YAML file: a flat list of keys and values, every one of them checked.

A settings file comes from somebody else as often as not, so it is read by YAML's safe loader, aliases are refused
(nine lines of them can be made to stand for a billion values), and so is a key that stands twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.errors import ConfigError, FileError, UnknownNameError, UnrolledError

__all__ = ["SettingsFile", "read_settings"]

_LARGEST = 1_000_000  # bytes; a settings file has a few hundred


@dataclass(frozen=True)
class SettingsFile:
    """What a file says, and in which lines."""

    path: Path
    values: dict[str, Any]
    lines: dict[str, int]

    def check(self, known: Iterable[str]) -> None:
        """Refuse a key that is no setting.

        Args:
            known: the names of all settings.

        Raises:
            ConfigError: for the first that is not among them; the text offers the nearest.
        """
        names = tuple(known)
        for key, line in self.lines.items():
            if key not in names:
                raise ConfigError(f"{self.path}:{line}: {UnknownNameError('setting', key, names)}")

    def blame(self, error: UnrolledError) -> ConfigError:
        """Say that a value of this file is wrong.

        Args:
            error: what is wrong; its text begins with the key, or speaks of one value only.

        Returns:
            The error to raise, with the line where it can be told.
        """
        key = next((key for key in self.lines if str(error).startswith((key, f"unknown {key}"))), None)
        where = f"{self.path}:{self.lines[key]}" if key else f"{self.path}"
        return ConfigError(f"{where}: {error}")


def read_settings(path: Path) -> SettingsFile:
    """Read a file of settings.

    Args:
        path: YAML, with one ``key: value`` a line at its top level; a key may be written with - or _.

    Returns:
        Its keys and values.

    Raises:
        FileError: when it cannot be read.
        ConfigError: when it is no such file; the text names the line.
    """
    import yaml

    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} has {len(data):,} bytes; expected a settings file of {_LARGEST:,} at most")
    try:
        for token in yaml.scan(data.decode("utf-8-sig")):
            if isinstance(token, yaml.AliasToken):
                raise ConfigError(
                    f"{path}:{token.start_mark.line + 1}: expected plain values, found the alias *{token.value}"
                )
        root = yaml.compose(data.decode("utf-8-sig"), Loader=yaml.SafeLoader)
        if root is None:
            raise ConfigError(f"{path} is empty; expected key: value lines, such as hidden: 128")
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{path}:1: expected key: value lines, such as hidden: 128; found something else")
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        loader = yaml.SafeLoader("")
        for key_node, value_node in root.value:
            line = key_node.start_mark.line + 1
            key = str(loader.construct_object(key_node, deep=True)).replace("-", "_")
            if key in values:
                raise ConfigError(f"{path}:{line}: {key} stands in line {lines[key]} already; expected every key once")
            values[key], lines[key] = loader.construct_object(value_node, deep=True), line
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected UTF-8 text; byte {error.start} is not") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        raise ConfigError(f"{where}: expected YAML; {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path}: expected YAML; {error}") from None
    return SettingsFile(path, values, lines)
