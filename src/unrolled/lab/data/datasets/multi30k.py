"""Multi30k: captions of photographs in German and English, lower-cased and tokenised.

Line i of one file is the translation of line i of the other.

Source:
    Elliott et al. (2016), Multi30K: Multilingual English-German Image Descriptions. arXiv:1605.00459
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from unrolled.lab.data.corpus import Dataset, SentencePair, Translation
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.parallel import read_parallel
from unrolled.lab.data.reading import only_valid

__all__ = ["Multi30k", "Multi30kFromEnglish"]


class Multi30k(Dataset):
    """From German to English, with the test sentences of 2016 or 2017."""

    name = "multi30k"
    kind = Translation
    description = "captions of photographs, German to English: 29,000 / 1,014 / 1,000 pairs"
    licence = "none stated; captions derived from Flickr30k, for research, cite the source"
    citation = "Elliott et al. (2016), arXiv:1605.00459"
    languages: ClassVar[tuple[str, str]] = ("de", "en")

    def __init__(self, *, year: Literal[2016, 2017] = 2016) -> None:
        self.year = year

    def read(self, folder: Path | None = None) -> Translation:
        """Read ``multi30k/train.lc.norm.tok.de`` and the others."""
        train, dev, test = (self._read(split, folder) for split in ("train", "val", f"test_{self.year}_flickr"))
        return Translation(name=self.name, train=train, dev=dev, test=test)

    def _read(self, split: str, folder: Path | None) -> tuple[SentencePair, ...]:
        source, target = (find_file(f"multi30k/{split}.lc.norm.tok.{language}", folder) for language in self.languages)
        return tuple(pair for _, pair in only_valid(read_parallel(source, target, str.split, str.split)))


class Multi30kFromEnglish(Multi30k):
    """From English to German."""

    name = "multi30k-en-de"
    description = "captions of photographs, English to German: 29,000 / 1,014 / 1,000 pairs"
    languages = ("en", "de")
