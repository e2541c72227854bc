"""Items whose networks begin with pretrained word vectors, with the vectors of another file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from unrolled.errors import UsageError
from unrolled.lab.data.data_folder import find_file
from unrolled.lab.data.word_vectors import vector_size
from unrolled.lab.papers.framework.experiment import Experiment, Scale, Trial

__all__ = ["begin_with"]


def begin_with(experiments: Iterable[Experiment], file: str, folder: Path | None) -> list[Experiment]:
    """Replace the word vectors of those experiments that begin with pretrained ones; leave out the others.

    A trial's settings name the file and the size of its vectors. So its key differs from that of the item's own trial,
    and both results are kept.

    Args:
        experiments: The items with their own vectors.
        file: A path inside the data folder, of GloVe's or word2vec's format.
        folder: The data folder; None for the one that ``UNROLLED_DATA`` names.

    Raises:
        UsageError: If none of them begins with pretrained vectors at any scale.
        MissingDataError: If the folder contains no such file.
        DataError: If the file does not begin with a word vector.
    """
    size = vector_size(find_file(file, folder))
    found = [_with_vectors(each, file, size) for each in experiments]
    able = [each for each in found if any(each.at(scale) for scale in each.scales)]
    if not able:
        raise UsageError(f"none of these items begins with pretrained word vectors; leave out --vectors {file}")
    return able


def _with_vectors(experiment: Experiment, file: str, size: int) -> Experiment:
    """Make the same experiment with other trials."""
    kind = type(experiment)

    class OtherVectors(kind):  # type: ignore[valid-type, misc]  # a class that is known when it runs
        def trials(self, scale: Scale) -> Sequence[Trial]:
            replaced = (self.with_vectors(trial, file, size) for trial in super().trials(scale))
            return [trial for trial in replaced if trial is not None]

    found: Experiment = OtherVectors()
    return found
