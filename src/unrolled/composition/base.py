"""Base classes of encoders: from token vectors to one context vector at every position.

A composition encoder defines the n-grams v_{i:t} and the context: the longest n-gram v_{1:t} alone, or the sum of all
n-grams that end at t. :meth:`CompositionEncoder.ngrams` gives the table of n-grams, ``forward`` the contexts, in the
shapes of torch.nn's recurrent networks.

Source:
    Implicit n-grams, table 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.base import checked_size
from unrolled.cells.batch_layout import Layout, Lengths, read_batch
from unrolled.errors import UsageError

__all__ = ["BidirectionalEncoder", "CompositionEncoder", "Encoder", "RecursiveEncoder"]


class Encoder(nn.Module, ABC):
    """A network that reads a sequence of vectors and gives a context at every position.

    Args:
        input_size: Number of features of each token vector (e in the equations).
        output_size: Number of features of each context.
        batch_first: Whether padded inputs and outputs are (batch, time, …) and not (time, batch, …).

    Raises:
        UsageError: A size is not a positive integer.
    """

    name: ClassVar[str]

    def __init__(self, input_size: int, output_size: int, batch_first: bool = True) -> None:
        super().__init__()
        self.input_size = checked_size("input_size", input_size)
        self.output_size = checked_size("hidden_size", output_size)
        self.batch_first = batch_first

    def initialise(self, embedding: nn.Embedding) -> None:
        """Initialise the token vectors so that this encoder can learn; most encoders leave them unchanged."""

    @abstractmethod
    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts of a batch.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input), zero at padding.
            layout: The lengths of the sequences.

        Returns:
            The contexts, shape (time, batch, size), with any values at padding; and one vector per sequence, shape
            (batch, size).
        """

    def forward(
        self,
        input: Tensor | PackedSequence,  # torch.nn's own name
        lengths: Lengths = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Encode a batch of sequences.

        Args:
            input: (batch, time, input), (time, batch, input) unless ``batch_first``, (time, input), or packed.
            lengths: Lengths of the sequences in a padded batch, in any order; the full time when omitted.

        Returns:
            The contexts in the form of the input, zero at padding; and one vector per sequence in the shape of the
            final state of a one-layer network, (1, batch, size).

        Raises:
            ShapeError: The input or the lengths have another shape.
            UsageError: A length is out of range.
        """
        inputs, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        contexts, final = self.encode(inputs, layout)
        return layout.restore(contexts), final if layout.unbatched else final[None]

    def extra_repr(self) -> str:
        """Show the sizes as torch.nn does."""
        return f"{self.input_size}, {self.output_size}"


class CompositionEncoder(Encoder):
    """An encoder whose contexts are built from n-grams that it can show; arguments as in :class:`Encoder`."""

    @abstractmethod
    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram of x_1 … x_T, shape (time, batch, input).

        Returns v_{i:t}, shape (end, start, batch, size), zero where the n-gram does not exist.
        """

    @abstractmethod
    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute the context at every position of x_1 … x_T, shape (time, batch, size)."""

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts; the vector of a sequence is the context at its end."""
        contexts = self.contexts(inputs)
        return contexts, layout.last(contexts)

    def ngrams(self, input: Tensor | PackedSequence, lengths: Lengths = None) -> Tensor:
        """Compute the representation of every n-gram in a batch of sequences.

        Args:
            input: As for ``forward``.
            lengths: Lengths of the sequences in a padded batch.

        Returns:
            v_{i:t}, shape (batch, end, start, size), or (end, start, size) for an unbatched sequence; zero where the
            start is after the end, the end is padding, or the model has no n-gram of that length.
        """
        inputs, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        table = self.table(inputs)
        if layout.ragged:
            table = torch.where(layout.inside[:, None, :, None], table, torch.zeros_like(table))
        table = table.permute(2, 0, 1, 3)
        return table[0] if layout.unbatched else table


class RecursiveEncoder(CompositionEncoder):
    """A model that computes v_{i:t} from v_{i:t-1} and x_t; arguments as in :class:`Encoder`."""

    context: ClassVar[Literal["longest", "sum"]]
    """The context: v_{1:t} alone, or the sum of all v_{i:t}. The sum requires :meth:`extend` to be linear."""

    @abstractmethod
    def token_terms(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute everything that depends on single tokens, each tensor of shape (time, batch, …)."""

    @abstractmethod
    def unigram(self, token: tuple[Tensor, ...]) -> Tensor:
        """Compute v_{t:t}, shape (batch, state), from the token terms of one position."""

    @abstractmethod
    def extend(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Compute v_{i:t} from the v_{i:t-1}, shape (count, batch, state), and the token terms of position t."""

    def output(self, states: Tensor) -> Tensor:
        """Select the representation, shape (…, size), from the states of n-grams, shape (…, state)."""
        return states

    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram: at each position, extend those that end before it and add its unigram."""
        terms = self.token_terms(inputs)
        time = len(inputs)
        ngrams, rows = None, []
        for t in range(time):
            token = tuple(values[t] for values in terms)
            unigram = self.unigram(token)[None]
            ngrams = unigram if ngrams is None else torch.cat((self.extend(ngrams, token), unigram))
            output = self.output(ngrams)
            rows.append(torch.cat((output, output.new_zeros(time - 1 - t, *output.shape[1:]))))
        return torch.stack(rows)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute the contexts by the plain recursion; subclasses override it with something faster."""
        terms = self.token_terms(inputs)
        current, states = None, []
        for t in range(len(inputs)):
            token = tuple(values[t] for values in terms)
            if current is None:
                current = self.unigram(token)
            else:
                extended = self.extend(current[None], token)[0]
                current = extended + self.unigram(token) if self.context == "sum" else extended
            states.append(current)
        return self.output(torch.stack(states))


class BidirectionalEncoder(nn.Module):
    """Concatenate the contexts of both directions, as a bidirectional network of torch.nn does.

    The backward encoder starts at the last token of each sequence, not at its padding.

    Args:
        ahead: The encoder that reads from the first token to the last.
        back: The encoder that reads from the last token to the first. It has the sizes and the ``batch_first`` of
            ``ahead``.

    Raises:
        UsageError: The two encoders have different sizes or a different ``batch_first``.

    Example:
        >>> import torch
        >>> from unrolled.composition.matrix_vector import MVMAGEncoder
        >>> encoder = BidirectionalEncoder(MVMAGEncoder(8, 16), MVMAGEncoder(8, 16))
        >>> contexts, final = encoder(torch.randn(3, 5, 8), lengths=[5, 2, 4])
        >>> contexts.shape, final.shape
        (torch.Size([3, 5, 32]), torch.Size([2, 3, 16]))
    """

    def __init__(self, ahead: Encoder, back: Encoder) -> None:
        super().__init__()
        sizes = [(each.input_size, each.output_size, each.batch_first) for each in (ahead, back)]
        if sizes[0] != sizes[1]:
            raise UsageError(
                f"the two encoders differ in (input size, output size, batch_first): {sizes[0]} and {sizes[1]}; "
                "expected the same"
            )
        self.ahead = ahead
        self.back = back
        self.input_size = ahead.input_size
        self.output_size = 2 * ahead.output_size
        self.batch_first = ahead.batch_first

    def forward(
        self,
        input: Tensor | PackedSequence,  # torch.nn's own name
        lengths: Lengths = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Encode a batch of sequences in both directions.

        Args:
            input: As for an encoder.
            lengths: Lengths of the sequences in a padded batch, in any order.

        Returns:
            The contexts in the form of the input, forward features before backward ones; and one vector per sequence
            and direction, shape (2, batch, size).
        """
        inputs, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        contexts, last = self.ahead.encode(inputs, layout)
        reversed_, first = self.back.encode(layout.reverse(inputs), layout)
        final = torch.stack((last, first))
        both = torch.cat((contexts, layout.reverse(reversed_)), dim=-1)
        return layout.restore(both), final[:, 0] if layout.unbatched else final
