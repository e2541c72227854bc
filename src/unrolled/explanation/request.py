"""What a user asks of an explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from unrolled.decomposition.arguments import checked_order, refuse_devices_without_float64
from unrolled.errors import UnknownNameError, UsageError
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.explanation.model_arguments import model_arguments, named_arguments, names_of_places
from unrolled.explanation.networks.find_network import NamedNetworks
from unrolled.explanation.targets.wanted import Wanted
from unrolled.explanation.tokens.sequence_names import Words
from unrolled.explanation.tokens.token_names import checked_words
from unrolled.whole_number import whole_number

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`unrolled.explain`, validated."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    wanted: Wanted
    tokens: Words
    features: Sequence[str] | None
    """Names of the numbers of a step."""
    expansion: Expansion
    max_order: int | None
    readout: str
    rnn: NamedNetworks
    call: int | None
    seed: int | None
    several: bool
    """Whether the output may have several examples."""
    argument_names: Mapping[str, str]
    """What the model's forward calls its positional arguments, by their places."""

    @classmethod
    def checked(
        cls,
        model: nn.Module,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        model_kwargs: Mapping[str, object] | None,
        *,
        wanted: Wanted,
        tokens: Words,
        features: Sequence[str] | None,
        expansion: str | Expansion,
        readout: str,
        rnn: NamedNetworks,
        call: int | None,
        seed: int | None,
        max_order: int | None,
        several: bool,
    ) -> Request:
        """Validate what :func:`unrolled.explain` is given, as far as that can be done before the model runs."""
        own = {"tokens": tokens, "target": wanted.target, "features": features}
        given = model_arguments(model, args, kwargs, model_kwargs, own)
        refuse_devices_without_float64({**dict(model.named_parameters()), **named_arguments(args, given)})
        words = tokens if isinstance(tokens, Mapping) else checked_words(tokens)
        chosen, longest = resolve(expansion), checked_order(max_order)
        if call is not None and whole_number(call) is None:
            raise UsageError(f"call is {call!r}; expected a whole number from 0, the place of a call, or None for all")
        if readout not in ("held", "ray"):
            raise UnknownNameError("readout", readout, ("held", "ray"))
        names = names_of_places(model, len(args))
        return cls(args, given, wanted, words, features, chosen, longest, readout, rnn, call, seed, several, names)

    @property
    def seeded(self) -> bool:
        """Whether every run of the model starts all generators of random numbers from a seed."""
        return self.seed is not None

    @property
    def arguments(self) -> tuple[object, ...]:
        """All arguments of the model."""
        return (*self.args, *self.kwargs.values())

    def refuse_several(self, examples: int) -> None:
        """Refuse a batch where one example is to be explained."""
        if examples != 1 and not self.several:
            raise UsageError(f"the batch has {examples} examples; expected one: use unrolled.explain_batch")
