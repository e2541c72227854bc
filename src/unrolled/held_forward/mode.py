"""The mode of a held forward: an operation is met by its rule, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import resolve_name

from unrolled.errors import UnsupportedOperationError
from unrolled.held_forward.graph import without_rule
from unrolled.held_forward.operations.coarsest_type import with_type_of_value
from unrolled.held_forward.operations.hidden_operations import refuse_inference_mode, refuse_transforms
from unrolled.held_forward.operations.operands import carries, detached, for_each_tensor, is_parameter, operands
from unrolled.held_forward.operations.operands_read import OF_FIRST, PRODUCTS_OF_MATRICES, operands_read
from unrolled.held_forward.operations.operation_call import OperationCall
from unrolled.held_forward.operations.operation_names import Operation, name_of, plain_form
from unrolled.held_forward.operations.python_bodies import parameters, python_body
from unrolled.held_forward.operations.python_values import TAKES_OUT, TO_PYTHON
from unrolled.held_forward.operations.rules_by_name import registers
from unrolled.held_forward.outside.handed_over import MeetsOtherThreads
from unrolled.held_forward.outside.other_threads import refused_from_other_threads
from unrolled.held_forward.outside.shared_memory import SharedMemory
from unrolled.held_forward.outside.taken_places import TakenPlaces
from unrolled.held_forward.outside.variables import ReadsVariables
from unrolled.held_forward.results_in_place import WritesInPlace, parts_refused
from unrolled.held_forward.tensor_facts.bias_alone import BiasAlone
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE, Gates
from unrolled.held_forward.tensor_facts.rows import Rows
from unrolled.held_forward.token_ids.numbers_as_ids import TO_INTEGERS
from unrolled.held_forward.token_ids.token_positions import TokenPositions
from unrolled.held_forward.token_ids.token_vectors import TokenVectors

__all__ = ["FOLLOWED", "HeldCall", "HeldForward", "Rule", "followed", "rule"]

Function = Callable[..., Any]


@dataclass(frozen=True)
class HeldCall(OperationCall):
    """One operation as a rule meets it."""

    mode: HeldForward

    @property
    def rows(self) -> Rows:
        """The sources of value of the run."""
        return self.mode.rows

    @property
    def gates(self) -> Gates:
        """The gates of the run."""
        return self.mode.gates

    def held(self) -> Any:
        """Compute the operation on what its operands hold; the result carries no value."""
        with torch.no_grad():
            return self.function(*detached(self.args), **detached(self.kwargs))


Rule = Callable[[HeldCall], Any]
RULES: dict[str, Rule] = {}
FOLLOWED: dict[str, Rule] = {}
"""Rules of operations that are held unless the output reads the model by their results only."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operations by name: ``relu`` stands for ``torch.relu``, ``Tensor.relu_`` and ``F.relu``.

    A rule computes the operation's value by operations of torch that are linear in every operand that carries value;
    whatever else enters is held (detached). Constants that it adds become rows (``call.rows.constant``).

    Args:
        *names: Of the operations.

    Returns:
        The decorator.

    Example:
        >>> from unrolled.held_forward import rule
        >>> @rule("det")  # det(X) = Σ X ⊙ ∂det/∂X / n, of which the derivative is held: it is homogeneous of degree n
        ... def det(call):
        ...     (x,) = call.args
        ...     of_x = torch.func.grad(lambda each: torch.linalg.det(each).sum())(x.detach())
        ...     return (x * of_x).sum(dim=(-2, -1)) / x.shape[-1]
    """
    return registers(RULES)(*names)


followed = registers(FOLLOWED)
"""Register how an operation whose result is held is followed where an output is made of it."""


class HeldForward(MeetsOtherThreads, WritesInPlace, ReadsVariables):
    """A mode under which any computation is linear in what carries value.

    What carries value are the tensors that ask for a gradient: the rows of :class:`Rows`, and what is made of them.

    Args:
        rows: Collects the sources of value, among them constants that are added to value.
        share: p, the part of a gated product that is credited to its content; 1 - p is credited to the gate.
    """

    begins_value: ClassVar[frozenset[str]] = frozenset({"embedding", "embedding_bag"})
    """Operations that make value of what carries none."""

    def __init__(self, rows: Rows, share: float = CONTENT_SHARE) -> None:
        super().__init__()
        self.begin_run(rows.model, rows.first_node)
        self.rows = rows
        self.share = share
        self.positions = TokenPositions()
        """For tensors of token ids: the flat index of each token in the argument it came from."""
        self.vectors = TokenVectors(rows, self.positions)
        """Opens what is made of token ids."""
        self.memory = SharedMemory()
        self.bias_alone = BiasAlone(rows)
        self.gates = Gates(rows)
        self.held_names: list[str] = []
        """The operations whose results were held so far."""
        self.follows: Container[int] = ()
        """The numbers of those of them that are followed."""
        self.followed: list[Any] = []
        """The nodes of the graph that gave the results of these."""
        self.taken: TakenPlaces | None = None
        """Where Python got numbers; None to refuse those that carry value, where nobody asks whether they are read."""
        self.coarsest = torch.float64
        """The type of least precision among those in which value was computed."""

    def meet(self, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Meet one operation."""
        options, operation = dict(kwargs), name_of(func)
        if operation.name == "_set_grad_enabled":
            return None  # torch.no_grad inside a model does not stop value
        if operation.name in _FLAGS and (is_parameter(args[0]) or carries(args[0])):
            return args[0]  # what carries value is not the model's to say
        if operation.name.startswith("get "):
            return func(*args)  # what a tensor is: its shape, its type
        refuse_transforms(operation)
        args, options = refused_from_other_threads(args), refused_from_other_threads(options)
        args, options, given = self._as_met(operation, args, options)
        self.vectors.computed.take_back(given)
        valued = [each for each in given if carries(each)]
        if not valued and operation.name in TAKES_OUT and self.taken is not None:
            self.taken.note_other()
        if not valued and operation.name not in self.begins_value:
            return self._without_value(func, operation, args, options, given)
        if self.positions and (kind := self.vectors.uses_numbers(operation, args, options, given)) is not None:
            args, options = self.vectors.with_numbers(operation, args, options, kind)
        refuse_inference_mode(operation)
        return self._with_value(func, operation, args, options, valued)

    def _with_value(
        self, func: Function, operation: Operation, args: tuple[Any, ...], options: dict[str, Any], valued: list[Tensor]
    ) -> Any:
        """Meet an operation on what carries value, or that makes value: by its rule, else by those that it runs."""
        found, body = RULES.get(operation.name), python_body(func)
        numbers = self.vectors.numbers
        unknown = operation.name in _READ_BY_PYTHON or (found is None and body is None)
        if numbers and unknown and valued and all(each in numbers for each in valued):
            if self.taken is not None:
                self.taken.note_other()
            result = HeldCall(func, operation, args, options, self).held()
            self.rows.mark(result, "held", operation.name)
            return result
        if body is not None and (found is None or operation.name in _OPENED or "inplace" in parameters(body)):
            with self:
                return body(*args, **options)
        if found is None:
            return self._without_rule(func, operation, args, options)
        call = HeldCall(plain_form(func, operation), operation, args, options, self)
        if operation.in_place:
            return self._in_place(found, call)
        result = self._by_rule(found, call)
        if operation.name == "detach":
            self.memory.keep(result)
        elif operation.name in TO_INTEGERS:
            self.vectors.made_of_numbers(args[0], result)
        return result

    def _as_met(
        self, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]:
        """Return the arguments of an operation, with what carries value in place of what does not, and all tensors."""
        if operation.name in OF_FIRST and args and not carries(args[0]):
            args = (args[0], *for_each_tensor(args[1:], torch.empty_like))  # of the second the form is read
            options = for_each_tensor(options, torch.empty_like)
        given = operands((*args, *options.values()))
        if any(self.memory.carrying(each, operation.name) is not each for each in given if not each.requires_grad):
            args, options = (
                for_each_tensor(each, lambda part: self.memory.carrying(part, operation.name))
                for each in (args, options)
            )
            given = operands((*args, *options.values()))
        return args, options, given

    def _by_rule(self, found: Rule, call: HeldCall) -> Any:
        """Compute the plain form of an operation by its rule."""
        if call.operation.reflected:
            call = replace(call, args=(call.args[1], call.args[0], *call.args[2:]))
        return found(call)

    def _in_place(self, found: Rule, call: HeldCall) -> Tensor:
        """Let the first operand become the result of an operation."""
        changed: Tensor = call.args[0]
        before = self.gates.copy(changed)  # autograd keeps factors, which must not change
        if changed in self.vectors.numbers:
            self.vectors.numbers.add(before)
        result = self._by_rule(found, replace(call, args=(before, *call.args[1:])))
        with parts_refused(call.name):
            self._become(changed, result)
        return changed

    def run_operation(self, func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Meet one operation; follow integers that are used as numbers, and remember where value lies in memory."""
        numbers = self.vectors.numbers
        given = operands((*args, *options.values())) if numbers else []
        valued = [each for each in given if carries(each)]
        result = super().run_operation(func, args, options)
        changed = args[0] if result is None and args else result
        self.memory.remember(changed)
        self.coarsest = with_type_of_value(self.coarsest, changed)
        if valued:
            operation = name_of(func)
            numbers.follow(operation, given, valued, result)
            if all(each in numbers for each in valued) and not self.vectors.ids_again(operation, valued, result):
                self.vectors.computed.add(operation, result)
        return result

    def open(self, name: str, value: Tensor, first: int = -1) -> Tensor:
        """Make an argument, or what stands for one, a source of value; its entries are numbered from ``first`` on."""
        opened = self.rows.open("feature", name, value, first)
        self.memory.remember(opened)
        return opened

    def hold(self, call: HeldCall) -> Any:
        """Compute an operation on what its operands hold, and remember its name for the rows."""
        number, name = len(self.held_names), call.name
        self.held_names.append(name)
        if number in self.follows and name in FOLLOWED:
            result = FOLLOWED[name](call)
            self.followed += (each.grad_fn for each in operands((result,)))
            return result
        result = call.held()
        self.rows.mark(result, "held", name, number)
        return result

    def _without_rule(
        self, func: Function, operation: Operation, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Run an operation that has no rule; an output that is made of its result is refused, by its name."""
        message = (
            f"the operation {resolve_name(func) or operation.name} has no rule, so its part of the account is "
            f'unknown; register one with @unrolled.held_forward.rule("{operation.name}"), or explain a part of the '
            "model"
        )
        with torch.no_grad():
            result = None if operation.in_place else func(*detached(args), **detached(options))
        nested = isinstance(result, Tensor) and result.is_nested  # which no graph holds
        if nested or not isinstance(result, Tensor | tuple | list):
            raise UnsupportedOperationError(message)
        return for_each_tensor(result, lambda tensor: without_rule(tensor, message))

    def _without_value(
        self, func: Function, operation: Operation, args: tuple[Any, ...], options: dict[str, Any], given: list[Tensor]
    ) -> Any:
        """Run an operation on what carries no value; token numbers and names of parameters follow the result."""
        options.pop("requires_grad", None)  # what a model makes with it carries no value for that
        if operation.name == "detach" and not isinstance(args[0], torch.nn.Parameter):
            func = _view  # value that is written into the one is in the other
        if self.positions and (kind := self.vectors.uses_numbers(operation, args, options, given)) is not None:
            numbered, named = self.vectors.with_numbers(operation, args, options, kind)
            if any(map(carries, operands((*numbered, *named.values())))):
                with self:
                    return func(*numbered, **named)
        result = func(*args, **options)
        if operation.name in TO_INTEGERS and self.vectors.rounded:
            self.vectors.made_of_numbers(args[0], result)
        if self.positions:
            self.vectors.python_ids.follow(operation, args, result)
            call = OperationCall(func, operation, args, options)
            opened = self.vectors.opened(call, result)
            if opened is not None:
                return opened
            made = self.vectors.computed.how(operation, args, given)
            if self.positions.follow(call, result):
                self.vectors.computed.name_masks(result)
                return result
            if made is not None and self.vectors.computed.follow(made, operation, args, result):
                return result
        inherit = self.rows.inherit_product if operation.name in PRODUCTS_OF_MATRICES else self.rows.inherit
        if operation.writes and given:
            inherit([each for each in (given[0], given[0]._base) if each is not None], given)
        elif isinstance(result, Tensor | tuple | list) and given:
            bias = self.bias_alone.of(operation, args, options, given, result)
            inherit(result, operands_read(operation, given) if bias is None else [bias])
            if bias is not None and isinstance(result, Tensor):
                return self.rows.constant(result)
        return result


_FLAGS = frozenset({"requires_grad", "set requires_grad"})
"""Operations by which a model says what autograd follows."""
_OPENED = frozenset(
    "embedding embedding_bag batch_norm instance_norm mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div margin_ranking_loss hinge_embedding_loss cosine_embedding_loss "
    "triplet_margin_loss multi_margin_loss soft_margin_loss poisson_nll_loss ctc_loss conv_tbc".split()
)
"""Python functions whose arguments stand in another order than those of the operation of the same name."""
_READ_BY_PYTHON = TO_PYTHON | {"__bool__", "is_nonzero"}
"""Operations that give Python numbers, or answers about them."""


def _view(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor) if tensor.layout == torch.strided else tensor
