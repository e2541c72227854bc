"""The functions :func:`unrolled.explain` and :func:`unrolled.explain_batch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from torch import nn

from unrolled.expansions.base import Expansion
from unrolled.explanation.explain_model import explain_model
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.explanations import Explanations
from unrolled.explanation.networks.find_network import NamedNetworks
from unrolled.explanation.notes import refuse_notes
from unrolled.explanation.request import Request
from unrolled.explanation.targets.select_target import Target
from unrolled.explanation.targets.wanted import Class, Wanted
from unrolled.explanation.tokens.sequence_names import Words

__all__ = ["explain", "explain_batch"]


def explain(
    model: nn.Module,
    *args: object,
    target: Target | str | None = None,
    against: Class | None = None,
    classes: Sequence[str] | None = None,
    tokens: Words = None,
    features: Sequence[str] | None = None,
    expansion: str | Expansion = "secant",
    readout: Literal["held", "ray"] = "held",
    rnn: NamedNetworks = None,
    call: int | None = None,
    max_order: int | None = None,
    every_class: bool | None = None,
    seed: int | None = None,
    strict: bool = False,
    model_kwargs: Mapping[str, object] | None = None,
    **kwargs: object,
) -> Explanation:
    r"""Explain one logit of any model that contains a recurrent network, for one example.

    .. math:: F(H) = \sum_t \sum_i w_t^\top v_{i:t} + \text{initial state} + \text{bias} + \text{remainder}

    The model is run as it is, whatever its embedding, pooling and head are. The states H of its recurrent network are
    decomposed into n-gram terms v. The model around it runs once more with the factors of its operations held, so that
    the target is linear in H: that gives w, and the bias is what the model's own biases and constants add. The model
    is run in evaluation mode and left as it was; of one that another thread trains, pass a copy, since its dropout is
    off until the call returns and changed weights are refused. No backward pass goes through the recurrent network, so
    this also works under ``torch.no_grad()`` and with cuDNN in evaluation mode. For several examples at once there is
    :func:`unrolled.explain_batch`.

    Calls that continue each other (a loop over cells, a decoder step by step) are one sequence, and so are networks
    above one another with position-wise functions between them. Other calls are a sequence each: the source and the
    target of a translator, the two texts of a siamese model, the characters of each word. Their n-grams stand in one
    ledger, in a :class:`~unrolled.explanation.joint.JointExplanation`.

    Args:
        model: Any module with recurrent networks: ``torch.nn.RNN``, ``GRU``, ``LSTM`` and their cells in a loop, or
            networks of :func:`unrolled.cells.recurrent`.
        *args: The model's own positional arguments, for a batch of one example.
        target: An index of the last dimension of an output of shape (batch, classes), or its name; None for the
            predicted class; or a function from the model's output to one number for each example:
            ``lambda out: out[:, 3, 7]``.
        against: A class whose output is subtracted: why the target rather than this one?
        classes: Names of the model's outputs.
        tokens: The words of the sentence, for display only; of several sequences that do not read the same text,
            their words by name: ``tokens={"encoder": [...], "decoder": [...]}``. They are those of the argument, in its
            order: a start token that the model puts before them needs no word, and is shown by its id, ``‹1›``.
        features: Names of the numbers of a step, for a model that reads numbers; what each contributes is
            ``feature_scores``. Of sequences that read several arguments, as a past and what is known of a future,
            those of all of them, side by side in the order of the arguments.
        expansion: How the states are decomposed; see :func:`unrolled.decompose`.
        readout: ``"held"``, or ``"ray"``: w is then the gradient averaged along the line from 0 to H, and the bias is
            F(0). Where an operation behind the network has no rule, the ray is taken, and a note says so. A ray needs
            one network that is called once.
        rnn: The recurrent network's path inside the model (``"encoder.rnn"``), the module, or a list of them; None for
            all. A step that you wrote yourself (``forward(x, state)``, ``step(x, state)``) is named in the same way, or
            by :func:`unrolled.as_cell`; without it, it is found in a model that has no other recurrent network.
            One that holds a cell of torch is opened as a whole by :func:`unrolled.as_cell`, otherwise that cell is.
        call: Which of several sequences to return, counted from 0 in the order in which the model begins to read them;
            None for all.
        max_order: Length of the longest n-gram to tell apart. None tells all apart, and in a bidirectional network of
            several layers, where longer ones cost more, those of up to 6 tokens. The contributions by token and the
            ledger count all.
        every_class: Whether to account for every output as well, so that a page can show them and their differences.
            None does it for at most five. Several sequences are explained for the target alone.
        seed: Of a model that draws random numbers, the draw to explain: every run starts all generators from this
            seed. Without it such a model is refused.
        strict: Whether a result that has notes is an error.
        model_kwargs: The model's own keyword arguments whose names are those of arguments of this function.
        **kwargs: The model's own keyword arguments.

    Returns:
        The explanation. ``print`` shows it; ``ledger`` is the sum, ``top()`` and ``phrase_score()`` give its parts,
        ``figure()`` and ``save_html()`` draw it.

    Raises:
        UsageError: If the batch holds several examples; if there is no recurrent network; if the target is out of
            range, or depends on the states though no gradient flows from it to them. A target that does not depend on
            the states of one network, called once, is all bias, and a note says so; of several calls it is refused.
        UnknownNameError: If there is no such expansion or readout, or no recurrent network at the path ``rnn``.
        UnsupportedOperationError: If an operation has no rule and no ray is possible; the message names it.
        ShapeError: If the output, the target or the tokens do not fit.
        ChangedWeightsError: If another thread changes the model's weights meanwhile.
        ParityError: If the recomputed states differ from the network's own by more than rounding.
        NonFiniteError: If weights, inputs or the logit are NaN or infinite.
        StrictError: If the result has notes and ``strict`` is true.
        RandomOperationError: If two runs of the model give different answers; the message names what draws.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.LSTM(4, 6, batch_first=True)
        ...         self.head = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[0].mean(dim=1))
        >>> found = unrolled.explain(Classifier(), torch.tensor([[1, 2, 3]]), target=1, tokens=["not", "a", "bore"])
        >>> sorted(found.ledger)
        ['bias', 'initial', 'logit', 'ngrams', 'remainder']
        >>> abs(found.ledger.remainder) < 1e-5
        True

    Source:
        Decomposition: see :func:`unrolled.decompose`. Held readout: ours. Averaged gradients: Sundararajan et al. 2017
        (arXiv:1703.01365), there taken over the inputs.
    """
    asked = Request.checked(
        model,
        args,
        kwargs,
        model_kwargs,
        wanted=Wanted(target, against, classes, every_class),
        tokens=tokens,
        features=features,
        expansion=expansion,
        readout=readout,
        rnn=rnn,
        call=call,
        seed=seed,
        max_order=max_order,
        several=False,
    )
    found = explain_model(model, asked)
    refuse_notes(found[0].notes, strict)
    return found[0]


def explain_batch(
    model: nn.Module,
    *args: object,
    target: Target | str | None = None,
    against: Class | None = None,
    classes: Sequence[str] | None = None,
    tokens: Words = None,
    features: Sequence[str] | None = None,
    expansion: str | Expansion = "secant",
    readout: Literal["held", "ray"] = "held",
    rnn: NamedNetworks = None,
    call: int | None = None,
    max_order: int | None = None,
    every_class: bool | None = None,
    seed: int | None = None,
    strict: bool = False,
    model_kwargs: Mapping[str, object] | None = None,
    **kwargs: object,
) -> Explanations:
    """Explain one logit of every example of a batch; otherwise as :func:`explain`.

    The model is called once with the whole batch, padded or packed. It may sort its batch by length and restore the
    order: every example gets its own n-grams.

    Args:
        model: As in :func:`explain`.
        *args: The model's own positional arguments, for a batch of any size.
        target: As in :func:`explain`; None is the predicted class of each example.
        against: As in :func:`explain`.
        classes: As in :func:`explain`.
        tokens: The words of each sentence, without its padding, for display only.
        features: As in :func:`explain`.
        expansion: As in :func:`explain`.
        readout: As in :func:`explain`.
        rnn: As in :func:`explain`.
        call: As in :func:`explain`.
        max_order: As in :func:`explain`.
        every_class: As in :func:`explain`.
        seed: As in :func:`explain`.
        strict: As in :func:`explain`.
        model_kwargs: As in :func:`explain`.
        **kwargs: The model's own keyword arguments.

    Returns:
        One explanation for each example, in the order of the model's output.

    Raises:
        UsageError: As in :func:`explain`, or if one example's output depends on another example.
        UnknownNameError: As in :func:`explain`.
        UnsupportedOperationError: As in :func:`explain`.
        ShapeError: As in :func:`explain`.
        ChangedWeightsError: As in :func:`explain`.
        ParityError: As in :func:`explain`.
        NonFiniteError: As in :func:`explain`.
        StrictError: If a result has notes and ``strict`` is true.
        RandomOperationError: As in :func:`explain`.

    Example:
        >>> import torch, unrolled
        >>> class Classifier(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.GRU(4, 6, batch_first=True)
        ...         self.head = torch.nn.Linear(6, 3)
        ...     def forward(self, tokens):
        ...         return self.head(self.rnn(self.embed(tokens))[1][0])
        >>> found = unrolled.explain_batch(Classifier(), torch.tensor([[1, 2], [3, 4]]))
        >>> [len(each) for each in found]
        [2, 2]
    """
    asked = Request.checked(
        model,
        args,
        kwargs,
        model_kwargs,
        wanted=Wanted(target, against, classes, every_class),
        tokens=tokens,
        features=features,
        expansion=expansion,
        readout=readout,
        rnn=rnn,
        call=call,
        seed=seed,
        max_order=max_order,
        several=True,
    )
    found = explain_model(model, asked)
    refuse_notes((note for each in found for note in each.notes), strict)
    return found
