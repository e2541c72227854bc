"""The vectors that a model makes of tokens, and whether results are computed of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.explanation.tokens.tracer import Tracer
from unrolled.held_forward.operations.operation_names import name_of
from unrolled.model_runs.nested_tensors import Copies
from unrolled.user_models.all_modules import all_parameters

__all__ = ["TracedVectors", "depends"]

_WITHOUT_TABLE = "tokens"
"""Stands for the name of a table where vectors are made of tokens without one, as one-hot vectors are."""


class TracedVectors(Tracer):
    """Makes leaves of the vectors of tokens; arguments of numbers have gradients already."""

    def open_part(self, value: Any, made: Copies) -> Any:
        """Return an argument as the model receives it."""
        return value if isinstance(value, Tensor) and value.is_floating_point() else super().open_part(value, made)

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Run an operation; bags of vectors are vectors as well."""
        result = super().run_operation(func, args, options)
        if name_of(func).name == "embedding_bag" and args[0] in self.positions:
            return self.leaf(result, args[0], None, args[1].data_ptr())
        return result

    def tables_read(self, model: nn.Module, results: list[Tensor]) -> list[str]:
        """Name the tables of whose vectors for tokens of the arguments some results are computed."""
        names = {each.data_ptr(): name for name, each in all_parameters(model).items()}
        vectors: dict[str, list[Tensor]] = {}
        for each in self.sources:
            if bool((each.places >= 0).any()):
                vectors.setdefault(names.get(each.table, _WITHOUT_TABLE), []).append(each.leaf)
        return sorted(name for name, leaves_of_table in vectors.items() if depends(results, leaves_of_table))


def depends(results: list[Tensor], sources: list[Tensor]) -> bool:
    """Tell whether a gradient leads from results to sources."""
    results = [each for each in results if each.requires_grad]
    if not results or not sources:
        return False
    weights = [torch.linspace(1.0, 2.0, each.numel(), device="cpu").view(each.shape).to(each) for each in results]
    gradients = torch.autograd.grad(results, sources, weights, retain_graph=True, allow_unused=True)
    # a root at zero has no finite slope
    return any(each is not None and bool(each.nan_to_num(0.0).any()) for each in gradients)
