r"""How far one step of an expansion is from the network's own step, from the state that the network was in.

.. math:: \frac{\|h_t - \hat h_t\|}{\|h_t\|}, \qquad \hat s_t = g_t + A_t s_{t-1}

Errors do not add up here: every step begins where the network stood.

Source:
    Sun and Lu (2022), Implicit n-grams, appendix B.2, equation 15.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.decomposition.decomposition import Decomposition
from unrolled.errors import UsageError
from unrolled.linalg.relative_error import relative_error
from unrolled.linalg.workspace import Workspace

__all__ = ["step_errors"]


@torch.no_grad()
def step_errors(found: Decomposition) -> Tensor:
    """Measure every step by itself.

    Args:
        found: of a network of one layer and one direction, by one linearisation.

    Returns:
        Relative errors of the hidden output, shape (batch, time); zero at padding.

    Raises:
        UsageError: when there are several layers, directions or linearisations.
    """
    if len(found.sequences) != 1 or len(found.sequences[0]) != 1 or len(found.sequences[0][0].layers) != 1:
        raise UsageError("step errors are of one layer, read in one direction and expanded in one way")
    ((sequence,),) = found.sequences
    (layer,), workspace = sequence.layers, Workspace()
    moved = torch.empty_like(sequence.g)
    for time, state in enumerate(layer.states[:-1]):
        sequence.apply(time, state[None], moved[time][None], workspace)
    own, guessed = (each[..., sequence.hidden].transpose(0, 1) for each in (layer.image, sequence.g + moved))
    errors = relative_error(guessed - own, own)
    inside = torch.arange(errors.shape[1]) < found.lengths[:, None]
    return torch.where(inside, errors, torch.zeros_like(errors))
