"""Write accounts as JSON.

.. code-block:: text

    {"format": "unrolled.whole_model_account", "version": 1, "examples": [{
        "target": name of the output,           "expansion": name,
        "exact": true or false,                 "closes": true or false,
        "deterministic": true or false,         "movement": the output less biases and constants,
        "cancellation": Σ|c| / |Σc|, null where that is not finite,
        "notes": [text, ...],
        "ledger": {"inputs", "initial states", "biases", "constants", "remainder", "output"},
                                                the first five sum to the sixth
        "arguments": [{
            "name": text,                       "tokens": true if the argument holds tokens, else false,
            "labels": [name of each token or step, ...], empty where there are none,
            "features": [name of each number of a step, ...], empty where they were not given,
            "contributions": a list of numbers, of lists for steps with several; all of them sum to ledger.inputs
        }, ...],
        "biases": {name: a number, ...},        they sum to ledger.biases
        "constants": {name: a number, ...}      they sum to ledger.constants
    }, ...]}

Numbers are in the unit of the output and keep all their digits.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence

from torch import Tensor

from unrolled.atomic_write import atomic_write
from unrolled.file_suffixes import refuse_other_format
from unrolled.whole_model.accounted_output import AccountedOutput
from unrolled.whole_model.argument_parts import ArgumentPart, argument_parts

__all__ = ["save_json"]


def save_json(path: str | os.PathLike[str], ledgers: Sequence[Mapping[str, float]], account: AccountedOutput) -> None:
    """Write every example of an account, with its ledger, to a JSON file, whole or not at all."""
    refuse_other_format(path, ".json")
    data = {
        "format": "unrolled.whole_model_account",
        "version": 1,
        "examples": [_record(one, ledger) for one, ledger in zip(account, ledgers, strict=True)],
    }
    atomic_write(path, (json.dumps(data, allow_nan=False, indent=1) + "\n").encode())


def _record(one: AccountedOutput, ledger: Mapping[str, float]) -> dict[str, object]:
    cancellation = float(one.cancellation)
    return {
        "target": one.target,
        "expansion": one.expansion,
        "exact": one.exact,
        "closes": one.closes,
        "deterministic": one.deterministic,
        "movement": float(one.movement),
        "cancellation": cancellation if math.isfinite(cancellation) else None,
        "notes": list(one.notes),
        "ledger": dict(ledger),
        "arguments": [_argument(part) for part in argument_parts(one)],
        "biases": _numbers(one.biases),
        "constants": _numbers(one.constants),
    }


def _argument(part: ArgumentPart) -> dict[str, object]:
    return {
        "name": part.name,
        "tokens": part.is_text,
        "labels": list(part.words),
        "features": list(part.features),
        "contributions": part.values.tolist(),
    }


def _numbers(named: Mapping[str, Tensor]) -> dict[str, float]:
    return {name: float(value) for name, value in named.items()}
