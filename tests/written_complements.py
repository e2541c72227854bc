"""The complement of a gate, 1 - z, in all ways in which it is written."""

import torch

COMPLEMENTS = {
    "ones_like": lambda z: torch.ones_like(z) - z,
    "ones expanded as it": lambda z: torch.ones(1, dtype=z.dtype).expand_as(z) - z,
    "a tensor": lambda z: torch.tensor(1.0, dtype=z.dtype) - z,
    "minus": lambda z: -z + 1,
    "neg": lambda z: z.neg().add(1),
    "times minus one": lambda z: 1 + (-1) * z,
    "rsub": lambda z: torch.rsub(z, 1),
    "alpha": lambda z: torch.sub(torch.ones_like(z), z, alpha=1),
    "in place": lambda z: z.neg_().add_(1),
    "minus a difference": lambda z: -(z - 1),
}
