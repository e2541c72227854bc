"""A run of a model on copies of its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from unrolled.errors import UsageError
from unrolled.explanation.sources import is_mask
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.model_runs.nested_tensors import copy_tensors, tensors_in

__all__ = ["ModelRun"]


@dataclass(frozen=True)
class ModelRun:
    """Runs a model on copies of its arguments, each time it is called."""

    model: nn.Module
    args: tuple[object, ...]
    kwargs: dict[str, object]

    @classmethod
    def of(cls, model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> ModelRun:
        """Keep copies of the arguments, which the user may change.

        Raises:
            UsageError: If a weight was made in inference mode.
        """
        for name, weight in model.named_parameters():
            if weight.is_inference():
                raise UsageError(
                    f"{name} was made in inference mode; expected a model made outside torch.inference_mode"
                )
        return cls(model, *copy_tensors((args, kwargs)))

    def __call__(self) -> object:
        """Run the model once."""
        args, kwargs = copy_tensors((self.args, self.kwargs))
        return self.model(*args, **kwargs)

    @property
    def arguments(self) -> tuple[object, ...]:
        """All arguments of the model."""
        return (*self.args, *self.kwargs.values())

    def mark_numbers(self, rows: Rows) -> None:
        """Mark the arguments' numbers: what a run makes of them has no parameter's name, whatever multiplies them."""
        for each in tensors_in((self.args, self.kwargs)):
            (rows.mark_answers if is_mask(each) else rows.mark_numbers)(each)
