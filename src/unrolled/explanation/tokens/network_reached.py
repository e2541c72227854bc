"""Run a model no further than to its recurrent network."""

from __future__ import annotations

from typing import Any, NoReturn

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from unrolled.model_runs.preserve_model import end_run

__all__ = ["NetworkReached", "reach"]


class NetworkReached(BaseException):
    """The recurrent network was called; no code of the model catches this."""

    def __init__(self, inputs: Tensor | PackedSequence, lengths: Any) -> None:
        super().__init__()
        self.inputs, self.lengths = inputs, lengths


def reach(input: Any = None, *_: Any, lengths: Any = None, **__: Any) -> NoReturn:
    """End the run of a model; it takes the arguments of its network."""
    end_run()
    raise NetworkReached(input, lengths)
