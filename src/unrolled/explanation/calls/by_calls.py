"""The explanation of each example by all calls: one sequence, or several in one ledger."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import nn

from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.number_notes import number_notes
from unrolled.decomposition.own_steps.step_calls import changed_arguments_named
from unrolled.errors import NonFiniteError, UsageError
from unrolled.explanation.calls.open_calls import open_calls
from unrolled.explanation.calls.opened_lines import OpenedCalls, OpenedLine
from unrolled.explanation.examples import refuse_no_examples
from unrolled.explanation.explanation import Explanation
from unrolled.explanation.features import FeaturesFound
from unrolled.explanation.joint import NGRAMS_OF, joint_explanation
from unrolled.explanation.model_run import ModelRun
from unrolled.explanation.networks.find_network import FoundNetworks
from unrolled.explanation.notes import failure_notes
from unrolled.explanation.plain_run import PlainRun
from unrolled.explanation.request import Request
from unrolled.explanation.scored_sequence import ScoredSequence
from unrolled.explanation.tokens.sequence_names import NamedTokens, Words, given_words, line_titles, tokens_of_sequence
from unrolled.explanation.tokens.trace_calls import trace_calls
from unrolled.explanation.tokens.traces import Traces, read_from_end, read_one_text, read_the_same
from unrolled.model_runs.random_generators import RandomGenerators

__all__ = ["explain_calls"]


@dataclass(frozen=True)
class _Part:
    """One sequence of one line, as one example reads it."""

    line: int
    row: int
    name: str


def explain_calls(
    model: nn.Module, networks: FoundNetworks, asked: Request, generators: RandomGenerators
) -> list[Explanation]:
    """Explain every example of an output by all calls of some networks."""
    plain = PlainRun.of(ModelRun.of(model, asked.args, asked.kwargs), generators, asked.seeded)
    refuse_no_examples(plain.output)
    with changed_arguments_named(networks.steps):
        found = OpenedCalls.mean([open_calls(plain, asked, networks, member) for member in asked.expansion.members()])
    count, titles = len(found.logit), line_titles([line.line for line in found.lines])
    if asked.call is not None and not 0 <= asked.call < len(titles):
        raise UsageError(f"call is {asked.call}; expected 0 to {len(titles) - 1}: {', '.join(titles)}")
    asked.refuse_several(count)
    examples = [_parts(found, titles, b) for b in range(count)]
    lines, readers = [line.line for line in found.lines], [line.examples for line in found.lines]
    traces = trace_calls(model, lines, readers, networks, asked.args, asked.kwargs)
    calls = _ExplainedCalls(
        found=found,
        asked=asked,
        titles=titles,
        unit=asked.wanted.choose_one(plain.output, count).unit_of(found.is_sigmoid),
        examples=examples,
        traces=traces,
        tokens=_named_tokens(found, examples, asked.tokens, traces),
        network=networks.opened[0],
    )
    return [calls.explanation(b) for b in range(count)]


def _parts(found: OpenedCalls, titles: Sequence[str], example: int) -> list[_Part]:
    """List the sequences that one example reads, in order."""
    parts = []
    for place, (opened, title) in enumerate(zip(found.lines, titles, strict=True)):
        order, rows = opened.line.first.order, (opened.examples == example).nonzero()[:, 0].tolist()
        rows = rows if order is None else sorted(rows, key=order.tolist().__getitem__)
        parts += [
            _Part(place, row, title if len(rows) == 1 else f"{title}, sequence {number}")
            for number, row in enumerate(rows)
        ]
    return parts


def _named_tokens(
    found: OpenedCalls, examples: Sequence[Sequence[_Part]], tokens: Words, traces: Sequence[Traces]
) -> list[list[NamedTokens]]:
    """Name the tokens of every sequence of every example."""
    lines = [opened.line for opened in found.lines]
    named = []
    one_text = [read_the_same([(traces[part.line], part.row) for part in parts]) for parts in examples]
    positions = [[int(lines[part.line].inside[:, part.row].sum()) for part in parts] for parts in examples]
    counts = [
        [traces[part.line].word_count(count) for part, count in zip(parts, of_example, strict=True)]
        for parts, of_example in zip(examples, positions, strict=True)
    ]
    sorted_words = given_words(tokens, [[part.name for part in parts] for parts in examples], one_text, counts)
    for parts, given, of_example in zip(examples, sorted_words, positions, strict=True):
        each = zip(parts, given, of_example, strict=True)
        named.append([tokens_of_sequence(words, part.name, n, part.row, traces[part.line]) for part, words, n in each])
    return named


@dataclass(frozen=True)
class _ExplainedCalls:
    """What is known of all calls when their explanations are made, one for each example."""

    found: OpenedCalls
    asked: Request
    titles: Sequence[str]
    """Of the lines."""
    unit: str
    examples: Sequence[Sequence[_Part]]
    """The sequences that each example reads."""
    traces: Sequence[Traces]
    """By line."""
    tokens: Sequence[Sequence[NamedTokens]]
    """By example and sequence."""
    network: str
    """The path of one of the networks, for an error."""

    @cached_property
    def features(self) -> FeaturesFound:
        """The numbers that the model reads, by line and example."""
        return FeaturesFound.of(self.found.known_numbers, self.asked)

    def explanation(self, b: int) -> Explanation:
        """Make the explanation of one example: of its only sequence, of the call that was asked for, or of all.

        Raises:
            UsageError: If it reads no sequence, or not the call.
        """
        parts, call = self.examples[b], self.asked.call
        if not parts:
            raise UsageError(
                f"no gradient tells which sequences example {b} reads: its target changes with no state, as a masked "
                f"score does not; explain it alone, or open one network: rnn={self.network!r}"
            )
        sequences = self._sequences(b)
        if call is not None:
            sequences = [each for each, part in zip(sequences, parts, strict=True) if part.line == call]
            if not sequences:
                raise UsageError(f"example {b} does not read {self.titles[call]}; choose another call, or leave it out")
        closed = [replace(each, exact=each.exact and each.closes) for each in sequences]
        if len(closed) == 1:
            return closed[0]
        read = [(self.traces[part.line], part.row) for part in parts]
        from_end = tuple(read_from_end(*each) for each in read) if read_one_text(read) else None
        return joint_explanation(closed, _shared_notes(sequences), from_end)

    def _sequences(self, b: int) -> list[Explanation]:
        """Explain one example by each of its sequences."""
        parts = self.examples[b]
        ledgers = _ledgers(self.found, b, parts, str(self.asked.expansion))
        given = zip(parts, self.tokens[b], ledgers, strict=True)
        return [self._sequence(b, part, tokens, *ledger) for part, tokens, ledger in given]

    def _sequence(
        self, b: int, part: _Part, tokens: NamedTokens, ledger: Ledger, biases: dict[str, float]
    ) -> Explanation:
        """Make the explanation of one sequence, with its features and notes."""
        found, opened = self.found, self.found.lines[part.line]
        sequence = ScoredSequence(
            ngrams=opened.ngrams,
            row=part.row,
            steps=opened.line.inside[:, part.row].nonzero()[:, 0],
            directions=2 if opened.line.both else 1,
            coupled=opened.line.coupled,
            parity=max(strand.parity for strand in opened.line.strands),
            dtype=found.dtype,
            failures=failure_notes(found.failures),
        )
        return sequence.explanation(
            self.asked,
            lambda plain: self.features.put(plain, part.line, b),
            tokens=tokens.names,
            ledger=ledger,
            biases=biases,
            target=found.targets[b],
            unit=self.unit,
            notes=(*found.notes, *tokens.notes),
            deterministic=found.deterministic,
            name=part.name if len(self.examples[b]) > 1 else "",
        )


def _ledgers(
    found: OpenedCalls, b: int, parts: Sequence[_Part], expansion: str
) -> Iterator[tuple[Ledger, dict[str, float]]]:
    """Make the ledger of each sequence of an example, with its bias by name: what the others contribute is in it."""
    logit, biases = float(found.logit[b]), {name: float(part[b]) for name, part in found.biases.items()}
    sums = []
    for part in parts:
        of_line = found.lines[part.line].ngrams
        sums.append((part, float(of_line.tokens[part.row].sum()), float(of_line.initial[part.row])))
    bias = sum(biases.values())
    remainder = logit - sum(ngrams for _, ngrams, _ in sums) - sum(initial for _, _, initial in sums) - bias
    for part, ngrams, initial in sums:
        if not math.isfinite(ngrams + initial):
            if _starts_infinite(found.lines[part.line], part.row):
                raise NonFiniteError(
                    "an initial state is infinite, and no finite slope leads to it; begin at a finite number, such "
                    "as -1000"
                )
            raise NonFiniteError.overflow("the n-grams", found.dtype == torch.float64, expansion)
        others = {f"{NGRAMS_OF}{other.name}": more + start for other, more, start in sums if other is not part}
        yield Ledger(ngrams, initial, bias + sum(others.values()), remainder, logit), {**biases, **others}


def _starts_infinite(line: OpenedLine, row: int) -> bool:
    return any(bool(torch.isinf(strand.start[..., row, :]).any()) for strand in line.line.strands)


def _shared_notes(sequences: Sequence[Explanation]) -> tuple[str, ...]:
    """Return the notes that are not of the number of one sequence."""
    return tuple(dict.fromkeys(note for each in sequences for note in each.notes if note not in number_notes(each)))
