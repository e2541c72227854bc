"""Recurrent networks as estimators of scikit-learn; ``unrolled.sklearn`` is their public name."""
