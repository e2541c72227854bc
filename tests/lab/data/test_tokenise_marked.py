from __future__ import annotations

import pytest

from unrolled.errors import DataError
from unrolled.lab.data.tokenise import ENTITY_MARKERS, tokenise, tokenise_marked


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The <e1>fire</e1> came from a <e2>spark</e2>.", "The <e1> fire </e1> came from a <e2> spark </e2> ."),
        ('<e2>Mr. Poe</e2>\'s "<e1>raven</e1>"', "<e2> Mr. Poe </e2> 's `` <e1> raven </e1> ''"),
        ("un<e1>told</e1>able <e2>can't</e2>", "un <e1> told </e1> able <e2> ca n't </e2>"),
        ("\ue000<e1>a</e1> <e2>b\ue003c</e2>", "<e1> a </e1> <e2> b c </e2>"),
    ],
)
def test_markers_are_tokens_and_the_rest_is_cut_as_ever(text, tokens):
    assert tokenise_marked(text) == tuple(tokens.split(" "))


def test_without_its_markers_a_text_has_the_tokens_it_always_had():
    text = 'He said: "the <e1>cat</e1> isn\'t on <e2>the mat</e2>".'
    plain = text
    for marker in ENTITY_MARKERS:
        plain = plain.replace(marker, "")
    assert [token for token in tokenise_marked(text) if token not in ENTITY_MARKERS] == tokenise(plain)
    assert "<e1>" not in tokenise(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no entity", "found no marker"),
        ("<e1>a</e1>", "found <e1> </e1>"),
        ("<e1>a <e2>b</e1> c</e2>", "found <e1> <e2> </e1> </e2>"),
        ("<e1>a</e1> <e2>b</e2> <e2>c</e2>", "found <e1> </e1> <e2> </e2> <e2> </e2>"),
        ("<e1>a<e1> <e2>b</e2>", "found <e1> <e1> <e2> </e2>"),
        ("<e1>a</e1> <e2> </e2>", "expected a word between <e2> and </e2>, found none"),
        ("<E1>a</E1> <e2>b</e2>", "found <e2> </e2>"),
    ],
)
def test_other_markers_are_refused(text, found):
    with pytest.raises(DataError, match=found):
        tokenise_marked(text)
