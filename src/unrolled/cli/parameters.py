"""``unrolled parameters``: find the size of a network for a number of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.cli.completed_values import cell_names

if TYPE_CHECKING:
    from unrolled.cells.parameter_budget import Sized

__all__ = ["parameters"]


def parameters(
    cell: Annotated[str, typer.Argument(help="A cell's name, such as lstm or mmlstm.", autocompletion=cell_names)],
    match: Annotated[str, typer.Option(help="Number of parameters: 4.5M, 350k, 1_000_000.")],
    input_size: Annotated[int, typer.Option("--input", help="Size of an input vector.")],
    layers: Annotated[int, typer.Option(help="Number of layers.")] = 1,
    bidirectional: Annotated[bool, typer.Option("--bidirectional", help="Bidirectional network.")] = False,
    vocabulary: Annotated[
        int, typer.Option(help="Number of words whose embedding and softmax layer count as well.")
    ] = 0,
) -> None:
    """Find the hidden size with the number of parameters nearest to a given one.

    With --vocabulary, the embedding and the softmax layer count as well:

        unrolled parameters lstm --match 350k --input 100
        unrolled parameters gru --match 4.5M --input 200 --layers 2 --vocabulary 10_000
    """
    from unrolled.cells.parameter_budget import fit_parameters, parse_count

    name = "elman" if cell == "rnn" else cell  # torch.nn.RNN, as in `unrolled train --encoder rnn`
    fit = fit_parameters(name, parse_count(match), input_size, layers, bidirectional, vocabulary)
    nearest = fit.nearest
    typer.echo(f"{cell}, {_described(nearest, fit.budget)}")
    if vocabulary:
        counts = f"network {nearest.network:,}, embedding {nearest.embedding:,}, softmax {nearest.output:,}"
        typer.echo(f"  {counts}")
    other = fit.below if nearest is fit.above else fit.above
    typer.echo(f"  next: {_described(other, fit.budget)}")


def _described(sized: Sized, budget: int) -> str:
    apart = sized.parameters - budget
    side = f"{abs(apart):,} {'more' if apart > 0 else 'fewer'} than" if apart else "just"
    units = "1 hidden unit" if sized.hidden_size == 1 else f"{sized.hidden_size:,} hidden units"
    return f"{units}: {sized.parameters:,} parameters, {side} {budget:,}"
