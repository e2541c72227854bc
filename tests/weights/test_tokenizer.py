"""A tokenizer.json gives the tokens of a whole text and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unrolled.errors import DataError
from unrolled.weights.tokenizer import Tokenizer

tokenizers = pytest.importorskip("tokenizers", reason="needs the extra [tokenizers]")

WORDS = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "not": 4, "a": 5, "bad": 6, "film": 7}


def made(words: dict[str, int] = WORDS, **options: Any) -> Any:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, **{"unk_token": "[UNK]"} | options))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def read(tmp_path: Path, tokenizer: Any) -> Tokenizer:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return Tokenizer.of(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("change", ["padding", "truncation"])
def test_a_text_is_neither_padded_nor_cut_as_the_file_says(tmp_path: Path, change: str) -> None:
    tokenizer = made()
    if change == "padding":
        tokenizer.enable_padding(length=6)
    else:
        tokenizer.enable_truncation(max_length=2)
    assert len(tokenizer.encode("not a bad film").ids) != 4  # the control: the file does
    assert read(tmp_path, tokenizer).encode("not a bad film") == (("not", "a", "bad", "film"), (4, 5, 6, 7))


def test_marks_are_named_and_not_read(tmp_path: Path) -> None:
    tokenizer = made()
    assert read(tmp_path, tokenizer).marks == ()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marking = read(tmp_path, tokenizer)
    assert marking.marks == ("[CLS]", "[SEP]")
    assert marking.encode("a film")[0] == ("a", "film")


def test_indices_without_a_token_count(tmp_path: Path) -> None:
    """A model's embedding has a row for each index, also for those that its vocabulary has lost."""
    assert len(read(tmp_path, made())) == 8
    assert len(read(tmp_path, made({**WORDS, "late": 12}))) == 13


def test_a_word_that_a_tokenizer_without_an_unknown_word_lacks_is_refused(tmp_path: Path) -> None:
    tokenizer = read(tmp_path, made({"a": 0, "film": 1}, unk_token="<none>"))
    assert tokenizer.encode("a film")[1] == (0, 1)
    with pytest.raises(DataError, match=r"cannot split 'a bad film'"):
        tokenizer.encode("a bad film")


def test_tokens_of_bytes_are_shown_as_the_text_that_they_stand_for(tmp_path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|é|>"])
    tokenizer.train_from_iterator(["un café noir"] * 9, trainer)
    text = "un café noir\n猫<|é|>"
    assert tokenizer.encode(text).tokens[1] == "ĠcafÃ©"  # the control
    for given in (read(tmp_path, tokenizer), Tokenizer.of(tokenizer)):
        tokens, numbers = given.encode(text)
        assert tokens == ("un", " café", " noir", "\n", "\\xe7", "\\x8c", "\\xab", "<|é|>")
        assert numbers == tuple(tokenizer.encode(text).ids)


def test_tokens_of_characters_are_shown_as_they_are(tmp_path: Path) -> None:
    tokens = read(tmp_path, made({**WORDS, "cafÃĬ": 8})).encode("a cafÃĬ")[0]
    assert tokens == ("a", "cafÃĬ")
