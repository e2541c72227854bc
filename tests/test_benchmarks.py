"""What the benchmarks say of what they found: of rows made up and operations counted; nothing is timed here."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from unrolled.cells import CELLS

FOLDER = Path(__file__).parent.parent / "benchmarks"
MODULES = ("cells", "decompose", "gpu", "memory", "operations", "readme", "sequential")


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def cells(load):
    return load("cells")


def row(cells, cell, best=1.0, **ratios):
    setting = cells.SETTINGS[0].title
    found = {count.removeprefix("t"): ratio for count, ratio in ratios.items()}
    return cells.Row(cells.machine(), setting, cell, 16, 1000, found, best, 0.5, {}, 1.0, 1.0)


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            {"t1": 0.63, "t2": 0.39},
            "- mmlstm: 0.63 with 1 thread(s), 0.39 with 2, to reach 0.8; bare products 1.26: 50% of a step is not "
            "products.",
        ),
        (
            {"t1": 0.63, "t2": 0.9},
            "- mmlstm: 0.63 with 1 thread(s), to reach 0.8; bare products 1.26: 50% of a step is not products.",
        ),
        ({"t1": 0.9, "t2": 0.39}, "- mmlstm: 0.39 with 2 thread(s), to reach 0.8."),
    ],
)
def test_a_shortfall_is_named_with_every_number_of_threads(cells, ratios, said):
    assert cells.shortfalls([row(cells, "mmlstm", best=1.26, **ratios)], [1, 2]) == [said]


def test_what_is_reached_or_was_not_asked_for_is_no_shortfall(cells):
    rows = [row(cells, "mmlstm", t1=0.8, t2=0.8), row(cells, "nn.LSTM", t1=0.1, t2=0.1)]
    assert cells.shortfalls(rows, [1, 2]) == []


def test_kept_rows_are_printed_and_not_measured_again(cells, tmp_path, monkeypatch, capsys):
    kept, names = tmp_path / "rows.jsonl", ("nn.LSTM", "nn.GRU", "mlstm")
    kept.write_text("".join(json.dumps(asdict(row(cells, name, t1=0.5, t2=0.25))) + "\n" for name in names))
    measured = []
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # main sets it where it is not set

    def measure(name, *_):
        measured.append(name)
        return row(cells, name, t1=0.5, t2=0.25)

    monkeypatch.setattr(cells, "in_a_process", measure)
    words = ["cells.py", "--settings", "0", "--cells", "mlstm", "--rows"]
    monkeypatch.setattr(sys, "argv", [*words, str(kept)])
    cells.main()
    assert measured == []
    assert "- mlstm: 0.50 with 1 thread(s), 0.25 with 2, to reach 0.95" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, str(tmp_path / "none.jsonl")])  # the control: there are none
    cells.main()
    assert measured == list(names)


def test_operations_are_counted_with_what_they_go_over(load):
    count = load("operations").Count
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    with count() as found:
        c = a @ b
        c.view(-1)[:3].tanh_()
        c.sum()
        c[:1] += 1
    assert (found.products, found.calls, found.numbers) == (1, 4, 3 + 8 + 4)
    with count() as views:
        c.unbind()
        c.new_empty(5)
    assert (views.products, views.calls, views.numbers) == (0, 0, 0)


@pytest.mark.parametrize(("name", "products"), [("elman", "1 + 1"), ("mrnn", "2 + 2"), ("mlstm", "2 + 2")])
def test_a_step_of_a_multiplicative_cell_has_two_products_each_way(load, name, products):
    found = load("operations").line(name).strip("| ").split(" | ")
    assert (found[0], found[2]) == (name, products)


def test_cells_for_which_no_time_was_left_on_a_gpu_are_named(load):
    gpu = load("gpu")
    *_, left = gpu.training_steps(gpu.SMALL, repeats=1, minutes=-1.0)
    names = left.partition(": ")[2].removesuffix(".").split(", ")
    assert set(names) == set(CELLS.names()) - gpu.UNSIZED
    assert len([line for line in gpu.training_steps(gpu.SMALL, repeats=1, minutes=9.0) if line.startswith("| ")]) == (
        1 + len(names)
    )


@pytest.mark.parametrize("time", [1, 2, 5, 8, 13])
def test_a_scan_gives_the_states_and_gradients_of_the_loop(load, time):
    sequential = load("sequential")
    torch.manual_seed(time)
    loop, scan = sequential.LinearLoop(3).double(), sequential.LinearScan(3).double()
    scan.load_state_dict(loop.state_dict())
    x, weight = torch.randn(time, 2, 3, dtype=torch.float64), torch.randn(time, 2, 3, dtype=torch.float64)
    one, other = loop(x), scan(x)
    assert torch.allclose(one, other, atol=1e-12)
    gradients = (torch.autograd.grad(states, network.read.weight, weight) for states, network in
                 ((one, loop), (other, scan)))  # fmt: skip
    assert torch.allclose(*(found for (found,) in gradients), atol=1e-12)
    turned = scan(x.flip(0)).flip(0)  # the control: another order of the tokens
    assert torch.allclose(one, turned) == (time == 1)


def test_calls_grow_with_the_length_in_a_loop_only(load):
    sequential = load("sequential")
    texts = [torch.randn(time, 2, 8) for time in (16, 32, 64)]

    def growth(name):
        network = sequential.NETWORKS[name](8)
        first, second, third = (sequential.calls_in_turn(network, x) for x in texts)
        return second - first, third - second

    for name in ("GRU, a loop over the steps", "GRU, torch's", "linear recurrence, a loop over the steps"):
        once, twice = growth(name)
        assert twice == 2 * once > 0
    once, twice = growth("linear recurrence, a scan")
    assert twice == once > 0  # one round more for twice the length
    for name in ("Transformer layer", "convolution of three tokens"):
        assert growth(name) == (0, 0)
