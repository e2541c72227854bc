r"""An encoder: from token vectors to one context vector at every position.

A composition encoder says what an n-gram is, v_{i:t}, and what a context is made of: the longest n-gram v_{1:t}
alone, or the sum of all that end at t. Both are methods: :meth:`CompositionEncoder.ngrams` gives the table,
``forward`` the contexts, in the shapes of torch.nn's recurrent networks.

Source:
    Implicit n-grams, table 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.batch_layout import Layout, Lengths, read_batch
from unrolled.sizes import checked_size

__all__ = ["CompositionEncoder", "Encoder", "GrowingEncoder"]


class Encoder(nn.Module, ABC):
    """What reads a sequence of vectors and gives a context at every position.

    Args:
        input_size: e, the length of a token's vector.
        output_size: the length of a context.
        batch_first: whether padded inputs and outputs are (batch, time, …).

    Raises:
        UsageError: when a size is not a positive integer.
    """

    name: ClassVar[str]

    def __init__(self, input_size: int, output_size: int, batch_first: bool = True) -> None:
        super().__init__()
        self.input_size = checked_size("input_size", input_size)
        self.output_size = checked_size("hidden_size", output_size)
        self.batch_first = batch_first

    def initialise(self, embedding: nn.Embedding) -> None:
        """Let the tokens' vectors begin where this encoder can learn; they are left as they are, by most.

        Args:
            embedding: what gives the tokens' vectors.
        """

    @abstractmethod
    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts of a batch.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input), zero where there is padding.
            layout: how long the sequences are.

        Returns:
            The contexts, shape (time, batch, size), whatever at padding; and one vector a sequence, shape
            (batch, size).
        """

    def forward(
        self,
        input: Tensor | PackedSequence,  # torch.nn's own name
        lengths: Lengths = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Read a batch of sequences.

        Args:
            input: (batch, time, input), (time, batch, input) unless ``batch_first``, (time, input), or packed.
            lengths: of the sequences in a padded batch, in any order.

        Returns:
            The contexts in the form of the input, zero beyond a sequence's end; and one vector a sequence, as
            a network of one layer gives its final state, shape (1, batch, size).

        Raises:
            ShapeError: when the input or the lengths have another shape.
            UsageError: when a length is out of range.
        """
        inputs, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        contexts, final = self.encode(inputs, layout)
        return layout.restore(contexts), final if layout.unbatched else final[None]

    def extra_repr(self) -> str:
        """Say the sizes as torch.nn does."""
        return f"{self.input_size}, {self.output_size}"


class CompositionEncoder(Encoder):
    """An encoder whose contexts are made of n-grams, which it can show.

    Args:
        input_size: e.
        output_size: the length of an n-gram's and a context's vector.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    @abstractmethod
    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).

        Returns:
            v_{i:t}, shape (end, start, batch, size), zero where there is no such n-gram.
        """

    @abstractmethod
    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute the context at every position.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).

        Returns:
            Shape (time, batch, size).
        """

    def encode(self, inputs: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Compute the contexts; a sequence's own is the one at its end."""
        contexts = self.contexts(inputs)
        return contexts, layout.last(contexts)

    def ngrams(self, input: Tensor | PackedSequence, lengths: Lengths = None) -> Tensor:
        """Give the representation of every n-gram in a batch of sequences.

        Args:
            input: as ``forward`` takes it.
            lengths: of the sequences in a padded batch.

        Returns:
            v_{i:t}, shape (batch, end, start, size), or (end, start, size) of an unbatched sequence; zero
            where the start is behind the end, the end is padding, or the model has no n-gram of that length.
        """
        inputs, layout = read_batch(input, self.input_size, self.batch_first, lengths)
        table = self.table(inputs)
        if layout.ragged:
            table = torch.where(layout.inside[:, None, :, None], table, torch.zeros_like(table))
        table = table.permute(2, 0, 1, 3)
        return table[0] if layout.unbatched else table


class GrowingEncoder(CompositionEncoder):
    """A model whose n-grams grow at their end, one token at a time.

    Args:
        input_size: e.
        output_size: the length of an n-gram's and a context's vector.
        batch_first: whether padded inputs and outputs are (batch, time, …).
    """

    context: ClassVar[Literal["longest", "sum"]]
    """What a context is: v_{1:t} alone, or the sum of all v_{i:t}, where growing is linear."""

    @abstractmethod
    def tokens(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Compute all that depends on single tokens.

        Args:
            inputs: x_1 … x_T, shape (time, batch, input).

        Returns:
            Each of shape (time, batch, …).
        """

    @abstractmethod
    def begin(self, token: tuple[Tensor, ...]) -> Tensor:
        """Give the unigram v_{t:t}.

        Args:
            token: what :meth:`tokens` gave, for one position, each (batch, …).

        Returns:
            Shape (batch, state).
        """

    @abstractmethod
    def grow(self, ngrams: Tensor, token: tuple[Tensor, ...]) -> Tensor:
        """Give v_{i:t} of v_{i:t-1}.

        Args:
            ngrams: n-grams that end at t-1, shape (count, batch, state).
            token: what :meth:`tokens` gave for t, each (batch, …).

        Returns:
            The n-grams with x_t at their end, the same shape.
        """

    def shown(self, states: Tensor) -> Tensor:
        """Pick what of an n-gram's state is its representation; all of it, for most.

        Args:
            states: shape (…, state).

        Returns:
            Shape (…, size).
        """
        return states

    def table(self, inputs: Tensor) -> Tensor:
        """Compute every n-gram: those that end at t-1 grow, and one begins."""
        tokens = self.tokens(inputs)
        time = len(inputs)
        ngrams, rows = None, []
        for t in range(time):
            token = tuple(values[t] for values in tokens)
            fresh = self.begin(token)[None]
            ngrams = fresh if ngrams is None else torch.cat((self.grow(ngrams, token), fresh))
            shown = self.shown(ngrams)
            rows.append(torch.cat((shown, shown.new_zeros(time - 1 - t, *shown.shape[1:]))))
        return torch.stack(rows)

    def contexts(self, inputs: Tensor) -> Tensor:
        """Compute the context at every position: one n-gram, or the sum of all, is grown along."""
        tokens = self.tokens(inputs)
        current, all_ = None, []
        for t in range(len(inputs)):
            token = tuple(values[t] for values in tokens)
            if current is None:
                current = self.begin(token)
            else:
                grown = self.grow(current[None], token)[0]
                current = grown + self.begin(token) if self.context == "sum" else grown
            all_.append(current)
        return self.shown(torch.stack(all_))
