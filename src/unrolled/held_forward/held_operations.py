"""Operations whose results are held, in an account and by the expansion ``shares`` alike."""

from __future__ import annotations

__all__ = ["ANSWERS", "HELD_OPERATIONS", "MULTIPLIERS", "ROUNDING_OPERATIONS"]

MULTIPLIERS = frozenset(
    "softmax _softmax softmin _safe_softmax exp exp2 rsqrt reciprocal cos log log2 log10 logsumexp logcumsumexp "
    "logaddexp logaddexp2 lgamma digamma polygamma acosh atan2 var std cumprod sign sgn heaviside floor_divide tan "
    "acos cosh bernoulli multinomial poisson inverse linalg_inv linalg_inv_ex linalg_pinv pinverse matrix_exp "
    "linalg_matrix_exp".split()
)
"""Operations whose results multiply value, as decays and weights of attention do."""
ROUNDING_OPERATIONS = frozenset("round floor ceil trunc".split())
"""Operations whose results may become ids."""
ANSWERS = frozenset(
    "gt ge lt le eq ne isclose isnan isinf isfinite signbit any all count_nonzero nonzero unique argmax argmin "
    "argsort searchsorted bucketize bool long int short byte char logical_and logical_or logical_not "
    "logical_xor".split()
)
"""Operations that answer by the numbers of their operands: an answer carries no value."""
HELD_OPERATIONS = MULTIPLIERS | ROUNDING_OPERATIONS | ANSWERS
