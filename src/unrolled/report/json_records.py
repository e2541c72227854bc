"""Accounts as a file of records: JSON that any other program can read.

.. code-block:: text

    {"format": "unrolled.accounts", "version": 1, "accounts": [{
        "target": what was explained,           "expansion": by which expansion,
        "exact": true or false,                 "local": true or false,
        "residual": a number,                   "parity": a number,
        "scope": what the n-grams are of,       "notes": [text, ...],
        "tokens": [text, ...],                  "directions": ["forward"] or ["forward", "backward"],
        "ledger": {"ngrams", "initial", "bias", "remainder", "logit"},  the first four sum to the fifth,
        "token_scores": [a number a token],     they sum to ledger.ngrams
        "ngrams": [{"start", "stop", "order", "text", "direction", "score", "contribution"}, ...]
    }, ...]}

Spans are half-open; numbers are in units of the logit and keep all their digits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution import Attribution
from unrolled.errors import NonFiniteError

__all__ = ["save_json", "to_json"]


def _record(account: Attribution) -> dict[str, object]:
    return {
        "target": account.target,
        "expansion": account.expansion,
        "exact": account.exact,
        "local": account.local,
        "residual": account.residual,
        "parity": account.parity,
        "scope": account.scope,
        "notes": list(account.notes),
        "tokens": list(account.tokens),
        "directions": list(account.directions),
        "ledger": dict(account.ledger),
        "token_scores": account.token_scores.tolist(),
        "ngrams": account.to_records(),
    }


def to_json(accounts: Sequence[Attribution]) -> str:
    """Write accounts as JSON, by the schema above.

    Args:
        accounts: any number of them.

    Returns:
        One JSON object, plain ASCII.

    Raises:
        NonFiniteError: when an account holds NaN or infinity, which JSON cannot write.
    """
    data = {
        "format": "unrolled.accounts",
        "version": 1,
        "accounts": [_record(account) for account in accounts],
    }
    try:
        return json.dumps(data, allow_nan=False, indent=1) + "\n"
    except ValueError as error:
        raise NonFiniteError("an account holds NaN or infinity, which JSON cannot write; expected numbers") from error


def save_json(path: str | os.PathLike[str], accounts: Sequence[Attribution]) -> None:
    """Write accounts to a JSON file, whole or not at all.

    Args:
        path: the file.
        accounts: any number of them.

    Raises:
        NonFiniteError: when an account holds NaN or infinity.
        FileError: when the path cannot be written.
    """
    atomic_write(path, to_json(accounts).encode())
