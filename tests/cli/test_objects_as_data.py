"""A checkpoint with objects of other classes gives its weights, and nothing of these classes runs or is imported."""

from __future__ import annotations

import builtins
import enum
import functools
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from unrolled.cli.convert import SAFE

Command = Callable[..., Any]

pytestmark = pytest.mark.skipif(torch.__version__ < SAFE, reason="unrolled convert refuses this torch")


class Colour(enum.Enum):
    RED = 1


class Settings(dict[str, object]):
    """A map of a user's own class, as trainers save hyper-parameters."""


class Own(nn.Module):
    """A model with all that a state dict holds or leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        self.parts = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Linear(8, 2)), nn.BatchNorm1d(2)])
        self.free = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.register_buffer("kept", torch.ones(3))
        self.register_buffer("dropped", torch.ones(3), persistent=False)
        self.register_parameter("none", None)
        self.settings = Namespace(colour=Colour.RED)
        self.function = nn.functional.relu


def tied() -> nn.Module:
    model = nn.ModuleDict({"words": nn.Embedding(5, 3), "out": nn.Linear(3, 5)})
    model["out"].weight = model["words"].weight
    return model


def converted(unrolled: Command, tmp_path: Path, content: object, *options: object) -> tuple[dict[str, Tensor], str]:
    torch.save(content, tmp_path / "m.pt")
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors", "--force", *options)
    assert (done.status, done.err) == (0, "")
    return load_file(tmp_path / "m.safetensors"), done.out


def assert_same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=0)


@pytest.mark.parametrize("make", [Own, tied, lambda: nn.DataParallel(Own()), lambda: nn.GRU(2, 3)])
def test_a_whole_model_becomes_its_state_dict(unrolled: Command, tmp_path: Path, make: Callable[[], nn.Module]) -> None:
    model = make()
    assert_same(converted(unrolled, tmp_path, model)[0], model.state_dict())
    found, out = converted(unrolled, tmp_path, {"model": model, "optimizer": torch.optim.Adam(model.parameters())})
    assert_same(found, model.state_dict())
    assert "left out: optimizer" in out
    found, out = converted(unrolled, tmp_path, [model, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())])
    assert_same(found, model.state_dict())
    assert "left out: 1, 2" in out


def test_what_stands_beside_the_weights_does_not_matter(unrolled: Command, tmp_path: Path) -> None:
    state = Own().state_dict()
    beside = {"settings": Settings(lr=0.1), "args": Namespace(colour=Colour.RED), "best": np.float64(0.5)}
    beside |= {"curve": np.ones(3), "path": PurePath("a")}
    found, out = converted(unrolled, tmp_path, {"state_dict": state, **beside})
    assert_same(found, state)
    assert f"left out: {', '.join(beside)}" in out
    assert "were read as data, without their code" in out
    assert "without their code" not in converted(unrolled, tmp_path, {"state_dict": state, "epoch": 3})[1]


def test_a_model_whose_code_is_missing_is_read(unrolled: Command, tmp_path: Path) -> None:
    (tmp_path / "gone_away.py").write_text("import torch\n\nclass Mine(torch.nn.Linear):\n    pass\n")
    sys.path.insert(0, str(tmp_path))
    try:
        model = __import__("gone_away").Mine(2, 3)
        torch.save(model, tmp_path / "m.pt")
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["gone_away"]
    with pytest.raises(ModuleNotFoundError):  # the control: torch cannot load it
        torch.load(tmp_path / "m.pt", weights_only=False)
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert "objects of gone_away.Mine were read as data" in done.out
    assert "gone_away" not in sys.modules
    assert_same(load_file(tmp_path / "m.safetensors"), model.state_dict())


class Trap:
    """A pickle that would call a function when it is loaded."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.called = (function, arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return self.called


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(
    "function", [os.system, builtins.eval, builtins.exec, Path.touch, functools.partial, torch.load, torch.hub.load]
)
def test_no_function_that_a_checkpoint_names_is_called(
    unrolled: Command, tmp_path: Path, function: Callable[..., object], within: bool
) -> None:
    sprung = tmp_path / "sprung"
    argument = f"touch {sprung}" if function is os.system else f"__import__('pathlib').Path({str(sprung)!r}).touch()"
    trap = Trap(function, sprung if function is Path.touch else argument)
    model = nn.Linear(2, 2)
    model.extra = nn.ParameterDict()
    model.extra.trap = trap
    torch.save(model if within else {"w": torch.ones(2), "trap": trap}, tmp_path / "m.pt")
    done = unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert done.status in (0, 65)
    assert not sprung.exists()
    if done.status == 0:
        assert_same(load_file(tmp_path / "m.safetensors"), model.state_dict() if within else {"w": torch.ones(2)})
    if function is Path.touch:  # the control: a reader that trusts the file calls it
        torch.load(tmp_path / "m.pt", weights_only=False)
        assert sprung.exists()


def test_a_second_pickle_in_the_archive_is_not_run(unrolled: Command, tmp_path: Path) -> None:
    torch.save(Trap(Path.touch, tmp_path / "sprung"), tmp_path / "trap.pt")
    torch.save(nn.Linear(2, 2), tmp_path / "m.pt")
    with ZipFile(tmp_path / "trap.pt") as trap:
        second = trap.read("trap/data.pkl")
    with ZipFile(tmp_path / "m.pt", "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("m/data.pkl", second)
    unrolled("convert", tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ({"w": np.ones(2)}, "numpy._core.multiarray._reconstruct and 2 more"),
        ([nn.ReLU()], "torch.nn.modules.activation.ReLU, which"),
    ],
)
def test_a_checkpoint_without_weights_is_refused_by_the_classes_in_it(
    unrolled: Command, tmp_path: Path, what: object, named: str
) -> None:
    path = tmp_path / "it's.pt"
    torch.save(what, path)
    done = unrolled("convert", path, tmp_path / "m.safetensors")
    done.assert_refused(65, named, f"torch.load({str(path)!r}, weights_only=False)", "model.state_dict()")
