"""Two encoders over the same tokens, one in each direction."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.cells.batch_layout import Lengths, read_batch
from unrolled.composition.base import Encoder
from unrolled.errors import UsageError

__all__ = ["BidirectionalEncoder"]


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
