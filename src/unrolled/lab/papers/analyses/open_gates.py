"""Forget gates that begin open, so that a product of many steps does not vanish.

Source:
    Jozefowicz, Zaremba and Sutskever (2015), An Empirical Exploration of Recurrent Network Architectures, for an LSTM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from unrolled.lab.tasks.classify import Classify

if TYPE_CHECKING:
    from unrolled.composition.matrix_vector import MVMLEncoder
    from unrolled.lab.models.classifier import Classifier

__all__ = ["OPEN_BIAS", "OpenClassify"]

OPEN_BIAS = 2.0
"""With it, an MVM-L of 300 units that has just been drawn has contexts about as long after 40 words as after one."""


class OpenClassify(Classify):
    """Classes of texts by MVM-L, whose forget gates begin with a bias of ``OPEN_BIAS`` more."""

    def build(self) -> Classifier:
        """Draw the weights and open the gates."""
        model = super().build()
        cell = cast("MVMLEncoder", model.encoder).cell
        with torch.no_grad():
            _, forget, *_ = cast("torch.Tensor", cell.bias_ih).chunk(4)  # the order of an LSTM: i, f, g, o
            forget += OPEN_BIAS
        return model
