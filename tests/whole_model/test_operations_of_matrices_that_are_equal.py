"""A model has the account of the same model that is written with other operations of matrices of equal value."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from equal_accounts import assert_equal
from whole_model_zoo import D


def convolved(model, x):
    return nn.functional.conv1d(x, model.middle.weight[..., None], model.middle.bias)


def matrices(model, h):
    return 2.0 * torch.eye(D, dtype=h.dtype) + torch.diag_embed(h) @ model.middle.weight


EQUAL = {
    "an inverse": (
        lambda m, h: (torch.linalg.inv(matrices(m, h)) @ h[..., None])[..., 0],
        lambda m, h: torch.linalg.solve(matrices(m, h), h[..., None])[..., 0],
    ),
    "an inverse of a tensor": (
        lambda m, h: (matrices(m, h).inverse() @ h[..., None])[..., 0],
        lambda m, h: torch.linalg.solve(matrices(m, h), h[..., None])[..., 0],
    ),
    "a triangular system": (
        lambda m, h: torch.linalg.solve_triangular(matrices(m, h).tril(), h[..., None], upper=False)[..., 0],
        lambda m, h: torch.linalg.solve(matrices(m, h).tril(), h[..., None])[..., 0],
    ),
    "an exponential of a diagonal matrix": (
        lambda _, h: (torch.matrix_exp(torch.diag_embed(h)) @ h[..., None])[..., 0],
        lambda _, h: h.exp() * h,
    ),
    "a sparse buffer that is not read": (lambda _, h: h * 2.0, lambda _, h: h + h),
    "a sparse matrix": (lambda model, h: (model.sparse @ h.T).T, lambda model, h: h @ model.dense.T),
    "a matrix by its sparse rows": (lambda model, h: (model.rows @ h.T).T, lambda model, h: h @ model.dense.T),
    "sparse.mm": (lambda model, h: torch.sparse.mm(model.sparse, h.T).T, lambda model, h: h @ model.dense.T),
    "sparse.mm that averages": (
        lambda model, h: torch.sparse.mm(model.rows, h.T, "mean").T,
        lambda model, h: h @ (model.dense / model.dense.ne(0).sum(1, keepdim=True)).T,
    ),
    "sparse.addmm": (
        lambda model, h: torch.sparse.addmm(h.T, model.sparse, h.T, beta=0.5, alpha=2.0).T,
        lambda model, h: 0.5 * h + 2.0 * (h @ model.dense.T),
    ),
    "a linear layer of sparse weights": (
        lambda model, h: nn.functional.linear(h, model.sparse),
        lambda model, h: h @ model.dense.T,
    ),
    "a sparse summand": (
        lambda model, h: h[:, :, None] @ h[:, None] * 0.1 + model.dense,
        lambda model, h: torch.stack([each + model.sparse for each in h[:, :, None] @ h[:, None] * 0.1]),
    ),
    "diagonal_scatter": (
        lambda model, h: torch.diagonal_scatter(h, model.middle(h).diagonal()),
        lambda model, h: torch.where(torch.eye(*h.shape).bool(), model.middle(h), h),
    ),
    "addmm": (lambda m, h: torch.addmm(m.middle.bias, h, m.middle.weight.T), lambda m, h: m.middle(h)),
    "addmm of multiples": (
        lambda m, h: torch.addmm(m.middle.bias, h, m.middle.weight.T, beta=2.0, alpha=2.0),
        lambda m, h: 2.0 * m.middle(h),
    ),
    "a convolution of one example": (
        lambda m, h: torch.stack([convolved(m, each) for each in h[:, :, None].expand(-1, D, D)]),
        lambda m, h: convolved(m, h[:, :, None].expand(-1, D, D)),
    ),
    "vecdot": (
        lambda model, h: torch.linalg.vecdot(h[:, None], model.middle(h)[:, None] * h[:, :, None]),
        lambda model, h: (h[:, None] * (model.middle(h)[:, None] * h[:, :, None])).sum(-1),
    ),
    "a convolution with the time first": (
        lambda m, h: torch.conv_tbc(h[:, None], m.dense[None, :, :4], m.middle.bias[:4], 0),
        lambda m, h: (h @ m.dense[:, :4] + m.middle.bias[:4])[:, None],
    ),
    "linalg.matmul": (lambda model, h: torch.linalg.matmul(h, model.dense), lambda model, h: h @ model.dense),
    "multi_dot": (
        lambda model, h: torch.linalg.multi_dot([h, model.dense, h.T, torch.tanh(h)]),
        lambda model, h: torch.einsum("ab,bc,dc,de->ae", h, model.dense, h, torch.tanh(h)),
    ),
    "linalg.cross": (
        lambda model, h: torch.linalg.cross(h[:, :3], model.middle(h)[:, :3]),
        lambda model, h: torch.cross(h[:, :3], model.middle(h)[:, :3], dim=-1),
    ),
    "solve": (
        lambda model, h: torch.linalg.solve(torch.eye(D).double() * 3 + model.dense, h.T),
        lambda model, h: torch.linalg.inv(torch.eye(D).double() * 3 + model.dense) @ h.T,
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_operations_of_matrices_have_equal_accounts(name):
    assert_equal(*EQUAL[name])


def test_operations_of_matrices_of_other_value_have_other_accounts():
    with pytest.raises(AssertionError):
        assert_equal(lambda model, h: model.sparse @ h.T, lambda model, h: model.dense.T @ h.T)
