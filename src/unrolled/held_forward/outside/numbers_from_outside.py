"""Tensors that ask for a gradient and were made before a run: numbers of the model, as its parameters are.

A model may keep them as a buffer or an attribute, or close over them: what it made of its parameters outside
``torch.no_grad``, or the state of the call before.

Autograd numbers the nodes of its graphs, in each thread from 0. So what a function closes over is found if the thread
of the run made it and it is no leaf; what the modules keep is found always. What another thread makes in the run may
have a low number as well, but is made of a node of the run, or of vectors that it has looked up (``other_threads.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.overrides import _get_current_function_mode_stack

from unrolled.held_forward.operations.operands import carries, for_each_tensor
from unrolled.held_forward.operations.operation_mode import OperationMode, object_of
from unrolled.held_forward.outside.other_threads import is_of_another_thread
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.user_models.all_modules import all_buffers, unregistered_tensors

__all__ = ["NumbersFromOutside", "note_what_modules_keep"]

_OF_LEAVES = 2**64 - 1
"""Autograd's number of every node that collects the gradient of a leaf."""


class NumbersFromOutside(OperationMode):
    """A mode that takes tensors which were made before the run for numbers of the model, without their graphs."""

    def __init__(self) -> None:
        super().__init__()
        self._first_node = torch._C._autograd._get_sequence_nr()
        self._model: nn.Module | None = None
        self._from_outside: TensorNotes[Tensor] = TensorNotes()

    def begin_run(self, model: nn.Module, first_node: int | None = None) -> None:
        """Take all that the modules keep for numbers of the model: leaves too, and whatever thread made them.

        The run began with the node ``first_node`` of autograd, or with this mode.
        """
        self._model = model
        if first_node is not None:
            self._first_node = first_node
        with torch._C.DisableTorchFunction():
            self.note_what_modules_keep()  # of a model whose own __call__ tells no hook that a run begins

    def note_what_modules_keep(self) -> None:
        """Note what the modules keep now as made before the run, and forget what carries nothing any more."""
        for each in self._from_outside:  # of a restored tensor, which this run may write value into
            if not carries(each):
                self._from_outside.pop(each)
        if self._model is not None:
            for each in filter(carries, (*all_buffers(self._model).values(), *unregistered_tensors(self._model))):
                self._from_outside[each] = each.detach()

    def without_gradients(
        self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return operands of which no parameter, and no tensor from outside, asks for a gradient."""
        args, options = super().without_gradients(func, args, options)
        if self._reads_from_outside(args) or (options and self._reads_from_outside(options.values())):
            own = object_of(func, args)
            args = (*own, *for_each_tensor(args[len(own) :], self._without_graph))
            options = for_each_tensor(options, self._without_graph)
        return args, options

    def _reads_from_outside(self, values: Iterable[Any]) -> bool:
        """Whether a tensor from outside is among the arguments of a call."""
        for each in values:  # of every operation of a run
            if isinstance(each, Tensor):
                if each.requires_grad and self._is_from_outside(each):
                    return True
            elif isinstance(each, tuple | list) and self._reads_from_outside(each):
                return True
        return False

    def _is_from_outside(self, value: Tensor) -> bool:
        if value in self._from_outside:
            return True
        node = value.grad_fn
        return node is not None and node._sequence_nr() < self._first_node and not self._is_made_of_the_run(node)

    def _is_made_of_the_run(self, node: Node) -> bool:
        """Whether what a node computes is made of a result of this run, in this thread or in another one."""
        if is_of_another_thread(node):
            return True
        seen, waiting = {node}, [node]
        while waiting:
            for each, _ in waiting.pop().next_functions:
                if each is not None and each not in seen:
                    if self._first_node <= each._sequence_nr() < _OF_LEAVES or is_of_another_thread(each):
                        return True
                    seen.add(each)
                    waiting.append(each)
        return False

    def _without_graph(self, value: Tensor) -> Tensor:
        """Return a tensor from outside without its graph, and any other as it is."""
        if not self._is_from_outside(value):
            return value
        if value not in self._from_outside:  # one for all its uses: the model may write value into it
            self._from_outside[value] = value.detach()
        return self._from_outside[value]


def note_what_modules_keep() -> None:
    """Let the modes that are on note what the modules keep, when a run begins: a model may keep its arguments first."""
    with torch._C.DisableTorchFunction():
        for mode in _get_current_function_mode_stack():
            if isinstance(mode, NumbersFromOutside):
                mode.note_what_modules_keep()
