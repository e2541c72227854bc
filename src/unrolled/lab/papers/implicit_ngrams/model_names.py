"""The names that the paper gives its models: the encoders that they are, and the order in which they are trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unrolled.lab.papers.framework.experiment import pick

__all__ = ["encoder_of", "encoder_settings", "main_models_first"]

_OPTIONS = ("window", "bias", "num_layers", "heads", "feedforward_size")
_MAIN = ("MVMA-G", "MVM-G", "GRU", "MVMA-L", "MVM-L", "LSTM")
"""The models that the paper's argument is about, and those that they approximate."""


def encoder_of(model: str) -> str:
    """Return the library's name of the encoder of a model, such as ``mvma_g`` of MVMA-G."""
    return "rnn" if model == "Elman" else model.lower().replace("-", "_")


def encoder_settings(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoder of the settings of a trial, with what they say of its options and its start."""
    options = pick(chosen, _OPTIONS)
    return {
        "encoder": encoder_of(chosen["model"]),
        "options": options,
        "orthogonal": chosen.get("orthogonal", False),
    }


def main_models_first(models: Iterable[str]) -> list[str]:
    """List the main models, then the others in their order."""
    return [*_MAIN, *(model for model in models if model not in _MAIN)]
