"""What trainings of several items have in common; equal choices let them share a network."""

from __future__ import annotations

from typing import Any

__all__ = ["ADAGRAD", "GLOVE"]

ADAGRAD: dict[str, Any] = {"optimiser": "adagrad", "lr": 0.05}
"""The optimiser of Implicit n-grams, which does not say the rate: at this one a GRU of its figure 2 is ahead, on dev,
of one that learns by this library's own settings, whose dropout it keeps."""
GLOVE = "glove/glove.6B.50d.subset.txt"
"""Where the word vectors lie in the folder of data; the papers' own are of other sizes, which are not at hand."""
