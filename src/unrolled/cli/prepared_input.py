"""A model with one sentence as its input, and the choice of the logit to explain."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from unrolled.errors import NonFiniteError, UnknownNameError, UsageError
from unrolled.report.unknown_words import mark_unknown, note_unknown

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.decomposition.attribution.outputs import Outputs
    from unrolled.explanation.explanation import Explanation
    from unrolled.weights.from_state_dict import LoadedClassifier

__all__ = ["ONLY_OUTPUT", "ChosenTarget", "PreparedInput", "WeightsOptions", "open_weights"]


ONLY_OUTPUT = "output"
"""The name of the output of weights that have one."""
_NAMED = 100  # outputs of which a page lists the names
_IN_DOUBLE = "computed in float64: in float32, rounding hides what the n-grams sum to"


@dataclass(frozen=True)
class PreparedInput:
    """A model with one sentence as its input."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    """The model's arguments, each with one row."""
    tokens: tuple[str, ...]
    """The words for display."""
    labels: tuple[str, ...]
    """Names of the classes; empty if they have none."""
    notes: tuple[str, ...]
    rnn: str | None = None
    """Path of the recurrent network, if the model has several."""

    def class_name(self, target: int) -> str:
        """Return the label of a class, or ``"class 1"`` if it has none."""
        return self.labels[target] if self.labels else f"class {target}"

    @property
    def is_double(self) -> bool:
        """Whether the model computes in float64 alone."""
        import torch

        return all(each.dtype == torch.float64 for each in self.model.parameters() if each.is_floating_point())

    def in_double(self) -> PreparedInput:
        """Return the same sentence for a copy of the model in float64."""
        inputs = tuple(each.double() if each.is_floating_point() else each for each in self.inputs)
        return replace(self, model=copy.deepcopy(self.model).double(), inputs=inputs)

    def choose_target(self, target: str | None, against: str | None) -> ChosenTarget:
        """Choose a class by label or index, minus the class ``against``.

        None stands for the predicted class; of two classes, minus the other one unless ``target`` is given.
        """
        import torch

        with torch.no_grad():
            logits: list[float] = self.model(*self.inputs)[0].tolist()
        if not logits:
            raise UsageError("the model has no outputs; expected at least one class")
        if target is None:
            chosen = max(range(len(logits)), key=logits.__getitem__)
        else:
            chosen = self._find_class(target, len(logits))
        other = None if against is None else self._find_class(against, len(logits))
        if target is None and other is None and len(logits) == 2:
            other = 1 - chosen
        if chosen == other:
            raise UsageError(f"{self.class_name(chosen)} against itself; expected two different classes")
        return ChosenTarget(self, tuple(logits), chosen, other)

    def _find_class(self, wanted: str, classes: int) -> int:
        if wanted in self.labels:
            return self.labels.index(wanted)
        alike = [
            index for index, label in enumerate(self.labels) if normalize("NFC", label) == normalize("NFC", wanted)
        ]
        if len(alike) == 1:  # a keyboard and a file may write an accent in different ways
            return alike[0]
        numbers = bool(self.labels) and all(map(str.isdecimal, self.labels))
        if numbers or not wanted.removeprefix("-").isdecimal():  # of classes 1 to 5, "0" is not the class 1
            raise UnknownNameError("class", wanted, self.labels or map(str, range(classes)))
        if classes == 1 and int(wanted) != 0:
            raise UsageError(f"class {wanted} is out of range; the model has one output: leave the class out")
        if not 0 <= int(wanted) < classes:
            raise UsageError(f"class {wanted} is out of range; expected 0 to {classes - 1}")
        return int(wanted)


@dataclass(frozen=True)
class ChosenTarget:
    """The number to explain: a logit, or the difference of two."""

    prepared: PreparedInput
    logits: tuple[float, ...]
    target: int
    against: int | None

    @property
    def name(self) -> str:
        """The name of the explained number, such as ``"positive rather than negative"``."""
        name = self.prepared.class_name(self.target)
        return name if self.against is None else f"{name} rather than {self.prepared.class_name(self.against)}"

    @property
    def outputs(self) -> Outputs | None:
        """All outputs by name; None if they have no names."""
        from unrolled.decomposition.attribution.outputs import Outputs

        names = self.prepared.labels
        return Outputs(names, self.logits, self.target, self.against) if 1 < len(names) <= _NAMED else None

    def explain(self, expansion: str, max_order: int | None = None) -> Explanation:
        """Explain it by one expansion, in float64 where rounding in float32 hides what the n-grams say."""
        from unrolled.expansions import resolve

        try:
            found = self._explain(self.prepared, expansion, max_order)
            rounded = resolve(expansion).exact and not found.exact
        except NonFiniteError:
            if self.prepared.is_double:
                raise
            rounded = True
        if rounded and not self.prepared.is_double:
            found = self._explain(self.prepared.in_double(), expansion, max_order)
            found = replace(found, notes=(*found.notes, _IN_DOUBLE))
        outputs = found.outputs
        if outputs is not None and self.against is None:  # of two classes, it was asked for by name
            outputs = replace(outputs, alone=True)
        return replace(found, outputs=outputs, notes=(*found.notes, *self.prepared.notes))

    def _explain(self, prepared: PreparedInput, expansion: str, max_order: int | None) -> Explanation:
        from unrolled.explanation.api import explain
        from unrolled.report.time_left import progress

        with progress(f"{len(prepared.tokens):,} tokens by {expansion}"):
            return explain(
                prepared.model,
                *prepared.inputs,
                target=self.target,
                against=self.against,
                classes=prepared.labels or [prepared.class_name(k) for k in range(len(self.logits))],
                tokens=prepared.tokens,
                expansion=expansion,
                max_order=max_order,
                rnn=prepared.rnn,
            )

    def explain_by_others(self, shown: str, max_order: int | None = None) -> tuple[list[Explanation], list[str]]:
        """Explain it by every expansion except ``shown``; also say which expansions do not suit the network."""
        from unrolled.expansions import EXPANSIONS, resolve

        found, left_out = [], []
        for name in EXPANSIONS.names():
            if str(resolve(name)) == shown:
                continue
            try:
                found.append(self.explain(name, max_order))
            except (UsageError, NonFiniteError) as error:
                left_out.append(f"{name}: {error}")
        return found, left_out


@dataclass(frozen=True)
class WeightsOptions:
    """The options of the command line that describe a file of weights."""

    weights: Path
    vocab: Path
    unk: str | None = None
    rnn: str | None = None
    embedding: str | None = None
    head: str | None = None
    nonlinearity: str | None = None
    classes: str | None = None


_BUILT = (
    "built from the weights: embedding, recurrent network, last state, linear; a model that pools its states in "
    "another way may have the same weights: explain it in Python, by unrolled.explain"
)


def open_weights(options: WeightsOptions) -> Callable[[str], PreparedInput]:
    """Build a classifier from a file of weights; return what prepares a sentence for it, split at spaces."""
    import torch

    from unrolled.weights.from_state_dict import load_classifier
    from unrolled.weights.tokenizer import Tokenizer, is_tokenizer_file
    from unrolled.weights.word_list import WordList

    own = is_tokenizer_file(options.vocab)
    if own and options.unk is not None:
        raise UsageError(f"{options.vocab} is a tokenizer, which has its own unknown word; leave out --unk")
    words = Tokenizer.of(options.vocab) if own else WordList.load(options.vocab, options.unk)
    loaded = load_classifier(
        options.weights,
        words=len(words),
        rnn=options.rnn,
        embedding=options.embedding,
        head=options.head,
        nonlinearity=options.nonlinearity,
    )
    outputs = loaded.model.head.out_features
    labels = _labels(options.classes, outputs)
    if options.classes is None and outputs == len(words):  # a language model
        labels = _of_words(words.words, outputs)
    elif options.classes is None and outputs == 1:  # behind a sigmoid it speaks for class 1
        labels = (ONLY_OUTPUT,)
    built = _notes_on(loaded, len(words), words.marks if isinstance(words, Tokenizer) else ())

    def prepare(sentence: str) -> PreparedInput:
        if isinstance(words, Tokenizer):
            tokens, indices = words.encode(sentence)
            unknown: tuple[str, ...] = ()
        else:
            tokens = tuple(sentence.split())
            indices, unknown = tuple(words.encode(tokens)), words.unknown(tokens)
        if not tokens:
            raise UsageError("the sentence is empty; expected at least one word")
        return PreparedInput(
            model=loaded.model,
            inputs=(torch.tensor([indices]),),
            tokens=mark_unknown(tokens, unknown),
            labels=labels,
            notes=(*built, *note_unknown(unknown, getattr(words, "unknown_word", None))),
        )

    return prepare


def _notes_on(loaded: LoadedClassifier, words: int, marks: Sequence[str]) -> tuple[str, ...]:
    """Say how a classifier was built, and what of its file, its vocabulary and its tokenizer it does not use."""
    notes = [_BUILT]
    if loaded.cells:
        notes.append(f"cells taken for layers, the first reads the words: {', '.join(loaded.cells)}")
    if marks:
        notes.append(f"without the tokenizer's marks {' '.join(marks)}, which the model may have read")
    if (rows := loaded.model.embedding.num_embeddings) > words:
        notes.append(f"the embedding has {rows:,} rows and the vocabulary {words:,} words")
    if loaded.unused:
        notes.append(f"not used, as --head says: {', '.join(loaded.unused)}")
    return tuple(notes)


def _of_words(words: Mapping[int, str], count: int) -> tuple[str, ...]:
    """Name each output by the word of its index; none where two would have one name."""
    names = tuple(words.get(index, f"class {index}") for index in range(count))
    return names if len(set(names)) == count else ()


def _labels(given: str | None, count: int) -> tuple[str, ...]:
    """Split the names of the outputs at commas; a model of ``count`` outputs has as many, or none."""
    if given is None:
        return ()
    names = tuple(name.strip() for name in given.split(","))
    if len(names) != count:
        raise UsageError(f"--classes names {len(names)} outputs; expected {count}, with commas between them")
    if len(set(names)) < count or "" in names:
        raise UsageError(f"--classes is {given!r}; expected a name of its own for each output")
    return names
