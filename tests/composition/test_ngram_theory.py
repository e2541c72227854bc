"""The theory of n-grams: their matrices form a monoid, and states carry them as vectors (Implicit n-grams, section 3).

r(x_i … x_t) = A(x_t) ⋯ A(x_i) is a homomorphism from texts to matrices, and (∏ A) u maps it to a vector.
"""

from __future__ import annotations

import pytest
import torch

from unrolled.cells import CELLS
from unrolled.cells.affine import AffineCell
from unrolled.composition.multiplicative import MMEncoder

AFFINE = [name for name in CELLS.names() if issubclass(CELLS.get(name), AffineCell)]
SIZE = 4
ONE_MATRIX = {"simplified_gru", "simplified_lstm"}
"""Cells whose A is the same for every word: their n-grams know the distance of a word, not the words between."""


def cell(name):
    torch.manual_seed(0)
    return CELLS.get(name)(3, SIZE).double()


def read(network, text, state):
    """Run a text from a state, and return the last state; shape (state,)."""
    for token in text:
        state = network.step(token[None], state)
    return state


def matrix(network, text):
    """r(text): the Jacobian of reading the text, by autograd, apart from the library's own operators."""
    start = network.initial_state(1)
    return torch.autograd.functional.jacobian(lambda state: read(network, text, state)[0], start)[:, 0]


def text(length, seed=1):
    return torch.randn(length, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_there_are_affine_cells():
    assert {"mvma_e", "mvma_g", "mvma_l", "mvma_me"} <= set(AFFINE)


@pytest.mark.parametrize("name", AFFINE)
def test_texts_map_to_matrices_as_a_homomorphism(name):
    network, a, b, c = cell(name), text(2, 1), text(1, 2), text(3, 3)
    r = {key: matrix(network, value) for key, value in {"a": a, "b": b, "c": c}.items()}
    whole = matrix(network, torch.cat((a, b, c)))
    torch.testing.assert_close((r["c"] @ r["b"]) @ r["a"], whole)
    torch.testing.assert_close(r["c"] @ matrix(network, torch.cat((a, b))), whole)  # ab, then c
    torch.testing.assert_close(matrix(network, torch.cat((b, c))) @ r["a"], whole)  # a, then bc
    torch.testing.assert_close(matrix(network, a[:0]), torch.eye(network.state_size, dtype=torch.float64))  # no text
    commutes = torch.allclose(r["a"] @ r["b"], r["b"] @ r["a"], rtol=1e-6, atol=1e-9)
    assert commutes == (name in ONE_MATRIX)  # the order of words matters


@pytest.mark.parametrize("name", AFFINE)
def test_the_initial_state_is_carried_by_the_product_of_all_matrices(name):
    network, words = cell(name), text(5)
    u = torch.randn(1, network.state_size, dtype=torch.float64)
    carried = read(network, words, u) - read(network, words, torch.zeros_like(u))
    torch.testing.assert_close(carried, u @ matrix(network, words).T)


@pytest.mark.parametrize("name", AFFINE)
def test_a_state_is_the_sum_of_all_suffixes_each_a_product_of_matrices_and_a_vector(name):
    network, words = cell(name), text(4)
    zero = network.initial_state(1) * 0
    total = read(network, words, zero) * 0
    for i in range(len(words)):
        g = network.step(words[i : i + 1], zero)
        total = total + g @ matrix(network, words[i + 1 :]).T
    torch.testing.assert_close(total, read(network, words, zero))


@pytest.mark.parametrize("name", ["elman", "gru", "lstm"])
def test_a_network_with_gates_is_no_such_homomorphism(name):
    network, a, b = cell(name), text(2, 1), text(2, 2)
    product = matrix(network, b) @ matrix(network, a)  # both at the empty state
    assert (product - matrix(network, torch.cat((a, b)))).abs().max() > 1e-4


def test_the_matrix_product_model_is_a_monoid_whose_identity_is_the_empty_word():
    encoder = MMEncoder(9, 9).double()
    a, b = torch.randn(1, 3, 9, dtype=torch.float64), torch.randn(1, 2, 9, dtype=torch.float64)
    empty = torch.eye(3, dtype=torch.float64).flatten()[None, None]

    def r(*parts):
        return encoder(torch.cat(parts, dim=1))[0][0, -1].reshape(3, 3)

    torch.testing.assert_close(r(a, b), r(a) @ r(b))
    for padded in ((empty, a, b), (a, empty, b), (a, b, empty)):
        torch.testing.assert_close(r(*padded), r(a, b))
    assert not torch.allclose(r(a, b), r(b, a))
