"""Wrong arguments and inputs of a network of cells: each error says in one line what was found and expected."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from unrolled.cells import recurrent
from unrolled.cells.gru import GRU
from unrolled.errors import ShapeError, UnknownNameError, UnrolledError, UsageError

pytestmark = pytest.mark.usefixtures("double")
E, D, B, T = 2, 4, 3, 6
LENGTHS = [4, 6, 1]


X = torch.zeros(T, B, E, dtype=torch.float64)
BAD = [
    (lambda: recurrent("grru", E, D), UnknownNameError, "unknown cell 'grru'; did you mean 'gru'"),
    (lambda: recurrent("gru", 0, D), UsageError, "input_size is 0; expected a positive integer"),
    (lambda: recurrent("gru", E, -3), UsageError, "hidden_size is -3; expected a positive integer"),
    (lambda: recurrent("gru", E, 2.5), UsageError, "hidden_size is 2.5; expected a positive integer"),
    (lambda: recurrent("gru", E, True), UsageError, "hidden_size is True; expected a positive integer"),
    (lambda: recurrent("mlstm", E, None), UsageError, "hidden_size is None; expected a positive integer"),
    (lambda: recurrent("gru", np.int64(0), D), UsageError, r"input_size is np.int64\(0\); expected a positive integer"),
    (lambda: recurrent("gru", E, D, 0), UsageError, "num_layers is 0; expected a positive integer"),
    (lambda: recurrent("mmrnn", E, D, choices=True), UsageError, "choices is True; expected a positive integer"),
    (lambda: recurrent("mmlstm", E, D, choices=0), UsageError, "choices is 0; expected a positive integer"),
    (lambda: recurrent("gru", E, D, True), UsageError, "num_layers is True; expected a positive integer"),
    (
        lambda: recurrent("lstm", E, D, proj_size=-3),
        UsageError,
        "proj_size is -3; expected 0 or a positive integer",
    ),
    (
        lambda: recurrent("lstm", E, D, proj_size=D),
        UsageError,
        "proj_size is 4; expected 0, or less than hidden_size, 4",
    ),
    (
        lambda: recurrent("gru", E, D, proj_size=-3),
        UsageError,
        "proj_size is -3; expected 0: a gru cell carries its output itself",
    ),
    (
        lambda: recurrent("gru", E, D, foo=1),
        UnknownNameError,
        "unknown option of gru 'foo'; expected one of: batch_first, bias, bidirectional, device, dropout, dtype, "
        "num_layers, proj_size",
    ),
    (
        lambda: recurrent("mmlstm", E, D, choice=2),
        UnknownNameError,
        r"unknown option of mmlstm 'choice'; did you mean 'choices'\?",
    ),
    (
        lambda: recurrent("gru", E, D, num_layer=2),
        UnknownNameError,
        r"unknown option of gru 'num_layer'; did you mean 'num_layers'\?",
    ),
    (
        lambda: recurrent("gru", E, D, dtype=torch.int64),
        UsageError,
        "dtype is torch.int64; expected a floating type, such as torch.float32",
    ),
    (
        lambda: recurrent("gru", E, D, 2, dropout=1.0),
        UsageError,
        "dropout is 1.0; expected a number from 0 to below 1",
    ),
    (lambda: recurrent("gru", E, D, 2, dropout=-0.1), UsageError, "dropout is -0.1; expected"),
    (lambda: recurrent("gru", E, D, 2, dropout=float("nan")), UsageError, "dropout is nan; expected"),
    (lambda: recurrent("gru", E, D, 2, dropout="0.5"), UsageError, "dropout is '0.5'; expected"),
    (lambda: recurrent("gru", E, D, 2, dropout=True), UsageError, "dropout is True; expected"),
    (
        lambda: recurrent(torch.nn.GRU, E, D),
        UsageError,
        "GRU does not derive from unrolled.cells.base.Cell; derive it, with",
    ),
    (lambda: recurrent(["gru"], E, D), UnknownNameError, r"unknown cell \['gru'\]; expected one of"),
    (
        lambda: recurrent("elman", E, D, nonlinearity=torch.tanh),
        UnknownNameError,
        "unknown non-linearity <built-in method tanh",
    ),
    (
        lambda: GRU.from_weights({"weight_ih": X[0, :, :1].expand(3, 4)}),
        ShapeError,
        r"weight_hh of a gru cell has shape None; expected \(3, 1\)",
    ),
    (lambda: GRU.from_weights({"weight_hh": X}), ShapeError, "weight_ih of a gru cell has shape None; expected"),
    (
        lambda: GRU.from_weights({name: value for name, value in GRU(E, D).named_parameters() if name != "bias_ih"}),
        ShapeError,
        r"bias_ih of a gru cell has shape None; expected \(12,\)",
    ),
    (
        lambda: recurrent("gru", E, D)(X[..., :1]),
        ShapeError,
        r"inputs have shape \(6, 3, 1\); expected \(time, batch, 2\)",
    ),
    (lambda: recurrent("gru", E, D)(X[0, 0]), ShapeError, r"inputs have shape \(2,\)"),
    (lambda: recurrent("gru", E, D)(X[:0]), ShapeError, "3 sequences of 0 tokens"),
    (
        lambda: recurrent("gru", E, D)(X, lengths=[6, 6]),
        ShapeError,
        r"lengths have shape \(2,\).*expected \(3,\) whole numbers",
    ),
    (lambda: recurrent("gru", E, D)(X, lengths=[6.0, 6, 6]), ShapeError, "whole numbers"),
    (
        lambda: recurrent("gru", E, D)(X, lengths=[7, 1, 1]),
        UsageError,
        "lengths run from 1 to 7; expected 1 to 6",
    ),
    (
        lambda: recurrent("gru", E, D)(X, lengths=[0, 1, 1]),
        UsageError,
        "lengths run from 0 to 1; expected 1 to 6",
    ),
    (
        lambda: recurrent("gru", E, D)(X, torch.zeros(2, B, D)),
        ShapeError,
        r"h_0 has shape \(2, 3, 4\); expected \(1, 3, 4\)",
    ),
    (
        lambda: recurrent("gru", E, D)(X, (torch.zeros(1, B, D),) * 2),
        ShapeError,
        "the state is a tuple; expected h_0",
    ),
    (
        lambda: recurrent("mlstm", E, D)(X, torch.zeros(1, B, D)),
        ShapeError,
        r"a Tensor; expected \(h_0, c_0\)",
    ),
    (
        lambda: recurrent("mmrnn", E, D)(X, (torch.zeros(1, B, D), torch.zeros(1, B, D + 1))),
        ShapeError,
        r"c_0 has shape \(1, 3, 5\); expected \(1, 3, 4\)",
    ),
    (
        lambda: recurrent("gru", E, D)(pack_padded_sequence(X, torch.tensor([6, 2, 1])), lengths=LENGTHS),
        UsageError,
        "lengths were given with a packed sequence",
    ),
    (
        lambda: recurrent("gru", E + 1, D)(pack_padded_sequence(X, torch.tensor([6, 2, 1]))),
        ShapeError,
        r"packed inputs have shape \(9, 2\); expected \(tokens, 3\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input_is_named_in_one_line(call, error, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=message) as caught:
            call()
    assert isinstance(caught.value, UnrolledError)
    assert "\n" not in str(caught.value)
