"""Tokenisers of Hugging Face: a ``tokenizer.json``, or an object with ``encode``."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from unrolled.errors import DataError, FileError, UsageError, first_line, kind_of
from unrolled.extras import require_extra

__all__ = ["Tokenizer", "is_tokenizer_file"]


def is_tokenizer_file(path: Path) -> bool:
    """Tell whether a file is a ``tokenizer.json``: a JSON object with a model that has a vocabulary."""
    if path.suffix.lower() != ".json":
        return False
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("model"), dict) and "vocab" in found["model"]


@dataclass(frozen=True)
class Tokenizer:
    """A tokeniser that splits texts and numbers their tokens itself, without marks at the ends of a text.

    A text is read whole: where a file sets a length to which texts are cut or padded, it is not used.
    """

    given: Any
    """An object of ``tokenizers`` or ``transformers``, or one like them."""

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Any) -> Tokenizer:
        """Read a ``tokenizer.json``, or take an object as it is.

        Raises:
            UsageError: If the extra ``tokenizers`` is not installed, or the object has no ``encode``.
            FileError: If there is no such file.
            DataError: If the file is no ``tokenizer.json``.
        """
        if not isinstance(given, str | os.PathLike):
            if not callable(getattr(given, "encode", None)):
                raise UsageError(f"the tokenizer is {kind_of(given)}; expected an object with encode")
            return cls(given)
        path = Path(given)
        if not path.is_file():
            raise FileError(f"there is no file {path}; give a tokenizer.json")
        require_extra("tokenizers", "a tokenizer.json")
        try:
            read = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises bare exceptions
            raise DataError(f"{path} is no tokenizer.json: {first_line(error)}") from error
        read.no_truncation()
        read.no_padding()
        return cls(read)

    def encode(self, text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the tokens of a text and their numbers.

        Raises:
            DataError: If the tokeniser fails, as one without an unknown word does at a word that it lacks.
        """
        try:
            found = self.given.encode(text, add_special_tokens=False)
        except Exception as error:  # bare exceptions here too
            raise DataError(f"the tokenizer cannot split {text[:40]!r}: {first_line(error)}") from error
        if hasattr(found, "ids"):
            return self._shown(found.tokens), tuple(found.ids)
        numbers = tuple(int(number) for number in found)
        names = getattr(self.given, "convert_ids_to_tokens", None)
        return self._shown(map(str, names(list(numbers)) if names else numbers)), numbers

    def _shown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Return the texts that tokens stand for, where a tokeniser writes a character for each byte."""
        kept = self._tokens_as_they_are
        return tuple(tokens) if kept is None else tuple(t if t in kept else _text_of_bytes(t) for t in tokens)

    @cached_property
    def _tokens_as_they_are(self) -> frozenset[str] | None:
        """The tokens of a byte-level tokeniser that are no bytes; None of any other tokeniser."""
        written = getattr(getattr(self.given, "backend_tokenizer", self.given), "to_str", None)
        if written is None:
            return None
        parts = json.loads(written())
        if not any('"ByteLevel"' in json.dumps(parts[part]) for part in ("normalizer", "pre_tokenizer")):
            return None
        return frozenset(added["content"] for added in parts["added_tokens"])

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks, such as ``[CLS]``, that it puts at the ends of a text unless it is told not to."""
        return tuple(getattr(self.given.encode(""), "tokens", ()))

    @property
    def words(self) -> Mapping[int, str]:
        """The texts that tokens stand for, by their indices; none of a tokeniser that does not list its tokens."""
        every = getattr(self.given, "get_vocab", None)
        known: Mapping[str, int] = every() if every else {}
        return dict(zip(known.values(), self._shown(known), strict=True))

    def __len__(self) -> int:
        """Return the number of indices, of which some may have no token."""
        every = getattr(self.given, "get_vocab", None)
        return 1 + max(every().values(), default=-1) if every else len(self.given)


def _text_of_bytes(token: str) -> str:
    """Return the text of a token of bytes, with the code of each byte that is a part of a character only."""
    bytes_of = _bytes_of_characters()
    if not bytes_of.keys() >= set(token):
        return token
    return bytes(bytes_of[character] for character in token).decode(errors="backslashreplace")


@cache
def _bytes_of_characters() -> Mapping[str, int]:
    """Return the byte of each character by which byte-level tokenisers, from GPT-2 on, write bytes."""
    same = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in same]
    return {chr(byte): byte for byte in same} | {chr(256 + place): byte for place, byte in enumerate(others)}
