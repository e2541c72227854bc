"""``unrolled explain --weights``: a file of weights and a vocabulary, as somebody else would have them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

Command = Callable[..., Any]
WORDS = ("not", "a", "bad", "film", "it", "is", "good", ".")


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, Path]:
    """A file of weights and a vocabulary, as somebody else would have them."""
    torch.manual_seed(2)
    words = ["<unk>", *WORDS]
    parts = {"emb": nn.Embedding(len(words), 4), "core": nn.LSTM(4, 5), "fc": nn.Linear(5, 3)}
    save_file(nn.ModuleDict(parts).state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    return tmp_path / "net.safetensors", tmp_path / "vocab.txt"


def only_account(path: Path) -> dict[str, Any]:
    (account,) = json.loads(path.read_text())["accounts"]
    return account


def test_marks_that_a_tokenizer_would_add_are_named(unrolled: Command, bare: tuple[Path, Path], tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra [tokenizers]")
    words = {word: index for index, word in enumerate(bare[1].read_text().split())}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()

    def notes() -> str:
        made.save(str(tmp_path / "tokenizer.json"))
        path = tmp_path / "it.json"
        options = ("--vocab", tmp_path / "tokenizer.json", "--target", 2, "--json", path, "--force")
        assert unrolled("explain", "--weights", bare[0], *options, "it is not bad").status == 0
        record = only_account(path)
        assert record["tokens"] == ["it", "is", "not", "bad"]
        return " ".join(record["notes"])

    assert "marks" not in notes()
    made.post_processor = tokenizers.processors.TemplateProcessing(single="it $A", special_tokens=[("it", words["it"])])
    assert "without the tokenizer's marks it, which the model may have read" in notes()


def test_a_bare_network_is_explained(unrolled: Command, bare: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    done = unrolled(
        "explain",
        "--weights",
        bare[0],
        "--vocab",
        bare[1],
        "it is not bad zzyzx",
        "--json",
        path,
        "--target",
        2,
    )
    assert (done.status, done.err) == (0, "")
    record = only_account(path)
    assert record["tokens"][-1] == "zzyzx†"
    assert record["target"] == "class 2"
    assert all(f"class {k} " in done.out for k in range(3))
    assert abs(record["ledger"]["remainder"]) < 1e-4 * abs(record["ledger"]["logit"])


def test_words_name_the_outputs_of_a_language_model(unrolled: Command, tmp_path: Path) -> None:
    torch.manual_seed(2)
    for outputs in (len(WORDS), len(WORDS) + 3):
        parts = {"emb": nn.Embedding(len(WORDS), 4), "core": nn.LSTM(4, 5), "fc": nn.Linear(5, outputs)}
        save_file(nn.ModuleDict(parts).state_dict(), tmp_path / f"{outputs}.safetensors")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")

    def explained(outputs: int, *options: object) -> Any:
        files = ("--weights", tmp_path / f"{outputs}.safetensors", "--vocab", tmp_path / "vocab.txt")
        return unrolled("explain", *files, *options, "it is not bad", "--force")

    path = tmp_path / "it.json"
    named = explained(len(WORDS), "--target", "film", "--against", "good", "--json", path)
    assert (named.status, named.err) == (0, "")
    assert only_account(path)["target"] == "film rather than good"
    assert explained(len(WORDS), "--target", 3, "--json", path).status == 0
    assert only_account(path)["target"] == "film"
    explained(len(WORDS), "--target", "zzyzx").assert_refused(2, "unknown class 'zzyzx'", "film")
    explained(len(WORDS) + 3, "--target", "film").assert_refused(2, "unknown class 'film'; expected one of: 0, 1, 2, 3")


def test_weights_and_vocabulary_belong_together(unrolled: Command, bare: tuple[Path, Path], reviews: Path) -> None:
    unrolled("explain", "--weights", bare[0], "bad").assert_refused(2, "--weights needs --vocab")
    unrolled("explain", "--vocab", bare[1], reviews / "runs" / "reviews", "bad").assert_refused(
        2, "--vocab describes a file of weights; give --weights FILE"
    )
    unrolled("explain", "--head", "fc", reviews / "runs" / "reviews", "bad").assert_refused(
        2, "--head describes a file of weights; give --weights FILE"
    )


def test_a_bare_network_takes_no_position(unrolled: Command, bare: tuple[Path, Path]) -> None:
    words = ("explain", "--weights", bare[0], "--vocab", bare[1], "it is bad")
    assert unrolled(*words).status == 0
    unrolled(*words, "--at", 0).assert_refused(2, "--at is 0, but a file of weights has one output; leave out --at")


def test_outputs_of_a_bare_network_are_named(unrolled: Command, bare: tuple[Path, Path], tmp_path: Path) -> None:
    words = ("explain", "--weights", bare[0], "--vocab", bare[1], "it is bad")
    path = tmp_path / "it.json"
    done = unrolled(*words, "--classes", "bad, fair, good", "--target", "good", "--against", "bad", "--json", path)
    assert (done.status, done.err) == (0, "")
    assert only_account(path)["target"] == "good rather than bad"
    assert all(name in done.out.splitlines()[0] for name in ("bad ", "fair ", "good "))
    unrolled(*words, "--classes", "bad,fair,good", "--target", "god").assert_refused(2, "class", "'god'", "good")
    unrolled(*words, "--classes", "bad,good").assert_refused(2, "--classes names 2 outputs; expected 3")
    unrolled(*words, "--classes", "bad,good,bad").assert_refused(2, "expected a name of its own for each output")


def test_one_output_is_no_class(unrolled: Command, bare: tuple[Path, Path], tmp_path: Path) -> None:
    tensors = load_file(bare[0])
    for outputs in (1, 2):
        heads = {"fc.weight": tensors["fc.weight"][:outputs], "fc.bias": tensors["fc.bias"][:outputs]}
        save_file(tensors | heads, tmp_path / f"{outputs}.safetensors")

    def explained(outputs: int, *options: object) -> Any:
        files = ("--weights", tmp_path / f"{outputs}.safetensors", "--vocab", bare[1])
        done = unrolled("explain", *files, *options, "not bad")
        assert done.status == 0, done.err
        return done.out

    one = explained(1)
    assert one.startswith("output ")
    assert "class 0" not in one
    assert explained(1, "--target", "output") == explained(1, "--target", 0) == one
    assert explained(1, "--classes", "positive").startswith("output: positive ")
    assert "class 0" in explained(2)  # control: two outputs are classes


def test_a_cell_in_a_loop_is_explained(unrolled: Command, bare: tuple[Path, Path], tmp_path: Path) -> None:
    tensors = {name.replace("_l0", ""): tensor for name, tensor in load_file(bare[0]).items()}
    save_file(tensors, tmp_path / "cell.safetensors")
    path, other = tmp_path / "it.json", tmp_path / "other.json"
    rest = ("--vocab", bare[1], "it is not bad", "--json")
    assert unrolled("explain", "--weights", bare[0], *rest, path).status == 0
    assert unrolled("explain", "--weights", tmp_path / "cell.safetensors", *rest, other).status == 0
    assert only_account(path)["ledger"] == only_account(other)["ledger"]
    assert "cells taken for layers, the first reads the words: core" in only_account(other)["notes"]


def test_bad_weights_are_refused(unrolled: Command, bare: tuple[Path, Path]) -> None:
    def refused(status: int, *expected: str) -> None:
        unrolled("explain", "--weights", bare[0], "--vocab", bare[1], "bad").assert_refused(status, *expected)

    tensors = load_file(bare[0])
    tensors["fc.weight"][0, 0] = math.nan
    save_file(tensors, bare[0])
    refused(65, "fc.weight holds NaN")
    bare[0].write_bytes(bare[0].read_bytes()[:100])
    refused(65, "is truncated")
    bare[0].unlink()
    refused(74, "net.safetensors")


def test_a_vocabulary_that_does_not_fit_is_refused(unrolled: Command, bare: tuple[Path, Path]) -> None:
    bare[1].write_text("bad\ngood\n")
    unrolled("explain", "--weights", bare[0], "--vocab", bare[1], "bad").assert_refused(65, "2 words", "[9, 4]")
    done = unrolled("explain", "--weights", bare[0], "--vocab", bare[1], "--embedding", "emb.weight", "bad")
    assert "the embedding has 9 rows and the vocabulary 2 words" in " ".join(done.out.split())
    bare[1].unlink()
    unrolled("explain", "--weights", bare[0], "--vocab", bare[1], "bad").assert_refused(74, "vocab.txt")
