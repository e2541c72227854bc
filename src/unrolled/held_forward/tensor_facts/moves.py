"""Operations that make each entry of their result of one entry of a tensor: what is known of the entries stays known.

Token ids stay those of their tokens, gates stay gates, logarithms those of their values, numbers of arguments what they
are.
"""

from __future__ import annotations

__all__ = ["CONVERSIONS", "EACH_BY_ITSELF", "JOINS", "MOVES"]

MOVES = frozenset(
    "view view_as reshape reshape_as permute transpose t adjoint squeeze unsqueeze flatten unflatten ravel movedim "
    "expand expand_as broadcast_to repeat repeat_interleave tile flip fliplr flipud roll rot90 narrow narrow_copy "
    "select select_copy index_select gather take take_along_dim masked_select getitem unbind chunk split "
    "split_with_sizes tensor_split hsplit vsplit dsplit unsafe_chunk unsafe_split slice unfold diagonal "
    "linalg_diagonal clone contiguous positive resolve_conj resolve_neg cpu cuda channel_shuffle "
    "pixel_shuffle pixel_unshuffle".split()
)
"""Operations that put entries elsewhere, or copy them."""
JOINS = frozenset("cat stack hstack vstack dstack column_stack row_stack".split())
"""Operations that put the entries of several tensors, given in a list, side by side."""
EACH_BY_ITSELF = frozenset("broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d".split())
"""Operations that re-arrange several tensors, each by itself."""
CONVERSIONS = frozenset("to float double half bfloat16 type type_as".split())
"""Operations that convert entries to another floating-point type; ``to`` and ``type`` may convert to any."""
