"""CoNLL-2003: the names of persons, organisations, places and others in English news.

Four columns: word, part of speech, chunk, name. The tags of the names are IOB1 in the original files and BIO2 in many
copies; either is read and converted to IOBES.

Source:
    Tjong Kim Sang and De Meulder (2003), Introduction to the CoNLL-2003 shared task. arXiv:cs/0306050
"""

from __future__ import annotations

from pathlib import Path

from unrolled.lab.data.corpus import Dataset, Tagging
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.formats.conll import ColumnSentence, read_columns, to_iobes
from unrolled.lab.data.reading import only_valid
from unrolled.lab.data.spans import Scheme

__all__ = ["Conll2003"]


class Conll2003(Dataset):
    """Sentences with named entities; the scheme of the files is detected, file by file, if None."""

    name = "conll2003"
    kind = Tagging
    description = "named entities in English news: 14,041 / 3,250 / 3,453 sentences"
    licence = "Reuters text, for research only, not to be redistributed"
    citation = "Tjong Kim Sang and De Meulder (2003), arXiv:cs/0306050"

    def __init__(self, *, scheme: Scheme | None = None) -> None:
        self.scheme = scheme

    def read(self, folder: Path | None = None) -> Tagging:
        """Read ``conll2003/train.txt``, ``valid.txt`` and ``test.txt``."""
        train, dev, test = (
            tuple(row.value for row in only_valid(to_iobes(_read(split, folder), self.scheme)))
            for split in ("train", "valid", "test")
        )
        return Tagging(name=self.name, train=train, dev=dev, test=test, spans=True)


def _read(split: str, folder: Path | None) -> list[ColumnSentence]:
    return list(only_valid(read_columns(find_file(f"conll2003/{split}.txt", folder))))
