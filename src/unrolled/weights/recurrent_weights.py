"""Recognise a recurrent network by its state dict.

torch stacks the gates along the rows: for an Elman network, a GRU or an LSTM, ``weight_hh_l0`` has one, three or four
times as many rows as there are units. The names show layers, directions, biases and the projection. Only the
non-linearity of an Elman network cannot be seen.

Cells have the same tensors without the number of a layer. A cell is taken for a network of one layer, and the cells of
a list (``cells.0.weight_ih``, ``cells.1.weight_ih``) for the layers of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from unrolled.errors import DataError, UsageError
from unrolled.weights.foreign_file import IN_PYTHON
from unrolled.weights.tensor_file import describe

__all__ = ["RecurrentWeights"]

_NONLINEARITIES = ("tanh", "relu")
_NAME = re.compile(r"(?P<prefix>.*?)(?P<own>(?:weight_(?:ih|hh|hr)|bias_(?:ih|hh))_l(?P<layer>\d+)(?:_reverse)?)")
_CELL = re.compile(r"(?P<path>(?:.*\.)?)(?P<own>(?:weight|bias)_(?:ih|hh))")
_LISTED = re.compile(r"(?P<list>(?:.*\.)?)\d+\.")
_KINDS: dict[int, type[nn.RNN | nn.GRU | nn.LSTM]] = {1: nn.RNN, 3: nn.GRU, 4: nn.LSTM}


@dataclass(frozen=True)
class RecurrentWeights:
    """The tensors of one ``torch.nn.RNN``, ``GRU`` or ``LSTM`` or of cells, and the sizes that follow from them."""

    prefix: str
    """Prefix of its names in the file: ``"encoder.rnn."``, or nothing."""
    tensors: Mapping[str, Tensor]
    """By torch's own names: ``"weight_ih_l0"``."""
    cells: tuple[str, ...] = ()
    """The prefix of each cell, the first layer first; empty of a network."""

    @classmethod
    def find(cls, tensors: Mapping[str, Tensor], prefix: str | None = None) -> RecurrentWeights:
        """Find the recurrent network among all tensors of a file; ``prefix`` names one if there are several."""
        found = [*_networks(tensors), *_lists_of_cells(tensors)]
        if not found:
            raise DataError(
                "no recurrent network among the tensors; expected names such as weight_ih_l0 and weight_hh_l0, as "
                "torch.nn.RNN, GRU and LSTM have, or weight_ih and weight_hh, as their cells have, found "
                f"{describe(tensors)}; {IN_PYTHON}"
            )
        names = ", ".join(repr(each.prefix.rstrip(".")) for each in found)
        if prefix is None and len(found) > 1:
            raise UsageError(f"several recurrent networks among the tensors: {names}; name one with --rnn; {IN_PYTHON}")
        wanted = (found[0].prefix if prefix is None else prefix).rstrip(".")
        for each in found:
            if each.prefix.rstrip(".") == wanted:
                return each
        raise UsageError(f"no recurrent network {prefix!r} among the tensors; expected one of: {names}")

    @property
    def names(self) -> frozenset[str]:
        """Names of its tensors in the file."""
        return frozenset(map(self._name, self.tensors))

    def _name(self, own: str) -> str:
        """Return the name in the file of what torch's networks call ``own``."""
        if not self.cells:
            return self.prefix + own
        kind, layer = own.rsplit("_l", 1)
        return self.cells[int(layer)] + kind

    def build(self, nonlinearity: str | None = None) -> nn.RNNBase:
        """Build the network, batch first, with its weights; ``nonlinearity`` only for an Elman network."""
        hidden = self._shape("weight_hr_l0" if "weight_hr_l0" in self.tensors else "weight_hh_l0")[1]
        rows = self._shape("weight_hh_l0")[0]
        kind = _KINDS.get(rows // hidden) if rows % hidden == 0 else None
        if kind is None:
            raise DataError(
                f"{self._name('weight_hh_l0')} has {rows} rows for {hidden} units; "
                "expected 1 (Elman), 3 (GRU) or 4 (LSTM) times as many"
            )
        options: dict[str, object] = {}
        if kind is nn.RNN:
            options["nonlinearity"] = _checked(nonlinearity)
        elif nonlinearity is not None:
            raise UsageError(f"--nonlinearity is for Elman networks; these are weights of torch.nn.{kind.__name__}")
        if "weight_hr_l0" in self.tensors:
            if kind is not nn.LSTM:
                raise DataError(
                    f"{self.prefix}weight_hr_l0: only an LSTM has a projection, this is torch.nn.{kind.__name__}"
                )
            options["proj_size"] = self._shape("weight_hr_l0")[0]
        network = kind(
            self._shape("weight_ih_l0")[1],
            hidden,
            num_layers=len({match["layer"] for match in map(_NAME.fullmatch, self.tensors) if match}),
            bias=any(name.startswith("bias") for name in self.tensors),
            bidirectional=any(name.endswith("_reverse") for name in self.tensors),
            batch_first=True,
            dtype=self.tensors["weight_hh_l0"].dtype,
            **options,
        )
        self._check(network.state_dict())
        network.load_state_dict(dict(self.tensors))
        return network

    def _shape(self, name: str) -> tuple[int, int]:
        if name not in self.tensors:
            raise DataError(f"{self._name(name)} is missing; found {describe(self.tensors)}")
        tensor = self.tensors[name]
        if tensor.ndim != 2 or tensor.numel() == 0 or not tensor.is_floating_point():
            raise DataError(
                f"{self._name(name)} is {tensor.dtype} of shape {list(tensor.shape)}; expected a floating-point matrix"
            )
        return tensor.shape[0], tensor.shape[1]

    def _check(self, expected: Mapping[str, Tensor]) -> None:
        for name in sorted({*expected, *self.tensors}):
            if name not in expected or name not in self.tensors:
                word = "missing beside" if name in expected else "not expected beside"
                raise DataError(f"{self._name(name)} is {word} {describe(self.tensors)}")
            if not self.tensors[name].is_floating_point():
                kind = str(self.tensors[name].dtype).removeprefix("torch.")
                raise DataError(f"{self._name(name)} holds {kind}; expected floating-point numbers")
            found, wanted = list(self.tensors[name].shape), list(expected[name].shape)
            if found != wanted:
                raise DataError(f"{self._name(name)} has shape {found}; expected {wanted}, to fit the others")


def _networks(tensors: Mapping[str, Tensor]) -> list[RecurrentWeights]:
    """Return the networks of torch, by the prefixes of their names."""
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if match := _NAME.fullmatch(name):
            found.setdefault(match["prefix"], {})[match["own"]] = tensor
    return [RecurrentWeights(prefix, own) for prefix, own in found.items()]


def _lists_of_cells(tensors: Mapping[str, Tensor]) -> list[RecurrentWeights]:
    """Return the cells, those of one list together, in the order of their numbers."""
    found: dict[str, dict[str, dict[str, Tensor]]] = {}
    for name, tensor in tensors.items():
        if match := _CELL.fullmatch(name):
            listed = _LISTED.fullmatch(match["path"])
            cells = found.setdefault(listed["list"] if listed else match["path"], {})
            cells.setdefault(match["path"], {})[match["own"]] = tensor
    return [_as_layers(prefix, cells) for prefix, cells in found.items()]


def _as_layers(prefix: str, cells: Mapping[str, Mapping[str, Tensor]]) -> RecurrentWeights:
    paths = sorted(cells, key=lambda path: (len(path), path))  # 10 is after 9
    layers = {f"{own}_l{layer}": cells[path][own] for layer, path in enumerate(paths) for own in cells[path]}
    return RecurrentWeights(prefix, layers, tuple(paths))


def _checked(nonlinearity: str | None) -> str:
    if nonlinearity is None:
        raise UsageError(
            "the weights of an Elman network do not show its non-linearity; "
            "give --nonlinearity tanh or --nonlinearity relu"
        )
    if nonlinearity not in _NONLINEARITIES:
        raise UsageError(f"non-linearity {nonlinearity!r}; expected tanh or relu")
    return nonlinearity
