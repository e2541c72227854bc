"""Write attributions as JSON.

.. code-block:: text

    {"format": "unrolled.accounts", "version": 1, "accounts": [{
        "target": name of the logit,            "expansion": name,
        "exact": true or false,                 "local": true or false,
        "closes": true or false,                "deterministic": true or false,
        "movement": the logit less the bias,    "cancellation": Σ|c| / |Σc|, null where the sum is 0,
        "residual": a number,                   "parity": a number,
        "notes": [text, ...],                   "max_order": length of the longest n-grams below, or null for all,
        "tokens": [text, ...],                  "directions": ["forward"] or ["forward", "backward"],
        "ledger": {"ngrams", "initial", "bias", "remainder", "logit"},  the first four sum to the fifth,
        "token_scores": [a number a token],     they sum to ledger.ngrams
        "features": null, or {"names", "values", "scores", "rest", "rest_of": what makes the rest};
                                                a step's scores and rest sum to its token_scores;
                                                a value is null where the model read NaN or infinity
        "ngrams": [{"start", "stop", "order", "text", "direction", "score", "contribution"}, ...],
                                                the text of more than 24 tokens is the first and last ten of them
    }, ...]}

Spans are half-open; numbers are in units of the logit and keep all their digits.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import NonFiniteError
from unrolled.file_suffixes import refuse_other_format

__all__ = ["save_json", "to_json"]


def _record(attribution: Attribution) -> dict[str, object]:
    return {
        "target": attribution.target,
        "expansion": attribution.expansion,
        "exact": attribution.exact,
        "local": attribution.local,
        "closes": attribution.closes,
        "deterministic": attribution.deterministic,
        "movement": attribution.movement,
        "cancellation": attribution.cancellation if math.isfinite(attribution.cancellation) else None,
        "residual": attribution.residual,
        "parity": attribution.parity,
        "notes": list(attribution.notes),
        "max_order": attribution.max_order,
        "tokens": list(attribution.tokens),
        "directions": list(attribution.directions),
        "ledger": dict(attribution.ledger),
        "token_scores": attribution.token_scores.tolist(),
        "features": _features(attribution),
        "ngrams": attribution.to_records(),
    }


def _features(attribution: Attribution) -> dict[str, object] | None:
    found = attribution.features
    if found is None:
        return None
    return {
        "names": list(found.names),
        "values": [[value if math.isfinite(value) else None for value in step] for step in found.values.tolist()],
        "scores": found.scores.tolist(),
        "rest": found.rest.tolist(),
        "rest_of": found.rest_of,
    }


def to_json(attributions: Sequence[Attribution]) -> str:
    """Return attributions as JSON in plain ASCII, by the schema above."""
    data = {
        "format": "unrolled.accounts",
        "version": 1,
        "accounts": [_record(attribution) for attribution in attributions],
    }
    try:
        return json.dumps(data, allow_nan=False, indent=1) + "\n"
    except ValueError as error:
        raise NonFiniteError(
            "an explanation holds NaN or infinity, which JSON cannot write; expected numbers"
        ) from error


def save_json(path: str | os.PathLike[str], attributions: Sequence[Attribution]) -> None:
    """Write attributions to a JSON file, whole or not at all."""
    refuse_other_format(path, ".json")
    atomic_write(path, to_json(attributions).encode())
