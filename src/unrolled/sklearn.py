"""Recurrent networks as estimators of scikit-learn, for texts and for sequences of numbers; needs the extra ``lab``."""

from __future__ import annotations

from unrolled.laboratory import estimators

__all__ = ["RecurrentClassifier", "RecurrentRegressor"]

RecurrentClassifier, RecurrentRegressor = estimators()
