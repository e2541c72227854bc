"""The methods of captum, a package that need not be installed."""

from __future__ import annotations

from typing import Any

from unrolled.errors import UsageError

__all__ = ["load_captum"]


def load_captum() -> Any:
    """Import the module of captum's methods; UsageError if captum is not installed."""
    try:
        import captum.attr
    except ImportError as error:
        raise UsageError('this method needs captum; install it with: pip install "unrolled[compare]"') from error
    return captum.attr
