"""Refuse a model that gives another output at each call, by the name of the operation that draws.

A model is run twice. Where the target, or what the recurrent network received and returned, differs between the runs,
an account would be of an output that no call gives again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from unrolled.errors import ParityError, RandomOperationError
from unrolled.held_forward.operations.operation_mode import OperationMode
from unrolled.model_runs.nested_tensors import tensors_in
from unrolled.model_runs.random_generators import RandomGenerators
from unrolled.user_models.all_modules import all_modules, all_parameters
from unrolled.user_models.this_thread import in_this_thread

__all__ = ["TwoRuns", "agree"]

_RUN_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 0.02, torch.float16: 4e-3}
"""How far two runs of one computation may differ, relative to its largest number: the order of a kernel's sums.

It is closer than :data:`unrolled.decomposition.opening.parity.PARITY`: both runs are the model's own.
"""


class TwoRuns:
    """Two runs of a model on the same arguments, which must give the same.

    Args:
        model: The model.
        modules: Those of its modules whose inputs and results are compared as well.
        run: Runs it on the same arguments.
        generators: Those that it may draw from, as they were before its first run.
        seeded: Whether every run starts them from a seed; None where no call takes a seed.
    """

    def __init__(
        self,
        model: nn.Module,
        modules: Iterable[nn.Module],
        run: Callable[[], Any],
        generators: RandomGenerators,
        seeded: bool | None,
    ) -> None:
        self.model, self.modules, self.generators, self.seeded = model, tuple(modules), generators, seeded
        self._run = run
        self._first: list[Tensor] = []
        self._held = frozenset(all_parameters(model))

    def run(self) -> Any:
        """Run the model once more."""
        with torch.no_grad():
            return self._run()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Observe the first run; states that cannot be recomputed may have been drawn at random."""
        try:
            with _observed(self.modules) as self._first:
                yield
        except ParityError:
            self.second(Tensor(), lambda _: Tensor())
            raise

    def second(self, expected: Tensor, select: Callable[[Any], Tensor]) -> tuple[str, ...]:
        """Run the model again, and compare.

        Args:
            expected: The target of the first run.
            select: Selects the target from the model's output.

        Returns:
            A note where the model draws random numbers that did not change the target; none where a seed fixes them.

        Raises:
            RandomOperationError: If the runs differ; the message names what draws.
        """
        with _observed(self.modules) as again:
            output = self.run()
        if not agree((expected, *self._first), (select(output), *again)):
            raise self._error(select)
        if self.seeded or not self.draws:
            return ()
        drawn = self._sources(select)
        self.generators.repeat()
        if not drawn:  # another thread drew
            return ()
        return (f"the model draws random numbers ({_listed(drawn)}), though two runs gave the same output",)

    @contextmanager
    def replayed(self, expected: Tensor, select: Callable[[Any], Tensor]) -> Iterator[None]:
        """Let a run with the states of the first be the second; only where it differs the model runs once more."""
        with _observed(self.modules) as again:
            yield
        if not agree(self._first, [each.detach() for each in again]):
            self.second(expected, select)

    @contextmanager
    def named_draws(self) -> Iterator[None]:
        """Refuse a model that draws random numbers where a run could not repeat another."""
        try:
            yield
        except ParityError:
            if self.draws and not self.seeded:
                raise self._error(lambda _: Tensor()) from None
            raise

    @property
    def draws(self) -> bool:
        """Whether a run so far drew random numbers."""
        return bool(self.generators.moved())

    def drew_nothing(self, notes: tuple[str, ...]) -> bool:
        """Tell whether the model gave its output without drawing; ``notes`` are those of :meth:`second`, if it ran."""
        return not (notes or (self.seeded and self.draws))

    def _error(self, select: Callable[[Any], Tensor]) -> RandomOperationError:
        """Return the error for runs that differ."""
        if self.seeded:
            return RandomOperationError(
                "the model gives another output at each call, although seed= starts all generators anew: it draws from "
                "a source that no seed sets (the time, os.urandom), or keeps a state outside its modules; make it "
                "deterministic"
            )
        drawn = self._sources(select)
        one_draw = ", or pass seed=0, which calls torch.manual_seed(0) before each run, to explain one draw"
        seed = "" if self.seeded is None else one_draw
        made = [name for name in all_parameters(self.model) if name not in self._held]
        if made:  # a model that makes them in every call is not helped by one before
            return RandomOperationError(
                f"the model makes {_listed(made)} in its first call, of random numbers; call the model once before"
                f"{seed}"
            )
        cause = f"{_listed(drawn)} draws random numbers" if drawn else "it draws random numbers or keeps a state"
        return RandomOperationError(
            f"the model gives another output at each call in evaluation mode: {cause}; switch that off when "
            f"self.training is false{seed}"
        )

    def _sources(self, select: Callable[[Any], Tensor]) -> list[str]:
        """Name the operations and the generators from which a third run draws."""
        others = [name for name in self.generators.moved() if name not in ("torch", "torch.cuda")]
        return [*_random_operations(lambda: select(self.run()), self.model), *others]


@contextmanager
def _observed(modules: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect the tensors that modules receive and return."""
    found: list[Tensor] = []

    def collect(_: nn.Module, given: Any, named: Any, result: Any) -> None:
        found.extend(tensors_in((given, named, result)))

    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_hook(in_this_thread(collect), with_kwargs=True))
        yield found


def agree(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Tell whether two runs gave the same tensors, up to rounding."""
    return len(one) == len(other) and all(map(_close, one, other))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _close(one: Tensor, other: Tensor) -> bool:
    one, other = one.detach(), other.detach()  # a held run may have written value into a buffer
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point() or not one.numel():
        return torch.equal(one, other)
    finite = torch.isfinite(one)
    size = float(torch.where(finite, one, torch.zeros_like(one)).abs().max())
    return torch.allclose(one, other, rtol=0, atol=_RUN_TOLERANCE[one.dtype] * size, equal_nan=True)


class _Names(OperationMode):
    """Knows the function of torch that is being called, as the user wrote it."""

    def __init__(self) -> None:
        super().__init__()
        self.current = ""

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        before, self.current = self.current, getattr(func, "__name__", "")
        share = options.get("p", args[1] if len(args) > 1 else None)
        if "dropout" in self.current and isinstance(share, float):
            self.current += f" of {share:g}"
        try:
            return super().run_operation(func, args, options)
        finally:
            self.current = before


class _Draws(TorchDispatchMode):
    """Collects the operations that draw random numbers, with the module that calls each."""

    def __init__(self, names: _Names) -> None:
        super().__init__()
        self.names = names
        self.path, self.found = [""], list[str]()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Tell torch not to load its compiler for this mode, which takes seconds before anything is said."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            name = self.names.current or func.overloadpacket.__name__
            place = f" in {self.path[-1]}" if self.path[-1] else ""
            self.found.append(name.strip("_") + place)
        return func(*args, **(kwargs or {}))


def _random_operations(run: Callable[[], object], model: nn.Module) -> list[str]:
    """Run a model once more and name the operations that draw, each once."""
    names = _Names()
    draws = _Draws(names)
    with ExitStack() as hooks:
        for path, module in all_modules(model).items():

            def enter(_: nn.Module, __: Any, path: str = path) -> None:
                draws.path.append(path)

            def leave(*_: Any) -> None:
                draws.path.pop()

            hooks.enter_context(module.register_forward_pre_hook(in_this_thread(enter)))
            hooks.enter_context(module.register_forward_hook(in_this_thread(leave)))
        with names, draws, torch.no_grad():
            run()
    return list(dict.fromkeys(draws.found))
