"""The function :func:`unrolled.account`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.decomposition.determinism import TwoRuns
from unrolled.decomposition.eval_mode import without_autocast
from unrolled.decomposition.preserve_model import preserved
from unrolled.decomposition.recorded_networks import RecordedNetworks
from unrolled.errors import NonFiniteError, ShapeError, UnsupportedOperationError, UsageError
from unrolled.expansions import resolve
from unrolled.expansions.base import Expansion
from unrolled.explanation.examples import refuse_no_examples
from unrolled.explanation.model_arguments import model_arguments
from unrolled.explanation.networks.python_modules import python_modules
from unrolled.explanation.notes import refuse_notes
from unrolled.explanation.readout.run_model import named_failures, runner
from unrolled.explanation.targets.likely_targets import example_target
from unrolled.explanation.targets.output_classes import class_index, class_names
from unrolled.explanation.targets.select_target import Target, checked_floating, class_outputs, select_target
from unrolled.explanation.targets.target_function import called_target
from unrolled.explanation.thread_count import one_thread_if_small
from unrolled.explanation.tokens.token_names import Tokens, checked_words
from unrolled.held_forward.graph import with_factors_as_they_were
from unrolled.held_forward.held_only import follow_if_held_only
from unrolled.linalg.freed_memory import keep_freed_memory
from unrolled.whole_model.contributions import Contributions, collect
from unrolled.whole_model.feature_names import feature_names
from unrolled.whole_model.held_run import PARITY, HeldRun, HeldRunsOf, Select
from unrolled.whole_model.notes import notes_of
from unrolled.whole_model.result import Account
from unrolled.whole_model.text_words import words_of_texts

__all__ = ["account"]


@torch.inference_mode(mode=False)  # it needs gradients, also if its caller has switched them off
def account(
    model: nn.Module,
    *args: Any,
    target: Target | str | None = None,
    of: str | None = None,
    classes: Sequence[str] | None = None,
    tokens: Tokens = None,
    features: Sequence[str] | None = None,
    expansion: str | Expansion = "secant",
    share: float = 0.75,
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
            where they are used as numbers; of floating-point tensors, every number is a feature.
        target: An index of the output's last dimension, or its name; or a function from the output to one number for
            each example; None for the predicted class of each example.
        of: Path of a submodule whose output is to be accounted for in place of the arguments (``"encoder"``).
        classes: Names of the model's outputs.
        tokens: The words of the text, or of each text of the batch, for display; of a model that reads numbers, the
            names of the steps.
        features: Names of the numbers of a step, for a model that reads numbers.
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
    kwargs = model_arguments(
        model, args, kwargs, model_kwargs, {"tokens": tokens, "target": target, "features": features}
    )
    if not 0 <= share <= 1:
        raise UsageError(f"share is {share:g}; expected a number from 0 to 1")
    chosen, tokens = resolve(expansion), checked_words(tokens)
    with python_modules(model, args, kwargs) as python:
        found = with_factors_as_they_were(
            partial(_account, python.model, args, kwargs, target, of, classes, tokens, chosen, share, seed)
        )
    told = replace(found, feature_names=feature_names(features, found), notes=(*python.notes, *found.notes))
    refuse_notes(told.notes, strict)
    return told


def _account(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    target: Target | str | None,
    of: str | None,
    classes: Sequence[str] | None,
    tokens: Tokens,
    chosen: Expansion,
    share: float,
    seed: int | None,
) -> Account:
    """Account for an output of a model of Python modules."""
    _refuse_unusual(model)
    keep_freed_memory()
    few, run = one_thread_if_small(model, (args, kwargs)), runner(model, args, kwargs)
    with preserved(model, seed) as generators, without_autocast(), few:
        runs = TwoRuns(model, (), run, generators, seeded=seed is not None)
        recorded = RecordedNetworks()
        with named_failures((*args, *kwargs.values())), recorded if _has_networks(model) else nullcontext():
            plain = runs.run()
        select, name = _target(plain, target, classes)
        expected = _checked(select(plain).detach())
        drawn = runs.second(expected, select) if runs.draws else ()  # else the held run tells
        held = HeldRunsOf(model, args, kwargs, of, share, select, expected, recorded, runs)
        found: list[Contributions] = []
        of_target: tuple[str, ...] = ()
        for member in chosen.members():
            (parts, of_run), of_held = follow_if_held_only(partial(held.run, member), _collected)
            found.append(parts)
            of_target = (*of_run, *of_held)
    means = _mean(found)
    result = Account(
        target=name,
        expansion=str(chosen),
        exact=chosen.exact or not means.recurrent,
        texts=means.texts,
        features=means.features,
        initial=means.initial + torch.zeros_like(expected),
        biases=means.biases,
        constants=means.constants,
        output=expected,
        coarsest=means.coarsest,
        recurrent=means.recurrent,
        axes=means.axes,
        words=words_of_texts(tokens, args, kwargs, means, len(expected)),
        deterministic=not (drawn or (seed is not None and runs.draws)),
    )
    if not torch.isfinite(result.remainder).all():
        raise NonFiniteError("the contributions overflow; use float64 (model.double()) or the expansion operating")
    told = notes_of(result, means.computed, means.left)
    return replace(result, exact=result.exact and result.closes, notes=(*drawn, *of_target, *told))


def _checked(output: Tensor) -> Tensor:
    """Return an output that can be accounted for, and refuse any other."""
    if output.dtype not in PARITY:
        raise UsageError(
            f"the output is {output.dtype}, too coarse for an account; convert the model (model.float()), and "
            "switch off torch.autocast where its forward switches it on"
        )
    refuse_no_examples(output)
    if not torch.isfinite(output).all():
        raise NonFiniteError(f"the output is {output.tolist()}; expected finite numbers")
    return output


def _collected(run: HeldRun) -> tuple[Contributions, tuple[str, ...]]:
    parts = collect(run.output, run.mode.rows.rows, run.sources)
    return replace(parts, coarsest=run.mode.coarsest, recurrent=run.mode.ran_networks), run.notes


def _has_networks(model: nn.Module) -> bool:
    return any(isinstance(part, nn.RNNBase) for part in model.modules())


def _refuse_unusual(model: nn.Module) -> None:
    """Refuse what a held forward cannot follow before it runs."""
    for name, part in model.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise UnsupportedOperationError(
                f"{name or 'the model'} is a scripted module, whose operations no rule can meet; pass the module it "
                "was made of"
            )
    for name, weight in model.named_parameters():
        if weight.dtype in (torch.bfloat16, torch.float16, torch.complex32):
            raise UsageError(f"{name} is {weight.dtype}, too coarse for an account; convert the model: model.float()")


def _target(plain: Any, target: Target | str | None, classes: Sequence[str] | None) -> tuple[Select, str]:
    """Return what selects the target from an output, and its name."""
    if callable(target):
        chosen = called_target(target, plain)
        if not isinstance(chosen, Tensor):
            raise ShapeError(f"the target gave a {type(chosen).__name__}; expected a tensor, one number an example")
        name = getattr(target, "__name__", "")
        count = chosen.numel()
        return (lambda output: select_target(output, target, count)), name if name.isidentifier() else "the target"
    if target is not None:
        batch = plain.shape[0] if isinstance(plain, Tensor) and plain.dim() > 1 else 1
        count = class_outputs(plain, target if isinstance(target, int) else 0, batch).shape[1]
        names = class_names(classes, count)
        index = class_index("target", target, names, count)
        return (lambda output: select_target(output, index, batch)), names[index] if names else f"output {index}"
    if not isinstance(plain, Tensor) or plain.dim() != 2:
        found = f"of shape {tuple(plain.shape)}" if isinstance(plain, Tensor) else f"a {type(plain).__name__}"
        one = "an index or a function" if isinstance(plain, Tensor) and plain.dim() == 1 else "a function"
        raise UsageError(f"the output is {found}, not (batch, classes): pass target=, {one}{example_target(plain)}")
    predicted = checked_floating(class_outputs(plain, 0, len(plain))).argmax(dim=1, keepdim=True)
    names = class_names(classes, plain.shape[1]) or tuple(f"output {k}" for k in range(plain.shape[1]))
    name = names[int(predicted)] if len(plain) == 1 else "the predicted class"
    return (lambda output: output.gather(1, predicted)[:, 0]), name


def _mean(found: Sequence[Contributions]) -> Contributions:
    """Average the contributions of an expansion's members."""
    if len(found) == 1:
        return found[0]

    def mean(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        names = dict.fromkeys(name for each in parts for name in each)
        known = {name: [each[name] for each in parts if name in each] for name in names}
        return {name: torch.stack(each).sum(dim=0) / len(found) for name, each in known.items()}

    return replace(
        found[0],
        texts=mean([each.texts for each in found]),
        features=mean([each.features for each in found]),
        initial=sum(each.initial for each in found) / len(found),
        biases=mean([each.biases for each in found]),
        constants=mean([each.constants for each in found]),
    )
