"""Affine recurrences s_t = g_t + A_t s_{t-1}, and sweeps over them, forward and back."""
