"""CoNLL with tabs, CoNLL-U and CoNLL-U Plus are read as people have them."""

from __future__ import annotations

import pytest

from unrolled.errors import DataError, UnknownNameError, UsageError
from unrolled.lab.data.corpus import Tagging
from unrolled.lab.data.formats import read_files
from unrolled.lab.data.reading import Reading
from written_tables import save


def test_tab_separated_conll_may_have_spaces_inside_a_token(tmp_path):
    rows = "New York\tNNP\tB-LOC\nis\tVBZ\tO\n\nin Los Angeles\tNNP\tB-LOC\n\n" * 10
    corpus = read_files(Tagging, [save(tmp_path, "a.conll", rows)])
    assert {token for sentence in corpus.train for token in sentence.tokens} == {"New York", "is", "in Los Angeles"}
    middle = read_files(Tagging, [tmp_path / "a.conll"], reading=Reading(label_column="2"))
    assert {tag for sentence in middle.train for tag in sentence.tags} == {"NNP", "VBZ"}
    with pytest.raises(UsageError, match=r"column 7 is asked for, but .* has 3 columns"):
        read_files(Tagging, [tmp_path / "a.conll"], reading=Reading(label_column="7"))


CONLLU = """\
# sent_id = 1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tirse\t_\tVERB\t_\t_\t_\t_\t_\t_
3\tal mar\tmar\tNOUN\tN\t_\t1\tobl\t_\tSpaceAfter=No

"""


def test_conllu_columns_have_names_and_comments_ranges_and_empty_nodes_are_no_tokens(tmp_path):
    path = save(tmp_path, "a.conllu", CONLLU * 12)
    corpus = read_files(Tagging, [path])
    assert corpus.train[0].tokens == ("Vamos", "nos", "al mar")
    assert corpus.train[0].tags == ("VERB", "PRON", "NOUN")
    other = read_files(Tagging, [path], reading=Reading(text_column="lemma", label_column="DEPREL"))
    assert (other.train[0].tokens[0], other.train[0].tags) == ("ir", ("root", "obj", "obl"))
    with pytest.raises(UnknownNameError, match="did you mean 'upos'"):
        read_files(Tagging, [path], reading=Reading(label_column="upso"))
    with pytest.raises(DataError, match=r"12 rows without a tag on every line"):
        read_files(Tagging, [path], reading=Reading(label_column="feats"))


def test_conllu_plus_names_its_own_columns(tmp_path):
    content = "# global.columns = FORM NER\n" + "Ann\tB-PER\nsings\tO\n\n" * 12
    corpus = read_files(
        Tagging, [save(tmp_path, "a.conllu", content)], reading=Reading(label_column="ner", text_column="form")
    )
    assert corpus.spans
    assert corpus.train[0].tags == ("S-PER", "O")


TAGGED = "Anna\tNNP\tB-PER\nsees\tVBZ\tO\n\nBoris\tNNP\tB-PER\nwaits\tVBZ\tO\n\n" * 10


def test_the_columns_of_tokens_and_tags_are_told(tmp_path):
    path = save(tmp_path, "a.conll", TAGGED)
    (note,) = read_files(Tagging, [path]).notes
    assert note == f"{path}: tokens from column 1 (4 different), tags from the last column (2 different)"
    turned = Reading(text_column="3", label_column="1")
    (note,) = read_files(Tagging, [path], reading=turned).notes
    assert "tokens from column 3 (2 different), tags from column 1 (4 different); if that is the wrong way" in note


@pytest.mark.parametrize("comments", ["", "# sent_id = 1\n# text = x\n"])
def test_conllu_of_another_name_is_told(tmp_path, comments):
    body = CONLLU[CONLLU.index("1-2") :]
    path = save(tmp_path, "a.conll", (comments + body) * 12)
    with pytest.raises(DataError, match=r"found the ten columns of CoNLL-U; pass --format conllu, or give"):
        read_files(Tagging, [path])
    assert read_files(Tagging, [path], format="conllu").train[0].tags == ("VERB", "PRON", "NOUN")


def test_columns_behind_numbers_are_read_where_they_are_named(tmp_path):
    """The control: the columns of the older CoNLL-X are ten as well."""
    rows = "".join(f"{n}\t{word}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n" for n, (word, tag) in enumerate(["aA", "bB"], 1))
    path = save(tmp_path, "a.conll", f"{rows}\n" * 12)
    corpus = read_files(Tagging, [path], reading=Reading(text_column="2", label_column="4"))
    assert (corpus.train[0].tokens, corpus.train[0].tags) == (("a", "b"), ("A", "B"))
