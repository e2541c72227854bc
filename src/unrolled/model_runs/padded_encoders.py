"""Run torch's Transformer encoders with their padding, as they run where gradients are asked for.

Without gradients ``nn.TransformerEncoder`` cuts the padding off and gives zeros there. No mode meets what it then
calls, and a model that reads these places would have two outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["padded_encoders"]


@contextmanager
def padded_encoders(model: nn.Module) -> Iterator[None]:
    """Let encoders keep the padding, until the end of the block."""
    parts = all_modules(model).values()
    cutting = [each for each in parts if isinstance(each, nn.TransformerEncoder) and each.use_nested_tensor]
    with replaced_attributes((each, "use_nested_tensor", False) for each in cutting):
        yield
