"""Explain any recurrent network exactly.

Each hidden state is a sum of n-gram terms, and every logit is accounted for:
logit = n-grams + initial state + bias + remainder.
"""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"

__all__ = [
    "Account",
    "ChangedWeightsError",
    "Check",
    "ConfigError",
    "ConvergenceError",
    "DataError",
    "Decomposition",
    "DivergedError",
    "Explanation",
    "Explanations",
    "FileError",
    "Ledger",
    "NonFiniteError",
    "ParityError",
    "RandomOperationError",
    "ShapeError",
    "StoppedError",
    "StrictError",
    "UnknownNameError",
    "UnrolledError",
    "UnsupportedOperationError",
    "UsageError",
    "__version__",
    "account",
    "as_cell",
    "cells",
    "check",
    "decompose",
    "explain",
    "explain_batch",
    "load",
    "progress",
]

if _typing.TYPE_CHECKING:
    from unrolled import cells
    from unrolled.decomposition.attribution.ledger import Ledger
    from unrolled.decomposition.decomposition import decompose
    from unrolled.decomposition.result import Decomposition
    from unrolled.errors import (
        ChangedWeightsError,
        ConfigError,
        ConvergenceError,
        DataError,
        DivergedError,
        FileError,
        NonFiniteError,
        ParityError,
        RandomOperationError,
        ShapeError,
        StoppedError,
        StrictError,
        UnknownNameError,
        UnrolledError,
        UnsupportedOperationError,
        UsageError,
    )
    from unrolled.explanation.api import explain, explain_batch
    from unrolled.explanation.explanation import Explanation
    from unrolled.explanation.explanations import Explanations
    from unrolled.explanation.networks.as_cell import as_cell
    from unrolled.laboratory import load
    from unrolled.report.time_left import progress
    from unrolled.whole_model.account import account
    from unrolled.whole_model.check import check
    from unrolled.whole_model.check_result import Check
    from unrolled.whole_model.result import Account
else:
    # Imported on first use: `import unrolled` and `unrolled --help` do not load torch.
    _MODULES = {
        "Account": "unrolled.whole_model.result",
        "Check": "unrolled.whole_model.check_result",
        "Decomposition": "unrolled.decomposition.result",
        "Explanation": "unrolled.explanation.explanation",
        "Explanations": "unrolled.explanation.explanations",
        "Ledger": "unrolled.decomposition.attribution.ledger",
        "account": "unrolled.whole_model.account",
        "as_cell": "unrolled.explanation.networks.as_cell",
        "check": "unrolled.whole_model.check",
        "decompose": "unrolled.decomposition.decomposition",
        "explain": "unrolled.explanation.api",
        "explain_batch": "unrolled.explanation.api",
        "load": "unrolled.laboratory",
        "progress": "unrolled.report.time_left",
    }

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module 'unrolled' has no attribute {name!r}")
        if name == "cells":
            return _importlib.import_module("unrolled.cells")
        return getattr(_importlib.import_module(_MODULES.get(name, "unrolled.errors")), name)

    def __dir__():
        return sorted(__all__)
