"""Show an attribution: on a page, in a figure, in a terminal, in a notebook, as JSON.

All forms use the same colour scale (:mod:`~unrolled.report.colour`) and the same triangle of n-grams: it stands on the
sentence, has one row for each length of n-gram, and the whole sentence is at the top.
"""

import random

_STATE = random.getstate()
import rich.style  # noqa: E402, F401  # when it is first imported it draws from Python's generator, which is the user's

random.setstate(_STATE)
