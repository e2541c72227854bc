"""Which token of which argument a recurrent network reads at each position.

The model runs once more, up to its recurrent network. Ids are followed through the operations that move them, until
they are looked up; from there the gradient tells at which position a vector is read. Weighed by the numbers of the
positions, it is that number times the plain gradient. A vector that several positions read has no such number: what
mixes tokens has no order of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.weak import WeakTensorKeyDictionary

from unrolled.cells.batch_layout import read_batch
from unrolled.decomposition.nested_tensors import items_of, with_items
from unrolled.decomposition.open_network import Network
from unrolled.explanation.tokens.network_reached import NetworkReached, reach
from unrolled.explanation.tokens.vectors_read import where_read
from unrolled.held_forward.moves import CONVERSIONS
from unrolled.held_forward.operation_names import name_of
from unrolled.held_forward.replaced_attributes import replaced_attributes
from unrolled.held_forward.token_positions import TokenPositions
from unrolled.held_forward.variables import ReadsVariables

__all__ = [
    "Lists",
    "Member",
    "TokenSource",
    "Trace",
    "Tracer",
    "Traces",
    "are_mixed",
    "are_of_all_steps",
    "name_steps",
    "order_of_likelihood",
    "reached_sources",
    "steps_read",
    "trace_of",
    "trace_tokens",
]

LOOKUPS = frozenset({"embedding", "index_select", "getitem"})


Lists = tuple[tuple[tuple[int, ...], ...], ...]
"""Numbers by sequence and position: several where one position reads several tokens side by side."""
Step = tuple[tuple[int, int], ...]
"""The tokens that a step reads side by side: the place of each in its argument, and its id."""
Steps = tuple[tuple[Step, ...], ...]
"""By sequence and position."""


@dataclass(frozen=True)
class Trace:
    """The tokens of one argument that a network read, by sequence and position."""

    ids: Lists | None
    """The ids that were looked up; None for an argument of vectors."""
    places: Lists
    """The flat indices in the argument; -1 for what the model put in itself."""
    given: Tensor
    """The argument's ids; of an argument of vectors, 0 where a vector is zero and 1 elsewhere."""
    padding: int
    """The id of padding."""
    vectors: int = -1
    """Of an argument of vectors, its number among those; -1 for an argument of ids."""


@dataclass(frozen=True)
class Traces:
    """The traces of all arguments that every position reads a token of, the likeliest text first."""

    found: tuple[Trace, ...]
    looked_up: bool
    """Whether ids of the arguments were looked up that may name the steps."""
    mixed: bool = False
    """Whether tokens or vectors are read, and none of them by one position alone."""


@dataclass(frozen=True)
class TokenSource:
    """Vectors that were looked up, or an argument of vectors."""

    leaf: Tensor
    """Shape (*rows, features)."""
    ids: Tensor | None
    places: Tensor
    argument: Tensor
    padding: int = 0
    vectors: int = -1
    table: int = -1
    """Names the table of a lookup."""

    @property
    def is_followed(self) -> bool:
        """Whether ids are known to be those of an argument."""
        return self.ids is None or self.argument.numel() > 0


Member = tuple[TokenSource, Tensor | None]
"""A source, and where it is read, as :func:`where_read` says it."""


class Tracer(ReadsVariables):
    """Makes leaves of the vectors of tokens, and follows their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = TokenPositions()
        self.arguments: list[tuple[int, Tensor]] = []
        """The number of the first token of each argument of ids."""
        self.sources: list[TokenSource] = []
        self.looked_up = False
        """Whether ids were looked up, be it that they could be followed or not."""
        self.lost = False
        """Whether some of them could not be followed."""
        self._one_hot: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        self._count = self._vectors = 0

    def open(self, value: Any) -> Any:
        """Return an argument as the model receives it."""
        if type(value) is PackedSequence:
            return value._replace(data=self.open(value.data))
        if not isinstance(value, Tensor):
            items = items_of(value)
            return value if items is None else with_items(value, {key: self.open(each) for key, each in items.items()})
        copy = value.detach().clone()
        if copy.is_floating_point():
            if copy.dim() < 2:
                return copy
            leaf = copy.requires_grad_()
            used = (leaf.detach() != 0).any(dim=-1).long()
            places, number = torch.arange(used.numel(), device="cpu").view(used.shape), self._vectors
            self.sources.append(TokenSource(leaf, None, places, used, vectors=number))
            self._vectors += 1
            return leaf.clone()
        if copy.dtype != torch.bool and not copy.is_complex():
            self.positions[copy] = torch.arange(copy.numel(), device=copy.device).view(copy.shape) + self._count
            self.arguments.append((self._count, copy.clone()))
            self._count += copy.numel()
        return copy

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation, and make leaves of vectors that it looks up."""
        options = kwargs or {}
        operation = name_of(func)
        result = func(*args, **options)
        if not isinstance(result, Tensor):
            self.positions.follow(func, operation, args, options, result)
            return result
        if operation.name == "one_hot":
            self._one_hot[result] = args[0]
            return result
        if result.is_floating_point():
            ids = self._looked_up(operation.name, args)
            if ids is not None:
                third = args[2] if operation.name == "embedding" and len(args) > 2 else None
                return self.leaf(result, ids, options.get("padding_idx", third), table_of(args, ids))
            return result
        if args and isinstance(args[0], Tensor) and args[0] in self._one_hot and result.shape == args[0].shape:
            self._one_hot[result] = self._one_hot[args[0]]
        if result.dtype != torch.bool:  # an id that stands for another one has the name of its own
            self.positions.follow(func, operation, args, options, result)
        return result

    def _looked_up(self, name: str, args: tuple[Any, ...]) -> Tensor | None:
        """The ids of a lookup; None for any other operation."""
        if name in CONVERSIONS:
            return self._one_hot.get(args[0])
        if name not in LOOKUPS or len(args) < 2:
            return None
        if name == "index_select":
            args = (args[0], args[2])
        table = next((each for each in args[:2] if isinstance(each, nn.Parameter)), None)
        ids = next((each for each in args[:2] if isinstance(each, Tensor) and each is not table), None)
        if table is None and name != "embedding":
            return None
        return ids if ids is not None and not ids.is_floating_point() and ids.dtype != torch.bool else None

    def leaf(self, result: Tensor, ids: Tensor, padding: int | None, table: int) -> Tensor:
        """Make a leaf of vectors; ids that are those of no argument, or were not followed, are of none."""
        self.looked_up = bool(self.arguments)
        places = self.positions.get(ids)
        if places is None or not bool((places >= 0).any()):
            self.lost = self.lost or self.looked_up
            nowhere = torch.full_like(ids, -1, dtype=torch.int64)
            return self.opened(result, ids, nowhere, ids.new_zeros(0), 0, table)
        highest = int(places.max())
        first, argument = next((n, each) for n, each in reversed(self.arguments) if n <= highest)
        inside = (places >= first) & (places < first + argument.numel())
        places = torch.where(inside, places - first, -1)
        number = 0 if padding is None or padding < 0 else padding
        return self.opened(result, ids, places, argument, number, table)

    def opened(self, result: Tensor, ids: Tensor, places: Tensor, argument: Tensor, padding: int, table: int) -> Tensor:
        """Make vectors a source."""
        leaf = result.detach().requires_grad_()
        self.sources.append(TokenSource(leaf, ids.detach().clone(), places, argument, padding, table=table))
        with torch.enable_grad():
            return leaf.clone()


def table_of(args: Sequence[Any], ids: Tensor) -> int:
    """Return a number that names the table of a lookup."""
    return next((each.data_ptr() for each in args if isinstance(each, Tensor) and each is not ids), -1)


def trace_tokens(model: nn.Module, rnn: Network, args: tuple[object, ...], kwargs: dict[str, object]) -> Traces:
    """Trace the tokens of the arguments to the positions of a recurrent network."""
    tracer = Tracer()
    given, named = tracer.open(args), tracer.open(kwargs)
    try:
        with replaced_attributes([(rnn, "forward", reach)]), torch.enable_grad(), tracer:
            model(*given, **named)
    except NetworkReached as reached:
        inputs, lengths = reached.inputs, reached.lengths
    except Exception:  # a model that refuses to be followed has no traces, and is explained all the same
        return Traces((), tracer.looked_up)
    else:
        return Traces((), False)
    with torch.enable_grad():
        read, layout = read_batch(inputs, rnn.input_size, rnn.batch_first, lengths)
    # of one source, where_read says as well whether it is read: that saves a gradient
    sources = tracer.sources if len(tracer.sources) == 1 else reached_sources(read, tracer.sources)
    looked_up = tracer.lost or name_steps([each for each in sources if each.is_followed], layout.inside)
    members = list(zip(sources, where_read([each.leaf for each in sources], read, layout.inside), strict=True))
    found = [_trace(place, members, layout.inside) for place, each in enumerate(sources) if each.is_followed]
    known = [trace for trace in found if trace is not None]
    if known and all(trace is None or are_of_all_steps(trace) for trace in found):  # nothing names a step
        return Traces((), len(known) < len(found))
    traces = [trace for trace in known if not are_mixed(trace, found) and not are_of_all_steps(trace)]
    traces.sort(key=order_of_likelihood)
    return Traces(tuple(traces), looked_up)


def reached_sources(read: Tensor, sources: Sequence[TokenSource]) -> list[TokenSource]:
    """Leave out the sources that a network does not read; without a gradient all may be read."""
    if not sources or not read.requires_grad:
        return list(sources)
    found = torch.autograd.grad(read.sum(), [each.leaf for each in sources], allow_unused=True, retain_graph=True)
    return [source for source, gradient in zip(sources, found, strict=True) if gradient is not None]


def name_steps(sources: Sequence[TokenSource], inside: Tensor) -> bool:
    """Whether ids may name the steps; fewer ids than steps describe the sequences, as the number of a series does."""
    return sum(source.ids.numel() for source in sources if source.ids is not None) >= int(inside.sum())


def order_of_likelihood(trace: Trace) -> int:
    """Put ids before vectors, and ids of words before those of a mask or of segments."""
    if trace.ids is None:
        return 2
    return int(trace.given.numel() > 0 and int(trace.given.max()) <= 1)


def are_mixed(trace: Trace, found: Sequence[Trace | None]) -> bool:
    """Whether a position also reads other tokens of the same argument."""
    return any(other is not None and other.given is trace.given and other.places != trace.places for other in found)


def are_of_all_steps(trace: Trace) -> bool:
    """Whether every step reads the same places, which then describe the sequence and name no step."""
    return any(len(each) > 1 and all(places == each[0] for places in each) for each in trace.places)


def _trace(number: int, members: Sequence[Member], inside: Tensor) -> Trace | None:
    """Turn the positions of vectors into the vectors of positions; None if a position has none.

    A position may read an id of the model's own by the same table, or vectors that are none of ids.
    """
    source, _ = members[number]
    steps = steps_read(inside, [members[number]])
    if steps is None or all(step for each in steps for step in each):
        return None if steps is None else trace_of(source, steps)
    others = [(each, where) for k, (each, where) in enumerate(members) if k != number and each.ids is not None]
    own = steps_read(inside, [(each, w) for each, w in others if not each.is_followed and each.table == source.table])
    rest = steps_read(inside, [(each, w) for each, w in others if each.is_followed or each.table != source.table])
    if source.ids is None or own is None or rest is None:
        return None
    whole = tuple(tuple(a or b for a, b in zip(*each, strict=True)) for each in zip(steps, own, strict=True))
    beside = (a or not b for each in zip(whole, rest, strict=True) for a, b in zip(*each, strict=True))
    return trace_of(source, whole) if all(beside) else None


def trace_of(source: TokenSource, steps: Steps) -> Trace:
    """Name what the steps read by the argument of a source."""
    ids = None if source.ids is None else tuple(tuple(tuple(i for _, i in step) for step in each) for each in steps)
    places = tuple(tuple(tuple(place for place, _ in step) for step in each) for each in steps)
    return Trace(ids, places, source.argument, source.padding, source.vectors)


def steps_read(inside: Tensor, members: Sequence[Member]) -> Steps | None:
    """List what the steps of each sequence read of some sources; None if a step reads a mixture."""
    time, batch = inside.shape
    found: list[list[list[tuple[int, int]]]] = [[[] for _ in range(time)] for _ in range(batch)]
    for source, where in members:
        if where is None:
            return None
        ids = source.places if source.ids is None else source.ids
        listed = zip(
            where.reshape(-1).tolist(), source.places.reshape(-1).tolist(), ids.reshape(-1).tolist(), strict=True
        )
        for position, place, number in listed:
            if position >= 0:
                t, b = divmod(position, batch)
                found[b][t].append((place, number))
    return tuple(
        tuple(tuple(step) for step, belongs in zip(each, own, strict=True) if belongs)
        for each, own in zip(found, inside.T.tolist(), strict=True)
    )
