"""Make recurrent layers of Keras call their cell once for each step, so that the step is found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from unrolled.user_models.all_modules import all_modules
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["keras_as_steps"]


@contextmanager
def keras_as_steps(model: nn.Module) -> Iterator[None]:
    """Let the layers of Keras run their cell step by step, until the end of the block.

    By default (``use_cudnn="auto"``) an LSTM or GRU layer runs cuDNN or a loop of its own, and never calls its cell. A
    layer that is not unrolled calls its cell once more at the first step, to see the shape of the output.
    """
    ours = [each for each in all_modules(model).values() if _is_recurrent(each)]
    whole = [each for each in ours if vars(each).get("use_cudnn")]
    # one that reads backwards and a mask cannot be unrolled on this backend
    rolled = [each for each in ours if vars(each).get("unroll") is False and not vars(each).get("go_backwards")]
    with replaced_attributes([*((e, "use_cudnn", False) for e in whole), *((e, "unroll", True) for e in rolled)]):
        yield


def _is_recurrent(module: nn.Module) -> bool:
    """Tell whether it derives from ``keras.layers.RNN``: in other layers ``unroll`` may mean something else."""
    return any(base.__name__ == "RNN" and base.__module__.startswith("keras.") for base in type(module).__mro__)
