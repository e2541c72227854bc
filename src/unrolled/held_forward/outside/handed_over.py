"""Threads that a model starts in a held run, and tasks that it gives to a pool of threads.

A mode of its own meets the operations of each and changes none. It notes what they make of value without a graph, and
what they read of a table at token ids, so that neither is taken for numbers of the model; numbers that they make of
ids alone have a name where they are added to value. It does not meet a thread that was there before the run and reads
a queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from multiprocessing.pool import ThreadPool
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from unrolled.held_forward.operations.operands import carries, holds_numbers, operands
from unrolled.held_forward.operations.operands_read import operands_read
from unrolled.held_forward.operations.operation_names import Operation, name_of
from unrolled.held_forward.operations.python_values import TO_PYTHON, taken_out_error
from unrolled.held_forward.outside.numbers_from_outside import NumbersFromOutside
from unrolled.held_forward.outside.other_threads import note_made, refused_from_other_threads, was_made
from unrolled.held_forward.tensor_facts.rows import MASKS, Rows
from unrolled.held_forward.tensor_facts.tensor_notes import TensorNotes
from unrolled.held_forward.token_ids.token_positions import TokenPositions
from unrolled.user_models.replaced_attributes import replaced_attributes

__all__ = ["MeetsOtherThreads", "met_here", "work_of_threads_met"]

_POOLS = ("concurrent.futures.thread", "multiprocessing.pool")
"""Modules whose threads outlive a run: their tasks are met instead."""
_OF_POOL = "apply_async map map_async starmap starmap_async imap imap_unordered".split()
"""Methods of a pool that take a function first, and what is called back as the fourth and fifth argument."""


class MeetsOtherThreads(NumbersFromOutside):
    """A mode of a run that may hand work to other threads."""

    positions: TokenPositions
    rows: Rows

    def __init__(self) -> None:
        super().__init__()
        self._ids: TensorNotes[bool] = TensorNotes()
        """What other threads made of token ids alone, and whether that is masks."""
        self._numbers_elsewhere: TensorNotes[bool] = TensorNotes()
        """What they made of numbers of the model alone."""
        self._took_out = ""
        """The operation by which one of them gave Python numbers of value."""

    def is_value(self, value: Tensor) -> bool:
        """Tell whether a tensor that another thread reads carries value of this run."""
        return carries(value) and value not in self._numbers_elsewhere and not self._is_from_outside(value)

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Meet one operation; a table that is read at ids of another thread gives no numbers of the model."""
        if name := self._took_out:
            self._took_out = ""  # the model's hooks run after an error
            raise taken_out_error(name, " in another thread")
        if len(self._ids):
            given = operands((*args, *options.values()))
            if any(each in self._ids and each.dtype != torch.bool for each in given) and not any(map(carries, given)):
                result = func(*args, **options)
                operation = name_of(func)
                what = f"computes {operation.name} of what it made of tokens in another thread"
                self.note_elsewhere(operation, given, result, what)
                return refused_from_other_threads(result)
        return super().run_operation(func, args, options)

    def note_taken_out(self, operation: Operation, given: Sequence[Tensor]) -> None:
        """Note that another thread gives Python numbers of value, which may come back as any others."""
        if operation.name in TO_PYTHON and any(self.is_value(each) or was_made(each) for each in given):
            self._took_out = operation.name

    def note_elsewhere(self, operation: Operation, given: Sequence[Tensor], result: Any, what: str) -> None:
        """Note what an operation of another thread, or on its ids, gives; ``what`` names it in an error."""
        given = operands_read(operation, given)
        made = any(map(was_made, given))
        ids = [each for each in given if each in self._ids or each in self.positions or each in self.positions.several]
        valued = any(map(self.is_value, given))
        tables = bool(ids) and any(_may_be_table(each) and each not in self._ids for each in given)
        for each in _results(operation, given, result):
            if not holds_numbers(each):
                if ids:
                    self._note_ids(operation, ids, each)
                elif made or valued:  # as the place of a maximum
                    self._ids[each] = False
                    self.rows.mark(each, "held", operation.name)
            elif made or tables or (valued and not each.requires_grad):
                note_made(each, what)
            elif ids and not valued:
                self._note_ids(operation, ids, each)
            elif each.requires_grad and not valued:  # else its graph tells what it is made of
                self._numbers_elsewhere[each] = True

    def _note_ids(self, operation: Operation, ids: Sequence[Tensor], result: Tensor) -> None:
        """Note what is made of token ids alone, and name it: where it is added to value no token has it."""
        masks = result.dtype == torch.bool or all(self._ids.get(each, self.positions.are_masks(each)) for each in ids)
        self._ids[result] = masks
        own = next((origin for origin in map(self.rows.origin, ids) if origin.kind in ("held", "computed")), None)
        if masks:
            self.rows.mark(result, "mask", MASKS)
        elif own is not None:
            self.rows.mark(result, *own)
        else:
            self.rows.mark(result, "computed", f"numbers that {operation.name} made of ids in another thread")


def _may_be_table(value: Tensor) -> bool:
    return value.is_floating_point() and value.dim() > 0


def _results(operation: Operation, given: Sequence[Tensor], result: Any) -> list[Tensor]:
    """List the tensors that an operation gives, and those that it writes into."""
    found = operands([result])
    if operation.writes and given:
        found += [given[0], *operands([given[0]._base])]
    return found


class _InOtherThread(TorchFunctionMode):
    """Meets the operations of another thread, and changes none of them."""

    def __init__(self, run: ref[MeetsOtherThreads]) -> None:
        super().__init__()
        self.run = run

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        run, operation = self.run(), name_of(func)
        if run is not None and not operation.name.startswith("get "):
            what, given = f"computes {operation.name} in another thread", operands((*args, *options.values()))
            run.note_taken_out(operation, given)
            run.note_elsewhere(operation, given, result, what)
        return result


def met_here() -> bool:
    """Tell whether a mode of a run in this thread meets the operations."""
    return any(not isinstance(mode, _InOtherThread) for mode in _get_current_function_mode_stack())


def _run_of_this_thread() -> ref[MeetsOtherThreads] | None:
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, MeetsOtherThreads):
            return ref(mode)
        if isinstance(mode, _InOtherThread):
            return mode.run
    return None


def _met(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that another thread calls for a run of this one; as it is if there is no run."""
    run = _run_of_this_thread()
    if run is None:
        return function

    def met(*args: Any, **kwargs: Any) -> Any:
        if run() is None or _run_of_this_thread() == run:  # it has ended, or is met already
            return function(*args, **kwargs)
        with _InOtherThread(run):
            return function(*args, **kwargs)

    return met


def _hands_over(
    method: Callable[..., Any], places: Sequence[int] = (0,), names: Sequence[str] = ()
) -> Callable[..., Any]:
    """Return a method some of whose arguments are functions that another thread calls."""

    @wraps(method)
    def handed(owner: Any, *args: Any, **kwargs: Any) -> Any:
        given = [_met(each) if place in places and callable(each) else each for place, each in enumerate(args)]
        named = {name: _met(each) if name in names and callable(each) else each for name, each in kwargs.items()}
        return method(owner, *given, **named)

    return handed


def _start(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    @wraps(start)
    def started(thread: threading.Thread) -> None:
        if _run_of_this_thread() and getattr(getattr(thread, "_target", None), "__module__", "") not in _POOLS:
            thread.run = _met(thread.run)  # type: ignore[method-assign]  # of this thread alone
        start(thread)

    return started


@contextmanager
def work_of_threads_met() -> Iterator[None]:
    """Meet what a held run of this thread hands to other threads, until the end of the block."""
    called_back = ("callback", "error_callback")
    methods = (
        (ThreadPoolExecutor, "submit", _hands_over(ThreadPoolExecutor.submit)),
        (Future, "add_done_callback", _hands_over(Future.add_done_callback, names=("fn",))),
        *(
            (ThreadPool, name, _hands_over(getattr(ThreadPool, name), (0, 3, 4), ("func", *called_back)))
            for name in _OF_POOL
        ),
    )
    with replaced_attributes((*methods, (threading.Thread, "start", _start(threading.Thread.start)))):
        yield
