"""The function :func:`unrolled.account`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from unrolled.expansions.base import Expansion
from unrolled.explanation.networks.python_modules import python_modules
from unrolled.explanation.notes import refuse_notes
from unrolled.explanation.targets.select_target import Target
from unrolled.explanation.targets.wanted import Class, Wanted
from unrolled.explanation.tokens.token_names import Tokens
from unrolled.held_forward.runs_that_fail import with_factors_as_they_were
from unrolled.held_forward.tensor_facts.gates import CONTENT_SHARE
from unrolled.whole_model.account_model import account_model
from unrolled.whole_model.account_request import AccountRequest
from unrolled.whole_model.feature_names import feature_names
from unrolled.whole_model.result import Account

__all__ = ["account"]


@torch.inference_mode(mode=False)  # it needs gradients, also if its caller has switched them off
def account(
    model: nn.Module,
    *args: Any,
    target: Target | str | None = None,
    against: Class | None = None,
    of: str | None = None,
    classes: Sequence[str] | None = None,
    tokens: Tokens = None,
    features: Sequence[str] | None = None,
    expansion: str | Expansion = "secant",
    share: float = CONTENT_SHARE,
    seed: int | None = None,
    strict: bool = False,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Account:
    r"""Account for an output of any model: what every token, feature, bias and initial state contributed.

    .. math:: \text{output} = \sum_{\text{rows}} \text{row} · \frac{∂\, \text{output}}{∂\, \text{row}}
        + \text{remainder}

    The model runs once with the factors of every operation held, so that its output is linear in the rows: the token
    vectors, the numbers of the arguments, the biases. One backward pass then gives all contributions. Recurrent
    networks follow ``expansion``, down to their inputs, in any number of layers and directions. All else follows
    ``shares``: the line of a non-linearity begins at zero; attention weights and the scales of normalisations are
    held. The model is run in evaluation mode and left as it was.

    Another thread may run and differentiate the model meanwhile, in evaluation mode. Of a model that another thread
    trains, pass a copy (``copy.deepcopy(model)``): its dropout is off until the call returns, and changed weights are
    refused.

    Args:
        model: Any module: with several recurrent networks, loops over cells, attention, a decoder, or none of these.
        *args: The model's own positional arguments. Integers are tokens if a table is read at them, else features
            where they are used as numbers; of floating-point tensors, every number is a feature. Their last axis is
            shown as the features, the axes before it as the steps, also where a model takes (batch, channels, time).
        target: An index of the output's last dimension, or its name; or a function from the output to one number for
            each example; None for the predicted class of each example, or for its only number.
        against: A class whose output is subtracted: why the target rather than this one?
        of: Path of a submodule whose output is to be accounted for in place of the arguments (``"encoder"``).
        classes: Names of the model's outputs.
        tokens: The words of the text, or of each text of the batch, for display; of a model that reads several texts,
            the words of all of them one after the other; of a model that reads numbers, the names of the steps.
        features: Names of the numbers of a step, for a model that reads numbers: of the first argument that holds
            numbers, or of all such arguments one after the other.
        expansion: How recurrent networks are expanded; see :func:`unrolled.decompose`.
        share: Part of a gated product that is credited to its content, from 0 to 1.
        seed: Of a model that draws random numbers, the draw to account for: every run starts all generators from this
            seed. Without it such a model is refused.
        strict: Whether a result that has notes is an error.
        model_kwargs: The model's own keyword arguments whose names are those of arguments of this function.
        **kwargs: The model's own keyword arguments.

    Returns:
        The account of the whole batch; ``account[i]`` is that of one example.

    Raises:
        UnsupportedOperationError: If an operation has no rule; the message names it.
        RandomOperationError: If the model gives another output at each call; the message names what draws.
        ChangedWeightsError: If another thread changes the model's weights meanwhile.
        ParityError: If the held run gives another output than the model.
        UsageError: If the output does not depend on the arguments or has no examples, or an argument does not fit.
        NonFiniteError: If the output is NaN or infinite.
        StrictError: If the result has notes and ``strict`` is true.

    Example:
        >>> import torch, unrolled
        >>> class Tagger(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed = torch.nn.Embedding(9, 4)
        ...         self.rnn = torch.nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True)
        ...         self.head = torch.nn.Linear(12, 2)
        ...     def forward(self, ids):
        ...         return self.head(self.rnn(self.embed(ids))[0][:, -1])
        >>> found = unrolled.account(Tagger(), torch.tensor([[1, 2, 3]]), target=1)
        >>> found.tokens.shape, found.closes
        (torch.Size([1, 3]), True)

    Source:
        Ours; see ``docs/mathematics.md``. Related: layer-wise relevance propagation (Arras et al. 2017,
        arXiv:1706.07206), AttnLRP (Achtibat et al. 2024, arXiv:2402.05602).
    """
    asked = AccountRequest.checked(
        model,
        args,
        kwargs,
        model_kwargs,
        wanted=Wanted(target, against, classes),
        of=of,
        tokens=tokens,
        features=features,
        expansion=expansion,
        share=share,
        seed=seed,
    )
    with python_modules(model, asked.args, asked.kwargs) as python:
        found = with_factors_as_they_were(partial(account_model, python.model, asked))
    told = replace(found, feature_names=feature_names(features, found), notes=(*python.notes, *found.notes))
    refuse_notes(told.notes, strict)
    return told
