"""The parts of ``single-changes``: networks of another item, and the settings that are changed in each.

Each part trains as that item does at scale day, but for what it changes: one setting, or all of a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ALL_CLASSES", "PARTS", "SENTIMENT", "Part"]

_WIDE = {"vectors": "N(0, 1)"}
_NARROW = {"vectors": "U(-0.1, 0.1)"}
_RENEWED = {"optimisers": "one an epoch"}
_SLOW = {"lr": 0.002}
_LAYERS = {"num_layers": 2, "heads": 5, "feedforward_size": 300, **_SLOW}
_TRAINED = {**_RENEWED, "batch": 1024, "epochs": 30, "weight_decay": 1e-5}
_NOTEBOOK: Mapping[str, Any] = {
    **_WIDE, **_RENEWED, "lr": 0.02, "batch": 1024, "epochs": 15, "clip": 5.0, "word_dropout": 0.0,
}  # fmt: skip
"""Those of RNN_ngra,_phenomena_analysis."""

_OF_RELATIONS: Mapping[str, Any] = {
    "epochs": 20, "patience": 3, "batch": 32, "optimiser": "adagrad", "lr": 0.01, "clip": 5.0,
    "dropout": 0.5, "word_dropout": 0.1, "bidirectional": False, "pooling": "last",
}  # fmt: skip
_OF_CODE: Mapping[str, Any] = {
    "epochs": 40, "patience": 40, "batch": 128, "optimiser": "adagrad", "lr": 0.01, "clip": 5.0,
    "dropout": 0.5, "word_dropout": 0.0, "weight_decay": 1e-5, "bidirectional": False, "pooling": "last",
}  # fmt: skip
_OF_SENTIMENT: Mapping[str, Any] = {
    "epochs": 6, "patience": 2, "batch": 128, "optimiser": "adagrad", "lr": 0.01, "clip": 1.0,
    "dropout": 0.5, "word_dropout": 0.1,
}  # fmt: skip
_OF_ERRORS: Mapping[str, Any] = {**_OF_SENTIMENT, "weight_decay": 1e-5, "spectral": True}


@dataclass(frozen=True)
class Part:
    """Networks that train again, each with every change."""

    base: Mapping[str, Any]
    """The settings of the other item at scale day."""
    networks: Sequence[str]
    changes: Mapping[str, Mapping[str, Any]]
    """The settings of each change, by its title."""
    hours: float
    """Of a training at scale day, on one core."""
    seeds: Sequence[int] = (0,)


PARTS: Mapping[str, Part] = {
    "errors": Part(
        _OF_ERRORS,
        ("GRU", "Elman", "LSTM"),
        {
            "vectors from N(0, 1)": _WIDE,
            "all settings of the notebook": _NOTEBOOK,
            "all settings of the notebook, spectra not normalised": {**_NOTEBOOK, "spectral": False},
        },
        0.08,
    ),
    "relations": Part(
        _OF_RELATIONS,
        ("Elman",),
        {
            "nothing": {},
            "vectors from N(0, 1)": _WIDE,
            "batches of 128": {"batch": 128},
            "no dropout of words": {"word_dropout": 0.0},
            "weight decay 1e-05": {"weight_decay": 1e-5},
            "40 epochs, no early stopping": {"epochs": 40, "patience": 40},
            "relations in both directions": {"directed": True},
        },
        0.04,
    ),
    "sentiment": Part(
        _OF_SENTIMENT,
        ("MVM-E",),
        {
            "rate 0.002": _SLOW,
            "vectors from N(0, 1)": _WIDE,
            "rate 0.002, 30 epochs, a new optimiser in each": {**_SLOW, **_RENEWED, "epochs": 30},
        },
        0.07,
    ),
    "all classes": Part(
        _OF_CODE,
        ("VA-EW", "MVMA-ME", "MVMA-G", "MVMA-L", "MVMA-E", "Elman", "GRU", "LSTM", "MVM-G", "MVM-L"),
        {"a new optimiser in each epoch": _RENEWED},
        0.1,
    ),
    "optimisers": Part(
        _OF_SENTIMENT,
        ("MVMA-G", "MVMA-ME", "Elman", "GRU"),
        {"a new optimiser in each epoch": _RENEWED},
        0.12,
    ),
    "longer": Part(
        _OF_SENTIMENT,
        ("MM", "MVMA-G", "Transformer"),
        {"30 epochs, a new optimiser in each": {**_RENEWED, "epochs": 30}},
        0.12,
    ),
    "dropout": Part(_OF_SENTIMENT, ("MM",), {"dropout of 0.5": {"dropout": 0.5}}, 0.12),
    "reading": Part(
        _OF_SENTIMENT,
        ("Transformer",),
        {"the last context": {"pooling": "last"}, "the first and the last context": {"pooling": "ends"}},
        0.15,
    ),
    "layers": Part(
        _OF_SENTIMENT,
        ("Transformer",),
        {
            "two layers of 5 heads, 300 units between, rate 0.002": _LAYERS,
            "layers, rate, batches, 30 epochs, new optimisers and weight decay of the notebook": {
                **_LAYERS,
                **_TRAINED,
            },
        },
        0.15,
    ),
    "narrow vectors": Part(
        _OF_CODE,
        ("VA-EW", "MVMA-ME"),
        {
            "vectors from U(-0.1, 0.1)": _NARROW,
            "vectors from U(-0.1, 0.1), a new optimiser in each epoch": {**_NARROW, **_RENEWED},
        },
        0.1,
    ),
    "seeds": Part(
        _OF_CODE,
        ("VA-EW", "MVMA-ME"),
        {"nothing, three seeds": {}, "a new optimiser in each epoch, three seeds": _RENEWED},
        0.1,
        range(3),
    ),
    "rates": Part(
        _OF_CODE,
        ("VA-EW",),
        {"rate 0.002": _SLOW, "rate 0.002, a new optimiser in each epoch": {**_SLOW, **_RENEWED}},
        0.1,
    ),
    "places": Part(
        _OF_CODE,
        ("VA-W",),
        {
            "the network of the notebook": {"block": 20},
            "the network of the notebook, a new optimiser in each epoch": {"block": 20, **_RENEWED},
        },
        0.1,
    ),
}
"""In the order of their trials; the ratings, whose trials are those of another item, are no part of these."""
SENTIMENT = ("sentiment", "optimisers", "longer", "dropout", "reading", "layers")
"""The parts that learn SST-2 as ``table3`` does, in the order of a table."""
ALL_CLASSES = ("all classes", "narrow vectors", "rates", "places", "seeds")
"""The parts that learn nineteen classes, as ``relations-of-code`` does."""
