"""A network rebuilt from its tensors alone says what the network said; what is not certain is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from unrolled.errors import DataError, NonFiniteError, UsageError
from unrolled.weights.from_state_dict import load_classifier

WORDS, SIZE, UNITS, CLASSES = 11, 5, 6, 3
CONFIGURATIONS = {
    "plain": {},
    "three layers": {"num_layers": 3},
    "bidirectional": {"bidirectional": True},
    "two bidirectional layers": {"num_layers": 2, "bidirectional": True},
    "no bias": {"bias": False},
}


class Owner(nn.Module):
    """A model as somebody else writes it, with names of its own and h_n as its readout."""

    def __init__(self, kind: type[nn.RNNBase], **options: object) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, SIZE)
        self.body = nn.ModuleDict({"core": kind(SIZE, UNITS, **options)})
        core = self.body["core"]
        directions = 2 if core.bidirectional else 1
        self.out = nn.Linear((core.proj_size or UNITS) * directions, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        core = self.body["core"]
        _, state = core(self.words(tokens).transpose(0, 1))
        hidden = state[0] if isinstance(state, tuple) else state
        last = hidden[-2:] if core.bidirectional else hidden[-1:]
        return self.out(torch.cat(tuple(last), dim=-1))


def saved(tmp_path: Path, model: nn.Module, **changes: Tensor | None) -> Path:
    """Save a model's tensors, some of them added, replaced, or (None) left out."""
    tensors = model.state_dict() | {name.replace("__", "."): value for name, value in changes.items()}
    path = tmp_path / "model.safetensors"
    save_file({name: value.contiguous() for name, value in tensors.items() if value is not None}, path)
    return path


def assert_same(owner: Owner, path: Path, **arguments: str) -> None:
    tokens = torch.randint(WORDS, (4, 7))
    model = load_classifier(path, words=WORDS, **arguments).model
    torch.testing.assert_close(model(tokens), owner(tokens))


@pytest.mark.parametrize("options", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_the_rebuilt_network_says_what_the_network_said(
    tmp_path: Path, kind: type[nn.RNNBase], options: dict[str, object]
) -> None:
    owner = Owner(kind, **options)
    needed = {"nonlinearity": "tanh"} if kind is nn.RNN else {}
    assert_same(owner, saved(tmp_path, owner), **needed)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_projected_lstm_is_recognised(tmp_path: Path, bidirectional: bool) -> None:
    owner = Owner(nn.LSTM, proj_size=2, num_layers=2, bidirectional=bidirectional)
    assert_same(owner, saved(tmp_path, owner))


class OwnerOfCells(nn.Module):
    """A model with a loop over cells, one above another."""

    def __init__(self, kind: type[nn.RNNCellBase], layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, SIZE)
        self.cells = nn.ModuleList(kind(SIZE if layer == 0 else UNITS, UNITS) for layer in range(layers))
        self.out = nn.Linear(UNITS, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        states: list[Any] = [None] * len(self.cells)
        for x in self.words(tokens).unbind(1):
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0] if isinstance(states[layer], tuple) else states[layer]
        return self.out(x)


@pytest.mark.parametrize("layers", [1, 11])
@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_cells_of_a_list_are_layers(tmp_path: Path, kind: type[nn.RNNCellBase], layers: int) -> None:
    owner = OwnerOfCells(kind, layers)
    needed = {"nonlinearity": "tanh"} if kind is nn.RNNCell else {}
    path = saved(tmp_path, owner)
    assert_same(owner, path, **needed)
    assert load_classifier(path, words=WORDS, **needed).cells == tuple(f"cells.{layer}" for layer in range(layers))


def test_cells_that_are_no_layers_of_one_network_are_refused_by_their_names(tmp_path: Path) -> None:
    owner = OwnerOfCells(nn.GRUCell, 2)
    second = {f"second__{name}": value for name, value in nn.GRUCell(SIZE, UNITS).state_dict().items()}
    path = saved(tmp_path, owner, **second)
    with pytest.raises(UsageError, match=r"several recurrent networks.*'cells', 'second'; name one with --rnn"):
        load_classifier(path, words=WORDS)
    assert_same(owner, path, rnn="cells", head="out.weight")
    side_by_side = {f"cells.1.{name}": value for name, value in nn.GRUCell(SIZE, UNITS).state_dict().items()}
    with pytest.raises(DataError, match=r"cells\.1\.weight_ih has shape \[18, 5\]; expected \[18, 6\], to fit"):
        load_classifier(saved(tmp_path, owner, **side_by_side), words=WORDS)
    with pytest.raises(DataError, match=r"cells\.1\.bias_hh is missing beside"):
        load_classifier(saved(tmp_path, owner, cells__1__bias_hh=None), words=WORDS)


def test_relu_is_not_tanh(tmp_path: Path) -> None:
    owner = Owner(nn.RNN, nonlinearity="relu")
    path = saved(tmp_path, owner)
    assert_same(owner, path, nonlinearity="relu")
    with pytest.raises(AssertionError):
        assert_same(owner, path, nonlinearity="tanh")


def test_a_head_without_bias_and_float64_are_kept(tmp_path: Path) -> None:
    owner = Owner(nn.GRU).double()
    nn.init.zeros_(owner.out.bias)
    network = load_classifier(saved(tmp_path, owner, out__bias=None), words=WORDS)
    assert network.model.head.bias is None
    tokens = torch.randint(WORDS, (2, 5))
    torch.testing.assert_close(network.model(tokens), owner(tokens), rtol=1e-14, atol=1e-14)


def test_half_precision_is_read_as_float32(tmp_path: Path) -> None:
    owner = Owner(nn.LSTM).bfloat16()
    path = saved(tmp_path, owner)
    assert_same(owner.float(), path)


def test_it_comes_in_evaluation_mode_and_leaves_nothing_out(tmp_path: Path) -> None:
    network = load_classifier(saved(tmp_path, Owner(nn.GRU)), words=WORDS)
    assert not network.model.training
    assert network.unused == ()


def test_an_elman_network_does_not_say_its_nonlinearity(tmp_path: Path) -> None:
    path = saved(tmp_path, Owner(nn.RNN))
    with pytest.raises(UsageError, match="--nonlinearity tanh or --nonlinearity relu"):
        load_classifier(path, words=WORDS)
    with pytest.raises(UsageError, match="'gelu'; expected tanh or relu"):
        load_classifier(path, words=WORDS, nonlinearity="gelu")


def test_a_nonlinearity_is_of_no_use_to_a_gru(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"these are weights of torch\.nn\.GRU"):
        load_classifier(saved(tmp_path, Owner(nn.GRU)), words=WORDS, nonlinearity="relu")


def test_a_choice_of_heads_is_asked_for_not_made(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    path = saved(tmp_path, owner, other__weight=torch.randn(2, UNITS))
    with pytest.raises(UsageError, match=r"out.weight \[3, 6\].*--head"):
        load_classifier(path, words=WORDS)
    assert_same(owner, path, head="out.weight")
    assert load_classifier(path, words=WORDS, head="out.weight").unused == ("other.weight",)
    with pytest.raises(UsageError, match="--head nothing: no such tensor"):
        load_classifier(path, words=WORDS, head="nothing")


def test_a_choice_of_embeddings_is_asked_for_not_made(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    path = saved(tmp_path, owner, second__weight=torch.randn(WORDS, SIZE))
    with pytest.raises(UsageError, match=r"second\.weight, words\.weight; name one with --embedding"):
        load_classifier(path, words=WORDS)
    assert_same(owner, path, embedding="words.weight", head="out.weight")


def test_a_head_with_the_weights_of_the_embedding_is_named(tmp_path: Path) -> None:
    owner = Owner(nn.LSTM, proj_size=SIZE)
    owner.out = nn.Linear(SIZE, WORDS, bias=False)
    owner.out.weight = owner.words.weight
    path = saved(tmp_path, owner, out__weight=None)
    with pytest.raises(DataError, match=r"no head of 5 columns.*give --head words.weight"):
        load_classifier(path, words=WORDS)
    assert_same(owner, path, head="words.weight")
    with pytest.raises(UsageError, match=r"--head body.core.weight_hh_l0: no such tensor"):
        load_classifier(path, words=WORDS, head="body.core.weight_hh_l0")


@pytest.mark.parametrize("bias", [True, False])
def test_of_tied_weights_under_two_names_none_is_asked_for(tmp_path: Path, bias: bool) -> None:
    owner = Owner(nn.LSTM, proj_size=SIZE)
    owner.out = nn.Linear(SIZE, WORDS, bias=bias)
    owner.out.weight = owner.words.weight
    assert_same(owner, saved(tmp_path, owner, out__weight=owner.words.weight.detach().clone()))
    other = saved(tmp_path, owner, out__weight=owner.words.weight.detach() + 1)
    with pytest.raises(UsageError, match=r"out\.weight, words\.weight; name one with --embedding"):
        load_classifier(other, words=WORDS)


def test_the_count_of_an_averaged_model_is_no_part_of_it(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    averaged = AveragedModel(owner)
    assert averaged.state_dict()["n_averaged"].shape == ()
    assert load_classifier(saved(tmp_path, averaged), words=WORDS).unused == ()
    assert_same(owner, saved(tmp_path, averaged))
    with pytest.raises(UsageError, match=r"the file also holds n_steps \[\]"):
        load_classifier(saved(tmp_path, averaged, n_steps=torch.tensor(1)), words=WORDS)


@pytest.mark.parametrize("flag", ["head", "embedding"])
def test_a_tensor_that_is_named_and_does_not_fit_is_shown(tmp_path: Path, flag: str) -> None:
    path = saved(tmp_path, Owner(nn.GRU), other__weight=torch.zeros(2, 9))
    with pytest.raises(
        UsageError, match=rf"--{flag} other.weight: float32 of shape \[2, 9\]; expected .* of \d columns"
    ):
        load_classifier(path, words=WORDS, **{flag: "other.weight"})


def test_a_choice_of_recurrent_networks_is_asked_for_not_made(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    second = {f"second__{name}": value for name, value in nn.GRU(SIZE, UNITS).state_dict().items()}
    path = saved(tmp_path, owner, **second)
    with pytest.raises(UsageError, match=r"several recurrent networks.*'body.core', 'second'.*--rnn"):
        load_classifier(path, words=WORDS)
    with pytest.raises(UsageError, match="no recurrent network 'third'"):
        load_classifier(path, words=WORDS, rnn="third")
    assert_same(owner, path, rnn="body.core", head="out.weight")


def test_a_part_that_would_be_left_out_is_named(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    path = saved(tmp_path, owner, attention__weight=torch.randn(9, 9))
    with pytest.raises(UsageError, match=r"attention.weight \[9, 9\].*unrolled\.explain\(.*--head out.weight"):
        load_classifier(path, words=WORDS)
    assert load_classifier(path, words=WORDS, head="out.weight").unused == ("attention.weight",)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"out__weight": None, "out__bias": None}, r"no head of 6 columns.*unrolled\.explain\("),
        ({"words__weight": None}, r"no embedding of 5 columns.*unrolled\.explain\("),
        ({"body__core__weight_hh_l0": None}, "weight_hh_l0 is missing"),
        ({"body__core__bias_hh_l0": None}, "bias_hh_l0 is missing beside"),
        ({"body__core__bias_hh_l0": torch.zeros(4)}, r"bias_hh_l0 has shape \[4\]; expected \[18\]"),
        ({"body__core__weight_hh_l0": torch.zeros(12, 6)}, "12 rows for 6 units"),
        ({"body__core__weight_hh_l0": torch.zeros(18)}, "expected a floating-point matrix"),
        ({"body__core__weight_hh_l0": torch.zeros(18, 6, dtype=torch.int64)}, "expected a floating-point"),
        ({"body__core__weight_hr_l0": torch.zeros(2, 6)}, "only an LSTM has a projection"),
        ({"body__core__weight_hh_l7": torch.zeros(18, 6)}, "is missing beside"),
        (
            {"body__core__bias_hh_l0": torch.zeros(18, dtype=torch.int8)},
            "bias_hh_l0 holds int8; expected floating-point",
        ),
        ({"out__bias": torch.zeros(2)}, "out.bias does not fit out.weight: expected 3 floating-point numbers"),
        ({"out__bias": torch.zeros(3, dtype=torch.int32)}, "out.bias does not fit out.weight: expected 3 floating"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, changes: dict[str, Tensor | None], expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        load_classifier(saved(tmp_path, Owner(nn.GRU), **changes), words=WORDS)


def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the vocabulary has 10 words.*words.weight \[11, 5\]"):
        load_classifier(saved(tmp_path, Owner(nn.GRU)), words=10)


def test_an_embedding_that_is_named_may_have_more_rows_than_there_are_words(tmp_path: Path) -> None:
    owner = Owner(nn.GRU)
    path = saved(tmp_path, owner)
    tokens = torch.tensor([[1, 9, 0]])
    opened = load_classifier(path, words=WORDS - 1, embedding="words.weight").model
    torch.testing.assert_close(opened(tokens), owner(tokens))
    with pytest.raises(DataError, match=r"the last rows alone have none, give --embedding words\.weight"):
        load_classifier(path, words=WORDS - 1)
    with pytest.raises(DataError, match="the vocabulary has 12 words") as refused:
        load_classifier(path, words=WORDS + 1, embedding="words.weight")
    assert "--embedding" not in str(refused.value)


def test_a_file_without_a_recurrent_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "linear.safetensors"
    save_file(nn.Linear(3, 2).state_dict(), path)
    with pytest.raises(DataError, match=r"no recurrent network among the tensors.*weight \[2, 3\]"):
        load_classifier(path, words=WORDS)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_numbers_that_are_none_are_refused(tmp_path: Path, value: float) -> None:
    owner = Owner(nn.LSTM)
    owner.out.weight.data[1, 2] = value
    with pytest.raises(NonFiniteError, match=r"out\.weight holds NaN or infinity"):
        load_classifier(saved(tmp_path, owner), words=WORDS)
