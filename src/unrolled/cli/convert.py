"""``unrolled convert``: read a pickled checkpoint for the tensors in it. No other part of the package reads a pickle.

A pickle is a program. ``torch.load(weights_only=True)`` rebuilds only tensors and plain containers; objects of other
classes are data without code.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zipfile import ZipFile

import typer

from unrolled.atomic_write import atomic_write
from unrolled.cli.objects_as_data import load_objects_as_data
from unrolled.cli.output_file import check_new
from unrolled.errors import DataError, FileError, UsageError, kind_of
from unrolled.report.formatting import counted, harmless, visible
from unrolled.weights.foreign_file import describe_foreign

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["convert", "read_checkpoint"]

_ITSELF = "."  # the key of the outermost mapping
_DEEPEST = 100  # a mapping may hold itself
SAFE = "2.10"  # the first torch whose weights_only=True lets no code run

_PROGRAMS = {
    "constants.pkl": ("a TorchScript program", "torch.jit.load({path!r}).state_dict()"),
    "archive_format": ("a program of torch.export", "torch.export.load({path!r}).state_dict"),
}
"""Archives that are no checkpoints, by a file in them: what they are, and how to get at their weights."""


def convert(
    source: Annotated[Path, typer.Argument(help="A checkpoint saved by torch.save, e.g. model.pt.")],
    target: Annotated[Path, typer.Argument(help="The file to write, e.g. model.safetensors.")],
    key: Annotated[
        str | None,
        typer.Option(help="The entry of the checkpoint that holds the weights, if there are several, e.g. model.ema."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Convert a checkpoint of torch.save to safetensors, without running code that a pickle may contain.

    The second command explains the network that was converted:

        unrolled convert model.pt model.safetensors
        unrolled explain --weights model.safetensors --vocab words.txt 'it is not a bad film'
    """
    if source.exists() and target.exists() and source.samefile(target):
        raise UsageError(f"{target} is the checkpoint itself; give another path, e.g. {source.stem}.safetensors")
    check_new(target, force, ".safetensors")
    checkpoint, classes = read_checkpoint(source)
    found, left_out = _find_state_dict(checkpoint, key)
    from safetensors.torch import save

    tensors = {name: _plain(source, name, tensor) for name, tensor in found.items()}
    atomic_write(target, save(tensors), new=not force)
    total = sum(tensor.numel() for tensor in tensors.values())
    typer.echo(f"{visible(str(target))}: {counted(len(tensors), 'tensor')}, {counted(total, 'number')}")
    if left_out:
        typer.echo(f"left out: {harmless(', '.join(left_out))}")
    if classes:
        typer.echo(f"objects of {harmless(_first(classes))} were read as data, without their code")


def read_checkpoint(path: Path) -> tuple[object, list[str]]:
    """Load a file of ``torch.save``, and name the classes whose objects were read as data."""
    if not path.exists():
        raise FileError(f"{path}: cannot be read: No such file or directory")
    import torch

    if torch.__version__ < SAFE:
        raise UsageError(
            f"with torch {torch.__version__} a hostile checkpoint can run code (CVE-2025-32434, CVE-2026-24747); "
            f"convert {path} with torch {SAFE} or later"
        )
    foreign = describe_foreign(path)
    if foreign is not None:
        raise DataError(foreign)
    _refuse_program(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of a foreign pickle is in the error
        try:
            return torch.load(path, map_location="cpu", weights_only=True), []
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
        except Exception:  # foreign bytes make the reader of pickles raise errors of many kinds
            return _with_objects_as_data(path)


def _with_objects_as_data(path: Path) -> tuple[object, list[str]]:
    names = _classes(path)
    if "torch.ScriptObject" in names and all(name.startswith("torch.") for name in names):
        raise DataError(
            f"{path} holds packed weights of a quantised model; convert the model that it was quantised from"
        )
    try:
        found = _by_name(load_objects_as_data(path, names))
    except Exception as error:  # as above, and a class may need more than attributes
        raise DataError(_why_refused(path, names)) from error
    if not isinstance(found, Mapping) or not any(tensors for _, _, tensors in _mappings(found)):
        raise DataError(_why_refused(path, names))
    return found, names


def _classes(path: Path) -> list[str]:
    """List the classes and functions that a checkpoint names and this reader does not load, a user's own first."""
    from torch.serialization import get_unsafe_globals_in_checkpoint

    try:
        names = get_unsafe_globals_in_checkpoint(path)  # takes the pickle apart and runs nothing of it
    except Exception:  # no archive, or foreign bytes in one
        return []
    return sorted(names, key=lambda name: (name.startswith("torch."), name))


def _why_refused(path: Path, names: list[str]) -> str:
    if not names:
        return (
            f"{path} is truncated, no checkpoint, or contains more than tensors, which could run code; "
            "expected the file of torch.save(model.state_dict(), path)"
        )
    return (
        f"{path} holds more than tensors: objects of {_first(names)}, which could run code; if you trust it, load it "
        f"by torch.load({str(path)!r}, weights_only=False), write the weights alone, torch.save(model.state_dict(), "
        "'weights.pt'), and convert that file"
    )


def _first(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _refuse_program(path: Path) -> None:
    """Refuse an archive of code beside weights, and say how its weights are written alone."""
    try:
        with ZipFile(path) as archive:
            inside = {Path(name).name for name in archive.namelist()}
    except Exception:  # foreign bytes make this reader too raise errors of many kinds
        return  # the reader of checkpoints says what is wrong
    for name, (kind, weights) in _PROGRAMS.items():
        if name in inside:
            raise DataError(
                f"{path} is {kind}: code beside weights; if you trust it, write its weights alone and convert that "
                f"file: torch.save({weights.format(path=str(path))}, 'weights.pt')"
            )


def _find_state_dict(checkpoint: object, key: str | None) -> tuple[dict[str, Tensor], list[str]]:
    """Find the state dict in a checkpoint: the mapping itself, or the one mapping of tensors inside it.

    Returns the tensors by name, and the names of all other entries. ``key`` names the entry if there are several: its
    names from the outside in, joined by dots; a dot alone is the mapping itself. An entry of a list is named by its
    index.
    """
    checkpoint = _by_name(checkpoint)
    if not isinstance(checkpoint, Mapping):
        raise DataError(f"the file holds {kind_of(checkpoint)}; expected a state dict: tensors by name")
    mappings = [(path or _ITSELF, depth, tensors) for path, depth, tensors in _mappings(checkpoint) if tensors]
    entries = {path: tensors for path, _, tensors in mappings}
    if not entries:
        raise DataError(f"no tensors in the file; its entries: {_listed(checkpoint)}")
    if key is not None and key not in entries:
        raise UsageError(f"no entry {key!r} with tensors; entries with tensors: {_listed(entries)}{_itself(entries)}")
    # single numbers, as of the last loss, are no weights
    weights = [(path, depth) for path, depth, tensors in mappings if any(each.ndim for each in tensors.values())]
    places = weights or [(path, depth) for path, depth, _ in mappings]
    # what an optimiser keeps lies deeper than the weights beside it
    shallowest = min(depth for _, depth in places)
    likely = [path for path, depth in places if depth == shallowest]
    if key is None and len(likely) > 1 and "state_dict" not in likely:
        raise UsageError(f"several entries hold tensors: {', '.join(likely)}{_itself(likely)}; name one with --key")
    chosen = key or ("state_dict" if "state_dict" in likely else likely[0])
    return entries[chosen], _left_out(checkpoint, "" if chosen == _ITSELF else chosen, entries[chosen])


def _by_name(value: object) -> object:
    """Make a mapping of a list of mappings, as of a model and its optimiser."""
    if isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
        return {str(index): each for index, each in enumerate(value)}
    return value


def _mappings(
    mapping: Mapping[str, object], path: str = "", depth: int = 0
) -> Iterator[tuple[str, int, dict[str, Tensor]]]:
    """Walk through a mapping and those within it: path, depth and tensors of each; what the file holds has depth 1."""
    from torch import Tensor

    if depth > _DEEPEST:
        raise DataError(
            f"the checkpoint has more than {_DEEPEST} mappings, each within the next; expected a state dict"
        )
    # tensors of the file itself and of the mappings beside them are equally likely
    yield path, max(1, depth), {name: value for name, value in mapping.items() if isinstance(value, Tensor)}
    for name, each in mapping.items():
        value = _by_name(each)
        if isinstance(value, Mapping):
            yield from _mappings(value, f"{path}.{name}" if path else str(name), depth + 1)


def _left_out(mapping: Mapping[str, object], chosen: str, tensors: Mapping[str, object], path: str = "") -> list[str]:
    """Name the entries beside the chosen one, and those in it that are no tensors."""
    found = []
    for name, each in mapping.items():
        place, value = f"{path}.{name}" if path else str(name), _by_name(each)
        if path == chosen:
            found += [] if name in tensors else [place]
        elif isinstance(value, Mapping) and (place == chosen or chosen.startswith(f"{place}.")):
            found += _left_out(value, chosen, tensors, place)
        else:
            found.append(place)
    return found


def _plain(source: Path, name: object, tensor: Tensor) -> Tensor:
    """Copy a tensor into the form that safetensors stores: dense, and without memory shared with others."""
    import torch
    from safetensors.torch import save

    if not isinstance(name, str):
        raise DataError(f"{source}: the key of a tensor is {name!r}; expected names, as in a state dict")
    if name == "__metadata__" or not _is_text(name):
        raise DataError(f"{source}: the key of a tensor is {name!r}, which a safetensors file cannot hold; rename it")
    held = not tensor.is_nested
    try:
        save({name: torch.empty(0, dtype=tensor.dtype, device=tensor.device)})  # fails if the format has no such type
    except (KeyError, NotImplementedError):
        held = False
    if not held:
        kind = f"{tensor.dtype}, {tensor.layout}, {tensor.device.type}".replace("torch.", "")
        raise DataError(
            f"{source}: {name} is a tensor of a kind that safetensors does not hold ({kind}); "
            "expected plain numbers, such as float32"
        )
    dense = tensor.detach() if tensor.layout == torch.strided else tensor.detach().to_dense()
    return dense.clone().contiguous()


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _itself(names: Container[str]) -> str:
    return f" ({_ITSELF} is the file itself)" if _ITSELF in names else ""


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(str, names)) or "none"
