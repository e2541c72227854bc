"""What a user asks of an account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from torch import nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.errors import UsageError, kind_of
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.explanation.model_arguments import model_arguments
from unrolled.explanation.targets.wanted import Wanted
from unrolled.explanation.tokens.token_names import Tokens, checked_words

__all__ = ["AccountRequest"]


@dataclass(frozen=True)
class AccountRequest:
    """The arguments of :func:`unrolled.account` that the run of a model needs, validated."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    wanted: Wanted
    of: str | None
    """Path of the submodule whose output is the source of value; None for the arguments."""
    tokens: Tokens
    expansion: Expansion
    share: float
    """p, the part of a gated product that is credited to its content."""
    seed: int | None

    @classmethod
    def checked(
        cls,
        model: nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        model_kwargs: Mapping[str, Any] | None,
        *,
        wanted: Wanted,
        of: str | None,
        tokens: Tokens,
        features: Sequence[str] | None,
        expansion: str | Expansion,
        share: float,
        seed: int | None,
    ) -> AccountRequest:
        """Validate what :func:`unrolled.account` is given, as far as that can be done before the model runs."""
        own = {"tokens": tokens, "target": wanted.target, "against": wanted.against, "features": features}
        given = model_arguments(model, args, kwargs, model_kwargs, own)
        part: object = share
        if not isinstance(part, Real):
            raise UsageError(f"share is {kind_of(share)}; expected a number from 0 to 1")
        if not 0 <= float(part) <= 1:
            raise UsageError(f"share is {float(part):g}; expected a number from 0 to 1")
        chosen, words = resolve(expansion), checked_words(tokens)
        packed = (each.data for each in (*args, *given.values()) if type(each) is PackedSequence)
        if words is not None and any(each.is_floating_point() for each in packed):
            raise UsageError(
                "tokens cannot name the steps of a packed sequence of numbers, whose examples stand in one tensor; "
                "leave tokens out, or let the model pack a padded tensor"
            )
        return cls(args, given, wanted, of, words, chosen, float(part), seed)
