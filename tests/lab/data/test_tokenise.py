from __future__ import annotations

import pytest

from unrolled.lab.data.tokenise import tokenise, tokenise_unknown

CASES = {
    "I don't like it, it's awful!": "I do n't like it , it 's awful !",
    "It isn't; they can't, won't and couldn't've.": "It is n't ; they ca n't , wo n't and could n't 've .",
    "You cannot; gonna, gotta": "You can not ; gon na , got ta",
    "we’re, I’ll, she'd, I'm": "we 're , I 'll , she 'd , I 'm",
    'He said "no way" -- really...': "He said `` no way '' -- really ...",
    "a 'small' film": "a ` small ' film",
    "the dogs' dinner": "the dogs ' dinner",
    "Mr. Smith's U.S. film (2002)": "Mr. Smith 's U.S. film ( 2002 )",
    "director J. Doe": "director J. Doe",
    "Plan B.": "Plan B .",
    "1,000.50 and 9/11, the '70s": "1,000.50 and 9/11 , the '70s",
    "well-made and/or co-writer": "well-made and/or co-writer",
    "rock 'n' roll": "rock 'n' roll",
    "naïve café": "naïve café",
    "gro\u0308\u00dfer": "gro\u0308\u00dfer",  # decomposed, as file names of macOS are
    "नमस्ते, दुनिया!": "नमस्ते , दुनिया !",
    "كِتَابٌ جَمِيل": "كِتَابٌ جَمِيل",
    "می\u200cخواهم Fuß\xadball": "می\u200cخواهم Fuß\xadball",
    "良い映画です。東京2 한국어": "良 い 映 画 で す 。 東 京 2 한국어",
    "か\u3099": "か\u3099",
    "good👍🏽❤️1️⃣👨\u200d👩\u200d👧🇩🇪🇫🇷": "good 👍🏽 ❤️ 1️⃣ 👨\u200d👩\u200d👧 🇩🇪 🇫🇷",
    "<b>not</b>": "< b > not < / b >",
    "  spaces \t everywhere\n": "spaces everywhere",
    "": "",
}


@pytest.mark.parametrize(("sentence", "tokens"), CASES.items())
def test_sentences_are_cut_as_treebanks_cut_them(sentence, tokens):
    assert tokenise(sentence) == tokens.split()


@pytest.mark.parametrize("tokens", CASES.values())
def test_text_that_is_cut_comes_back_as_it_was(tokens):
    assert tokenise(tokens) == tokens.split()


@pytest.mark.parametrize(
    "line",
    [
        'he said "the cat sees" .',
        '"no" , "no way" and "don\'t go".',
        'one " mark',
        "it's 'fine' , mr. j. smith can't",
    ],
)
def test_pieces_that_are_not_known_are_split_as_in_the_whole_line(line):
    whole = tokenise(line)
    assert tokenise_unknown(line, set()) == whole
    assert tokenise_unknown(line, set(whole)) == whole
    assert tokenise_unknown(" ".join(whole), set(whole)) == whole


def test_a_known_piece_stays_whole_and_opens_no_quotation():
    assert tokenise_unknown('a<b " c"', {"a<b", '"'}) == ["a<b", '"', "c", "``"]
    assert tokenise_unknown("a<b", set()) == ["a", "<", "b"]
