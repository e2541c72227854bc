"""Tensors that a model computes its weights from: the file holds them in the place of the weights, and not how."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from unrolled.errors import DataError
from unrolled.weights.foreign_file import IN_PYTHON

__all__ = ["refuse_computed"]

_NAME = re.compile(
    r"(.*\.)?parametrizations\..*"  # torch.nn.utils.parametrize
    r"|(.*\.)?(weight|bias)\w*_(orig|raw)"  # spectral_norm and prune; dropped connections
    r"|(.*\.)?weight\w*_g"  # weight_norm
    r"|(.*\.)?lora_\w+(\..*)?"  # matrices of low rank whose product is added to a weight
)


def refuse_computed(tensors: Mapping[str, Tensor]) -> None:
    """Refuse a file with such a tensor: taken for the weight, it would give another model.

    Raises:
        DataError: With the name of the first one.
    """
    for name in tensors:
        if _NAME.fullmatch(name):
            raise DataError(
                f"{name} is not a weight but what one is computed from (weight_norm, spectral_norm, prune, "
                f"parametrize, LoRA), and the file does not say how; {IN_PYTHON}"
            )
