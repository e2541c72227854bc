"""What case and digits say of a word, when the word itself is looked up in lower case.

Source:
    Collobert et al. (2011), Natural Language Processing (Almost) from Scratch, arXiv:1103.0398, section 3.1.2, whose
    "caps" feature this is, with classes for digits.
"""

from __future__ import annotations

__all__ = ["SHAPES", "word_shape"]

SHAPES = ("", "lower", "Capital", "UPPER", "miXed", "1985", "b4", ".")
"""An example of each shape by its index; 0 is padding."""


def word_shape(token: str) -> int:
    """Tell a token's shape.

    Args:
        token: as it is written.

    Returns:
        An index into :data:`SHAPES`, from 1 on.

    Example:
        >>> [SHAPES[word_shape(token)] for token in ("Ms.", "EU", "of", "22-year-old", "3,000", "-")]
        ['Capital', 'UPPER', 'lower', 'b4', '1985', '.']
    """
    letters = "".join(sign for sign in token if sign.isalpha())
    if any(sign.isdigit() for sign in token):
        shape = "b4" if letters else "1985"
    elif not letters:
        shape = "."
    elif letters == letters.lower():
        shape = "lower"
    elif letters == letters.upper():
        shape = "UPPER"
    elif letters[1:] == letters[1:].lower():
        shape = "Capital"
    else:
        shape = "miXed"
    return SHAPES.index(shape)
