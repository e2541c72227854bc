"""Increments: one step of any cell as a linear map of what moves."""
