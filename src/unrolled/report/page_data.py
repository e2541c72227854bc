"""What the script of a page draws: for each example, each expansion and each choice of outputs.

The arrays hold one class each; the script subtracts them for the difference of two classes. Cells are stored by row:
row k - 1 holds the n-grams of k tokens by their first token.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.contrast import of_output
from unrolled.errors import NonFiniteError, UsageError
from unrolled.report.colour import limit_of, shared_limit
from unrolled.report.feature_rows import FeatureRow, feature_rows, rows_limit, steps_are_named
from unrolled.report.formatting import clip, magnitude, minus, share_of, visible
from unrolled.report.page_view import panel_labels, sum_of_ngrams, waterfall_of_ledger
from unrolled.report.spans import Quantity, by_span, largest_phrases, rows_by_order

__all__ = ["Option", "PageExample", "chosen", "examples_data", "longest_shown", "numbers_of_alike"]

NUMBERS = 1_500_000
"""Largest number of numbers on a page. Longer n-grams are left out of the triangles beyond it."""

TOP = 12
"""Number of n-grams in the list of a page."""
_TOKEN = 80
"""Largest number of characters of a token on the page."""


@dataclass(frozen=True)
class Option:
    """An output to explain, or the difference of two; ``plus`` is None for the one that the attribution is of."""

    name: str
    plus: int | None = None
    minus: int | None = None


@dataclass(frozen=True)
class PageExample:
    """One sequence on a page, explained by one or more expansions."""

    attributions: tuple[Attribution, ...]

    @property
    def first(self) -> Attribution:
        """The attribution that the page shows first."""
        return self.attributions[0]

    @property
    def options(self) -> list[Option]:
        """The outputs that a reader can choose, the first of them shown first."""
        return _options_of(self.attributions)


def _options_of(attributions: Sequence[Attribution]) -> list[Option]:
    """List the outputs that all attributions know; of two classes the difference comes first, unless one is alone."""
    first = attributions[0]
    outputs = first.outputs
    if outputs is None or not all(len(a.by_class) == len(outputs.names) for a in attributions):
        return [Option(first.target)]
    target = outputs.target
    others = sorted((k for k in range(len(outputs.names)) if k != target), key=lambda k: -outputs.values[k])
    single = Option(outputs.names[target], target)
    differences = [Option(outputs.contrast_name(target, k), target, k) for k in others]
    found = [single, *differences, *(Option(outputs.names[k], k) for k in others)]
    if outputs.against is not None:
        shown = next(option for option in differences if option.minus == outputs.against)
    else:
        shown = differences[0] if len(others) == 1 and not outputs.alone else single
    return [shown, *(option for option in found if option is not shown)]


def chosen(attribution: Attribution, option: Option) -> Attribution:
    """Return the attribution of an option, with the notes of its own number."""
    outputs = attribution.outputs
    if option.plus is None or outputs is None:
        return attribution
    found = of_output(attribution, option.plus, option.minus)
    computed = of_output(attribution, outputs.target, outputs.against).notes
    added = [note for note in attribution.notes if note not in computed]  # of the model or the command line
    return replace(found, notes=(*added, *found.notes))


def longest_shown(attribution: Attribution, panels: int = 1, budget: int = NUMBERS) -> int:
    """Return the length of the longest n-grams that a triangle holds if ``panels`` share ``budget`` numbers."""
    time, arrays = len(attribution), max(1, len(attribution.by_class)) * max(1, len(attribution.directions)) * 2
    share = budget // (panels * arrays)
    if time * (time + 1) // 2 <= share:
        return attribution.longest
    return min(attribution.longest, max(1, share // time))


def examples_data(examples: Sequence[PageExample]) -> list[dict[str, object]]:
    """Collect the data of all examples; together they hold at most :data:`NUMBERS` numbers."""
    panels = max(len(example.attributions) for example in examples)
    return [
        {"number": number, **_example(example, panels, NUMBERS // len(examples))}
        for number, example in zip(numbers_of_alike(examples), examples, strict=True)
    ]


def numbers_of_alike(examples: Sequence[PageExample]) -> list[int | None]:
    """Number the examples whose texts are alike, as series are, whose steps are x0, x1, …; None for any other."""
    texts = [(example.first.name, example.first.tokens) for example in examples]
    times = Counter(texts)
    return [k if times[text] > 1 else None for k, text in enumerate(texts)]


def _example(example: PageExample, panels: int, budget: int) -> dict[str, object]:
    first, options = example.first, example.options
    if not len(first):
        raise UsageError("the explanation has no tokens; expected at least one")
    labels = panel_labels(example.attributions)
    return {
        "name": clip(visible(first.name), 60) if first.name else "",
        "tokens": [clip(visible(token), _TOKEN) for token in first.tokens],
        "starts": first.triangle.starts,
        "outputs": _outputs(first),
        "options": [
            {"name": clip(visible(option.name), 120), "plus": option.plus, "minus": option.minus} for option in options
        ],
        "shared": [
            shared_limit([chosen(each, option) for each in example.attributions], "token") for option in options
        ],
        "panels": [
            _panel(attribution, first, label, options, longest_shown(attribution, panels, budget))
            for attribution, label in zip(example.attributions, labels, strict=True)
        ],
        "series": _series(first),
    }


def _outputs(attribution: Attribution) -> dict[str, object] | None:
    outputs = attribution.outputs
    if outputs is None:
        return None
    return {
        "names": [clip(visible(name), 60) for name in outputs.names],
        "values": [_short(value) if math.isfinite(value) else None for value in outputs.values],
        "probabilities": [_short(value) for value in outputs.probabilities],
        "probability_name": outputs.probability_name,
        "predicted": outputs.predicted,
        "true": outputs.true,
    }


def _series(attribution: Attribution) -> dict[str, object] | None:
    """Write the numbers that the model read, one row for each feature."""
    if attribution.features is None:
        return None
    rows = feature_rows(attribution.features)
    return {
        "names": [clip(visible(row.name), 40) for row in rows],
        "values": [_read(row) for row in rows if row.values is not None],
        "named": steps_are_named(attribution),
    }


def _read(row: FeatureRow) -> list[float | None]:
    """Write the numbers that a feature had, each feature rounded by its own size; None where one is missing."""
    assert row.values is not None
    low, high = row.ends or (0.0, 0.0)
    (values,) = _rounded([row.values.tolist()], max(abs(low), abs(high)))
    return [None if math.isnan(value) else value for value in values]


def _feature_scores(attribution: Attribution, first: Attribution) -> dict[str, object] | None:
    """Write the contributions of the rows; ``first`` decides which features are rows of their own."""
    if attribution.features is None or first.features is None:
        return None
    rows = feature_rows(attribution.features, first.features)
    scores = torch.stack([row.scores for row in rows])
    return {"rows": _rounded(scores.tolist(), float(scores.abs().max())), "limit": rows_limit(rows)}


def _panel(
    attribution: Attribution, first: Attribution, label: str, options: Sequence[Option], longest: int
) -> dict[str, object]:
    classes = attribution.by_class if options[0].plus is not None else (attribution,)
    return {
        "label": clip(visible(label), 60),
        "exact": attribution.exact,
        "local": attribution.local,
        "verdict": sum_of_ngrams(attribution),
        "longest": longest,
        "limit": attribution.max_order,
        "residual": minus(magnitude(attribution.residual)),
        "parity": minus(magnitude(attribution.parity)),
        "directions": list(attribution.directions),
        "classes": [_arrays(each, longest) for each in classes],
        "options": [_of_option(chosen(attribution, option), first) for option in options],
    }


def _arrays(attribution: Attribution, longest: int) -> dict[str, object]:
    """Write the scores and contributions of one class, one triangle for each direction."""
    found: dict[str, object] = {}
    for name, bands in (
        ("score", attribution.triangle.score_band),
        ("contribution", attribution.triangle.contribution_band),
    ):
        size = float(bands.abs().max())
        found[name] = [
            _rounded(rows_by_order(band, direction, longest), size)
            for band, direction in zip(bands, attribution.directions, strict=True)
        ]
    return found


def _limit(attribution: Attribution, quantity: Quantity) -> float:
    """Return the end of a triangle's scale: it shows each direction, and their sum."""
    return max(shared_limit([attribution], quantity), limit_of(by_span(attribution, quantity)))


def _of_option(attribution: Attribution, first: Attribution) -> dict[str, object]:
    quantities: tuple[Quantity, ...] = ("phrase", "score", "contribution")
    limits = {str(quantity): _limit(attribution, quantity) for quantity in quantities}
    limits["token"] = shared_limit([attribution], "token")
    return {
        "limits": limits,
        "ledger": [
            {"name": bar.name, "value": bar.value, "left": bar.left, "width": bar.width, "zero": bar.zero}
            for bar in waterfall_of_ledger(attribution.ledger, attribution.unit, attribution.name)
        ],
        "tokens": [_short(value) for value in attribution.token_scores.tolist()],
        "top": [
            {
                "start": phrase.start,
                "stop": phrase.stop,
                "copies": phrase.copies,
                "contribution": _short(phrase.contribution),
                "score": _short(phrase.score),
            }
            for phrase in largest_phrases(attribution, TOP)
        ],
        "features": _feature_scores(attribution, first),
        "longer": attribution.longer,
        "share": minus(share_of(attribution.relative_remainder, f"the {attribution.unit}")),
        "cancellation": minus(magnitude(attribution.cancellation)),
        "notes": [visible(note) for note in attribution.notes],
    }


def _short(value: float) -> float:
    """Round to six digits, more than the page shows."""
    return float(f"{value:.6g}")


def _rounded(rows: Sequence[Sequence[float]], size: float) -> list[list[float]]:
    """Round to a millionth of the largest absolute value."""
    if not math.isfinite(size):
        raise NonFiniteError("an explanation holds NaN or infinity; expected numbers")
    decimals = 7 - math.ceil(math.log10(size)) if size > 0 else 0
    return [[round(value, decimals) for value in row] for row in rows]
