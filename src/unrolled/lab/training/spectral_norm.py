r"""Spectral normalisation of recurrent weights: each U_k is divided by its largest singular value.

A network whose U_k have norm one stays closer to its first-order expansion, and its n-gram terms stay bounded.
torch.nn.utils.parametrizations.spectral_norm divides a stacked matrix by the norm of the whole stack, as the authors of
Implicit n-grams do in their published code; here each of the stacked matrices is divided by its own, or all of them
together by that of the stack. Each access to the weight in training makes one step of power iteration.

Source:
    Miyato et al. (2018), arXiv:1802.05957, algorithm 1; Implicit n-grams, notes 4 and 8: the matrices
    W_h* of its standard networks are normalised. Code: https://github.com/richardsun-voyager/inibr.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.parametrize import register_parametrization

from unrolled.errors import UsageError

__all__ = ["SpectralBlocks", "normalise_spectrum"]

_WARMUP = 15
_RECURRENT = re.compile(r"weight_hh(_l\d+(_reverse)?)?")


class SpectralBlocks(nn.Module):
    """Divide each of the stacked matrices, each of ``rows`` rows, by its largest singular value."""

    left: Tensor
    right: Tensor

    def __init__(self, weight: Tensor, rows: int) -> None:
        super().__init__()
        blocks = weight.detach().unflatten(0, (-1, rows))
        self.register_buffer("left", normalize(torch.randn_like(blocks[:, :, :1]), dim=1))
        self.register_buffer("right", normalize(torch.randn_like(blocks[:, :1, :].mT), dim=1))
        for _ in range(_WARMUP):
            self._power_iteration(blocks)

    @torch.no_grad()
    def _power_iteration(self, blocks: Tensor) -> None:
        self.right.copy_(normalize(blocks.mT @ self.left, dim=1))
        self.left.copy_(normalize(blocks @ self.right, dim=1))

    def forward(self, weight: Tensor) -> Tensor:
        """Normalise the stack, shape (K·rows, columns)."""
        blocks = weight.unflatten(0, (-1, self.left.shape[1]))
        if self.training:
            self._power_iteration(blocks)
        # copies: the next call changes the vectors in place while the graph of this one still needs them
        norms = self.left.clone().mT @ blocks @ self.right.clone()
        return (blocks / norms).flatten(0, 1)


def normalise_spectrum(module: nn.Module, *, together: bool = False) -> nn.Module:
    """Normalise every recurrent weight of the cells, encoders and torch networks in a module, in place.

    These are the parameters ``weight_hh`` and, in ``torch.nn.RNN``, ``GRU`` and ``LSTM``, ``weight_hh_l0`` and so on.

    Args:
        module: The module.
        together: Whether the matrices of a weight are divided by the norm of their stack, and not each by its own.
    """
    found = [
        (each, name, weight)
        for each in module.modules()
        for name, weight in each.named_parameters(recurse=False)
        if _RECURRENT.fullmatch(name)
    ]
    if not found:
        raise UsageError(
            f"no weight_hh in {type(module).__name__}: spectral normalisation needs a recurrent cell or network"
        )
    for each, name, weight in found:
        rows = len(weight) if together else getattr(each, "hidden_size", weight.shape[1])
        register_parametrization(each, name, SpectralBlocks(weight, rows))
    return module
