"""The difference of two attributions: why one output rather than another."""

from __future__ import annotations

from dataclasses import replace

from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.decomposition.attribution.ledger import Ledger
from unrolled.decomposition.attribution.number_notes import number_notes
from unrolled.decomposition.attribution.triangle import Triangle

__all__ = ["of_output"]


def _contrast(one: Attribution, other: Attribution, name: str) -> Attribution:
    """Subtract an attribution from another one of the same sequence and expansion.

    Scores and contributions are linear in the output, so the difference is the attribution of the difference. Its
    remainder and its cancellation are noted as its own.
    """
    ledger = Ledger(**{key: one.ledger[key] - other.ledger[key] for key in one.ledger})
    triangle = Triangle(
        one.triangle.score_band - other.triangle.score_band,
        one.triangle.contribution_band - other.triangle.contribution_band,
        one.triangle.starts,
    )
    names = dict.fromkeys((*one.biases, *other.biases))
    biases = {each: one.biases.get(each, 0.0) - other.biases.get(each, 0.0) for each in names}
    features = one.features
    if features is not None and other.features is not None:
        features = replace(
            features,
            scores=features.scores - other.features.scores,
            rest=features.rest - other.features.rest,
        )
    by_token = one.by_token
    if by_token is not None and other.by_token is not None:
        by_token = by_token - other.by_token
    shared = (note for each in (one, other) for note in each.notes if note not in number_notes(each))
    found = replace(
        one,
        triangle=triangle,
        ledger=ledger,
        biases=biases,
        features=features,
        by_token=by_token,
        target=name,
        unit="difference",
    )
    return replace(found, notes=(*dict.fromkeys(shared), *number_notes(found)))


def of_output(attribution: Attribution, target: int, against: int | None) -> Attribution:
    """Return the attribution of one output, or of the difference of two, from that of every class."""
    assert attribution.outputs is not None
    name = attribution.outputs.contrast_name(target, against)
    found = attribution.by_class[target]
    if against is not None:
        found = _contrast(found, attribution.by_class[against], name)
    return replace(
        found,
        target=name,
        outputs=replace(attribution.outputs, target=target, against=against),
        by_class=attribution.by_class,
    )
