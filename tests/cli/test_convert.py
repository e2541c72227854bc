"""A checkpoint becomes safetensors, and no code in it ever runs."""

from __future__ import annotations

import pickle
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.torch_version import TorchVersion

from unrolled.cli.convert import SAFE

Command = Callable[..., Any]

safe = pytest.mark.skipif(torch.__version__ < SAFE, reason="unrolled convert refuses this torch")


def assert_holds(path: Path, expected: dict[str, torch.Tensor]) -> None:
    found = load_file(path)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


@safe
@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"state_dict": state, "optimizer": {"momentum": torch.zeros(2)}},
        lambda state: {"state_dict": state, "best_acc1": torch.tensor(0.9)},
        lambda state: {"model_state_dict": state, "loss": torch.tensor(0.3), "scaler": {"scale": torch.tensor(2.0)}},
        lambda state: {"model": state, "optimizer": {"lr": 0.1}},
        lambda state: {"checkpoint": {"model": state, "epoch": 3}},
        lambda state: {"model": state, "optimizer": {"state": {0: {"exp_avg": torch.ones(2)}}, "lr": 0.1}},
        lambda state: [state, {"state": {0: {"exp_avg": torch.ones(2)}}, "lr": 0.1}],
        lambda state: {"epoch": 3, "networks": (state,)},
    ],
    ids=[
        "bare",
        "beside a number",
        "beside other tensors",
        "beside a tensor",
        "under another name, beside the last loss",
        "under another name",
        "two levels down",
        "beside an optimiser",
        "in a list",
        "in a tuple within",
    ],
)
def test_the_state_dict_is_found(unrolled: Command, tmp_path: Path, wrap: Callable[..., object]) -> None:
    state = nn.GRU(3, 4, num_layers=2).state_dict()
    torch.save(wrap(dict(state)), tmp_path / "model.pt")
    done = unrolled("convert", tmp_path / "model.pt", tmp_path / "model.safetensors")
    assert (done.status, done.err) == (0, "")
    assert "8 tensors, 228 numbers" in done.out
    assert_holds(tmp_path / "model.safetensors", state)


@safe
def test_single_numbers_alone_are_what_the_file_holds(unrolled: Command, tmp_path: Path) -> None:
    numbers = {"scale": torch.tensor(2.0), "shift": torch.tensor(1.0)}
    torch.save(numbers, tmp_path / "model.pt")
    assert unrolled("convert", tmp_path / "model.pt", tmp_path / "model.safetensors").status == 0
    assert_holds(tmp_path / "model.safetensors", numbers)


@safe
def test_what_is_left_out_is_named(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"epoch": 3, "weights": {"w": torch.ones(2), "step": 7}}, tmp_path / "m.pt")
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert "left out: epoch, weights.step" in done.out
    assert "m.safetensors: 1 tensor, 2 numbers" in done.out
    state = {"a": torch.ones(1), "b": {"c": {"d": torch.ones(2)}}, "e": 1}
    torch.save(state, tmp_path / "m.pt")
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "n.safetensors", "--key", "b.c")
    assert "left out: a, e" in done.out
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "o.safetensors", "--key", ".")
    assert "left out: b, e" in done.out


@safe
def test_safetensors_do_not_get_the_suffix_of_a_checkpoint(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "m.ckpt")
    wrong = unrolled("convert", tmp_path / "m.ckpt", tmp_path / "m.pt")
    wrong.assert_refused(2, "m.pt would hold the format of .safetensors, not of .pt")
    assert not (tmp_path / "m.pt").exists()
    assert unrolled("convert", tmp_path / "m.ckpt", tmp_path / "m").status == 0
    assert_holds(tmp_path / "m", {"w": torch.ones(2)})


@safe
def test_no_file_is_replaced_unasked_and_the_checkpoint_never(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "m.pt")
    (tmp_path / "words.list").write_text("mine")
    (tmp_path / "link.pt").symlink_to(tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "words.list").assert_refused(2, "already exists", "--force")
    assert (tmp_path / "words.list").read_text() == "mine"
    for same in ("m.pt", "link.pt"):
        unrolled("convert", tmp_path / "m.pt", tmp_path / same, "--force").assert_refused(2, "the checkpoint itself")
    assert set(torch.load(tmp_path / "m.pt")) == {"w"}
    assert unrolled("convert", tmp_path / "m.pt", tmp_path / "words.list", "--force").status == 0
    assert_holds(tmp_path / "words.list", {"w": torch.ones(2)})


@safe
def test_tied_transposed_and_sparse_tensors_come_out_whole(unrolled: Command, tmp_path: Path) -> None:
    weight = torch.randn(3, 4)
    torch.save({"a": weight, "b": weight, "c": weight.T, "d": weight.to_sparse()}, tmp_path / "m.pt")
    assert unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").status == 0
    assert_holds(tmp_path / "m.safetensors", {"a": weight, "b": weight, "c": weight.T, "d": weight})


@safe
def test_several_state_dicts_are_asked_about(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"encoder": {"w": torch.ones(2)}, "decoder": {"w": torch.zeros(2)}}, tmp_path / "m.pt")
    words = ("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    unrolled(*words).assert_refused(2, "encoder, decoder", "--key")
    torch.save({"net.ema": {"w": torch.ones(2)}, "mean": {"w": torch.zeros(2)}}, tmp_path / "d.pt")
    unrolled("convert", tmp_path / "d.pt", words[2]).assert_refused(2, "net.ema, mean", "--key")
    unrolled(*words, "--key", "coder").assert_refused(2, "'coder'", "encoder, decoder")
    torch.save({"model": {"w": torch.zeros(2)}, "rng": torch.ones(3)}, tmp_path / "r.pt")
    unrolled("convert", tmp_path / "r.pt", words[2]).assert_refused(2, "., model", "the file itself", "--key")
    assert unrolled(*words, "--key", "decoder").status == 0
    assert_holds(tmp_path / "m.safetensors", {"w": torch.zeros(2)})


class Trap:
    """A pickle that would write a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


@safe
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_with_code_in_it_is_refused_and_not_run(unrolled: Command, tmp_path: Path, zipped: bool) -> None:
    state = {"state_dict": {"w": Trap(tmp_path / "sprung")}}
    torch.save(state, tmp_path / "m.pt", _use_new_zipfile_serialization=zipped)
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    done.assert_refused(65, "could run code", "state_dict()")
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


@safe
def test_a_foreign_pickle_is_refused_in_one_line(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"w": [1, Namespace(lr=0.1)]}, protocol=4))
    done = unrolled("convert", tmp_path / "m.pkl", tmp_path / "m.safetensors")
    done.assert_refused(65, "could run code")
    assert done.err.count("\n") == 1


def scripted(model: nn.Module, path: Path) -> Callable[[], object]:
    torch.jit.save(torch.jit.script(model), path)
    return lambda: torch.jit.load(path).state_dict()


def exported(model: nn.Module, path: Path) -> Callable[[], object]:
    torch.export.save(torch.export.export(model, (torch.ones(1, 2),)), path)
    return lambda: torch.export.load(path).state_dict


@safe
@pytest.mark.filterwarnings("ignore")  # torch's, of TorchScript
@pytest.mark.parametrize(
    ("save", "kind", "weights"),
    [
        (scripted, "a TorchScript program", "torch.jit.load({!r}).state_dict()"),
        (exported, "a program of torch.export", "torch.export.load({!r}).state_dict,"),
    ],
)
def test_a_program_is_refused_with_the_way_to_its_weights(
    unrolled: Command, tmp_path: Path, save: Callable[..., Callable[[], object]], kind: str, weights: str
) -> None:
    model, path = nn.Linear(2, 3), tmp_path / "it's a model.pt2"
    advice = save(model, path)
    done = unrolled("convert", path, tmp_path / "m.safetensors")
    done.assert_refused(65, kind, f"torch.save({weights.format(str(path))}")
    torch.save(advice(), tmp_path / "weights.pt")
    assert unrolled("convert", tmp_path / "weights.pt", tmp_path / "m.safetensors").status == 0
    assert_holds(tmp_path / "m.safetensors", dict(model.state_dict()))


@safe
@pytest.mark.parametrize(
    ("what", "expected"),
    [([1, 2], "holds a list"), (torch.ones(2), "holds a Tensor"), ({"epoch": 3}, "no tensors in the file")],
)
def test_what_holds_no_weights_is_refused(unrolled: Command, tmp_path: Path, what: object, expected: str) -> None:
    torch.save(what, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").assert_refused(65, expected)


@safe
def test_a_mapping_that_holds_itself_is_refused(unrolled: Command, tmp_path: Path) -> None:
    state: dict[str, object] = {"w": torch.ones(2)}
    state["itself"] = state
    torch.save(state, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").assert_refused(65, "each within the next")


@safe
@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ({0: torch.ones(2)}, "m.pt: the key of a tensor is 0; expected names"),
        ({"model": {0: torch.ones(2)}}, "m.pt: the key of a tensor is 0; expected names"),
        ({"w": torch.ones(2, dtype=torch.complex128)}, "w is a tensor of a kind that safetensors does not hold (c"),
        ({"a": torch.ones(2), "w": torch.ones(2, device="meta")}, "hold (float32, strided, meta)"),
        ({"__metadata__": torch.ones(2)}, "key of a tensor is '__metadata__', which a safetensors file cannot hold"),
        ({"\ud800": torch.ones(2)}, "which a safetensors file cannot hold; rename it"),
    ],
)
def test_tensors_without_a_place_in_safetensors_are_refused_by_name(
    unrolled: Command, tmp_path: Path, tensors: object, expected: str
) -> None:
    torch.save(tensors, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").assert_refused(65, expected)
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


@safe
def test_a_tensor_that_does_not_fit_into_memory_is_of_no_odd_kind(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(1).expand(10**7, 10**7)}, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").assert_refused(2, "not enough memory")


@safe
def test_keys_of_what_is_no_weight_may_be_numbers(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.ones(2)}, "optimizer": {0: torch.zeros(2)}, 7: "seed"}, tmp_path / "m.pt")
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors", "--key", "model")
    assert (done.status, done.out.splitlines()[1:]) == (0, ["left out: optimizer, 7"])


@safe
@pytest.mark.filterwarnings("ignore")  # torch's, of its own old storage and of quantisation
def test_a_quantised_tensor_is_refused(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"w": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)}, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors").assert_refused(65, "m.pt: w is a", "(quint8,")


@safe
@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization:DeprecationWarning")
def test_packed_weights_of_a_quantised_model_are_named_as_that(unrolled: Command, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3))
    for network, said in (
        (
            torch.ao.quantization.quantize_dynamic(nn.ModuleDict({"rnn": nn.LSTM(2, 3)})),
            "of a quantised model; convert",
        ),
        (model, None),
    ):
        torch.save(network.state_dict(), tmp_path / "model.pt")
        done = unrolled("convert", tmp_path / "model.pt", tmp_path / "w.safetensors")
        if said is None:
            assert done.status == 0
        else:
            done.assert_refused(65, said)


@safe
def test_truncated_and_foreign_files_are_refused(unrolled: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.save({"w": torch.ones(1000)}, path)
    whole = path.read_bytes()
    entry = whole.index(b"PK\x01\x02")  # the first one of the archive's list: versions, flags, and later the name
    misnamed = bytearray(whole)
    misnamed[entry + 9] |= 8  # the name is in UTF-8
    misnamed[entry + 46] = 0xFF
    foreign = (b"", whole[:10], whole[: len(whole) // 2], b"hello, world", b"\x80", bytes(misnamed))
    for content in foreign:
        path.write_bytes(content)
        unrolled("convert", path, tmp_path / "m.safetensors").assert_refused(65, "m.pt")
    assert [each.name for each in tmp_path.iterdir()] == ["m.pt"]


@safe
def test_files_that_cannot_be_read_or_written(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "m.pt")
    unrolled("convert", tmp_path / "none.pt", tmp_path / "a").assert_refused(74, "none.pt")
    unrolled("convert", tmp_path, tmp_path / "a").assert_refused(74, "cannot be read")
    unrolled("convert", tmp_path / "m.pt", tmp_path / "no" / "a").assert_refused(74, "cannot be written")
    assert [each.name for each in tmp_path.iterdir()] == ["m.pt"]


@pytest.mark.parametrize("version", ["2.4.0", "2.9.1+cpu"])
def test_a_torch_whose_reader_lets_code_run_is_refused(
    unrolled: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    torch.save({"weight": torch.zeros(2)}, tmp_path / "model.pt")
    monkeypatch.setattr(torch, "__version__", TorchVersion(version))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("the file was read"))
    done = unrolled("convert", tmp_path / "model.pt", tmp_path / "model.safetensors")
    assert done.status == 2
    assert f"with torch {version} a hostile checkpoint can run code" in done.err
    assert not (tmp_path / "model.safetensors").exists()


@safe
def test_an_unknown_entry_of_a_file_of_tensors_alone(unrolled: Command, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "net.pt")
    names = (tmp_path / "net.pt", tmp_path / "net.safetensors", "--key")
    unrolled("convert", *names, "model").assert_refused(2, "entries with tensors: . (. is the file itself)")
    assert unrolled("convert", *names, ".").status == 0
