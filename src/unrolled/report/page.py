"""The page of an explanation: one HTML file that contains everything it shows and loads nothing.

Its JSON data contains no ``<``, so that no token can end the element around it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from markupsafe import Markup

from unrolled.atomic_write import atomic_write
from unrolled.decomposition.attribution.attribution import Attribution
from unrolled.errors import UsageError
from unrolled.file_suffixes import refuse_other_format
from unrolled.report.colour import DARK_SCALE, SCALE, STEPS, shared_limit, text_colour
from unrolled.report.corpus_phrases import CorpusPhrases
from unrolled.report.page_data import TOP, PageExample, chosen, examples_data, numbers_of_alike
from unrolled.report.page_shell import SUFFIXES, environment, policy, script, style, trusted
from unrolled.report.page_view import panel_labels, waterfall_of_ledger
from unrolled.report.spans import largest_phrases

__all__ = ["render_fragment", "render_page", "render_pages", "save_page", "save_pages"]

_TOP_FRAGMENT, _TOP_LINE = 5, 2
"""Numbers of n-grams to list in a notebook, and beside a text in a list that stands without a script."""


def _json(data: object) -> Markup:
    """Return JSON that cannot end the element around it: <, >, & and all non-ASCII as escapes."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return trusted(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def render_page(attributions: Sequence[Attribution], title: str | None = None) -> str:
    """Return attributions of one output, by different expansions, as one self-contained HTML page.

    The triangles hold at most :data:`~unrolled.report.page_data.NUMBERS` numbers. Beyond that the page leaves out
    longer n-grams and says so. The ledger always counts all of them.

    Args:
        attributions: The first is shown first.
        title: The page's heading; by default it contains the target's name.

    Raises:
        UsageError: If there is no attribution, or a sentence is empty.
        NonFiniteError: If an attribution holds NaN or infinity.
    """
    if not attributions:
        raise UsageError("no explanation to show; expected at least one")
    example = PageExample(tuple(attributions))
    shown = chosen(example.first, example.options[0])
    return _render([example], title if title is not None else f"Where “{shown.target}” comes from")


def render_pages(
    examples: Sequence[Sequence[Attribution]], title: str | None = None, phrases: CorpusPhrases | None = None
) -> str:
    """Return the attributions of several sequences as one page, with a list of them and filters.

    Args:
        examples: For each sequence its attributions by one or more expansions.
        title: The page's heading.
        phrases: Phrases of all texts, to show above the list.

    Raises:
        UsageError: If there is no attribution, or a sentence is empty.
        NonFiniteError: If an attribution holds NaN or infinity.
    """
    if not examples or not all(examples):
        raise UsageError("no explanation to show; expected at least one of each example")
    return _render(
        [PageExample(tuple(each)) for each in examples], title if title is not None else "Explanations", phrases
    )


def _render(examples: Sequence[PageExample], title: str, phrases: CorpusPhrases | None = None) -> str:
    data = {
        "steps": STEPS,
        "light": {"scale": SCALE, "inks": [text_colour(c) for c in SCALE]},
        "dark": {"scale": DARK_SCALE, "inks": [text_colour(c) for c in DARK_SCALE]},
        "items": examples_data(examples),
    }
    first, sheet, program = examples[0], style(), script()
    shown = [chosen(attribution, first.options[0]) for attribution in first.attributions]
    listed = [chosen(example.first, example.options[0]) for example in examples]
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            phrases=phrases,
            examples=[
                {"number": number, "shown": each, "top": largest_phrases(each, _TOP_LINE)}
                for number, each in zip(numbers_of_alike(examples), listed, strict=True)
            ],
            panels=[
                {
                    "label": label,
                    "attribution": attribution,
                    "bars": waterfall_of_ledger(attribution.ledger, attribution.unit, attribution.name),
                    "top": largest_phrases(attribution, TOP),
                    "limit": shared_limit([attribution], "token"),
                }
                for label, attribution in zip(panel_labels(first.attributions), shown, strict=True)
            ],
            data=_json(data),
            style=sheet,
            script=program,
            policy=policy(style=sheet, script=program),
        )
    )


def save_page(path: str | os.PathLike[str], attributions: Sequence[Attribution]) -> None:
    """Write the page of :func:`render_page` to a file, whole or not at all."""
    refuse_other_format(path, *SUFFIXES)
    atomic_write(path, render_page(attributions).encode())


def save_pages(
    path: str | os.PathLike[str],
    examples: Sequence[Sequence[Attribution]],
    title: str | None,
    phrases: CorpusPhrases | None = None,
) -> None:
    """Write the page of :func:`render_pages` to a file, whole or not at all."""
    refuse_other_format(path, *SUFFIXES)
    atomic_write(path, render_pages(examples, title, phrases).encode())


def render_fragment(attribution: Attribution) -> str:
    """Return an attribution as one ``<div>`` for a notebook, without script or style sheet."""
    limit = shared_limit([attribution], "token")
    return (
        environment()
        .get_template("fragment.html")
        .render(
            attribution=attribution,
            limit=limit,
            top=largest_phrases(attribution, _TOP_FRAGMENT),
            bars=waterfall_of_ledger(attribution.ledger, attribution.unit, attribution.name),
            scale=[(c, text_colour(c)) for c in SCALE],
        )
    )
