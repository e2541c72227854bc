"""Tensors that a weight is computed from do not pass for the weight."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

from unrolled.errors import DataError
from unrolled.weights.from_state_dict import load_classifier

WORDS = 10
TOKENS = torch.tensor([[1, 2, 5, 3]])


class Reads(nn.Module):
    """A classifier whose head has no bias, so that nothing but names tells its file from a plain one."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 4)
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.words(tokens))[1][-1])


class Squares(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight**2


class LowRank(nn.Linear):
    """A linear layer to whose weight a product of two small matrices is added, as loralib names them."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__(plain.in_features, plain.out_features, bias=False)
        self.weight = plain.weight
        self.lora_A = nn.Parameter(torch.randn(2, plain.in_features))
        self.lora_B = nn.Parameter(torch.randn(plain.out_features, 2))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight + self.lora_B @ self.lora_A)


class LowRankBeside(nn.Module):
    """The same by layers beside the plain one, as peft names them."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        self.base_layer = plain
        self.lora_A = nn.ModuleDict({"default": nn.Linear(plain.in_features, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, plain.out_features, bias=False)})

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


def old_weight_norm(module: nn.Module, name: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises its newer form
        return weight_norm(module, name)


COMPUTED: dict[str, Callable[[Reads], object]] = {
    "weight_norm of the head": lambda model: parametrizations.weight_norm(model.head),
    "weight_norm of the head, older form": lambda model: old_weight_norm(model.head, "weight"),
    "weight_norm of the network": lambda model: parametrizations.weight_norm(model.rnn, "weight_hh_l0"),
    "weight_norm of the network, older form": lambda model: old_weight_norm(model.rnn, "weight_hh_l0"),
    "spectral_norm": lambda model: parametrizations.spectral_norm(model.head),
    "spectral_norm, older form": lambda model: spectral_norm(model.head),
    "orthogonal": lambda model: parametrizations.orthogonal(model.head),
    "a function of one's own, of the head": lambda model: parametrize.register_parametrization(
        model.head, "weight", Squares()
    ),
    "a function of one's own, of the embedding": lambda model: parametrize.register_parametrization(
        model.words, "weight", Squares()
    ),
    "pruned": lambda model: prune.l1_unstructured(model.head, "weight", amount=0.5),
    "low rank": lambda model: setattr(model, "head", LowRank(model.head)),
    "low rank, in layers beside it": lambda model: setattr(model, "head", LowRankBeside(model.head)),
}


def saved(tmp_path: Path, model: nn.Module) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()}, path)
    return path


@pytest.mark.parametrize("change", COMPUTED.values(), ids=COMPUTED.keys())
def test_a_file_with_tensors_that_weights_are_computed_from_is_refused(
    tmp_path: Path, change: Callable[[Reads], object]
) -> None:
    torch.manual_seed(0)
    model = Reads()
    plain = copy.deepcopy(model)
    change(model)
    heads = [name for name in model.state_dict() if name.startswith("head") and name.endswith("weight")]
    for head in (None, *heads):  # the name of a tensor is no answer to how it is used
        with pytest.raises(DataError, match=r"is not a weight but what one is computed from.*in Python"):
            load_classifier(saved(tmp_path, model), words=WORDS, head=head)
    opened = load_classifier(saved(tmp_path, plain), words=WORDS).model  # the control
    torch.testing.assert_close(opened(TOKENS), plain(TOKENS))


def test_a_weight_that_no_longer_is_computed_is_opened(tmp_path: Path) -> None:
    model = Reads()
    parametrize.register_parametrization(model.head, "weight", Squares())
    parametrize.remove_parametrizations(model.head, "weight")
    opened = load_classifier(saved(tmp_path, model), words=WORDS).model
    torch.testing.assert_close(opened(TOKENS), model(TOKENS))
