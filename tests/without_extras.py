"""Run as a program: the instrument in a Python that lacks every package of every extra. Prints OK at the end.

    python tests/without_extras.py FOLDER

The import hook makes these packages unimportable, so that no second environment is needed.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

# pydantic is not here: typer needs it.
MISSING = {
    "captum",
    "datasets",
    "matplotlib",
    "nltk",
    "pandas",
    "pooch",
    "requests",
    "sacrebleu",
    "scipy",
    "seqeval",
    "sklearn",
    "textblob",
    "tokenizers",
    "torchcrf",
    "yaml",
}


class Finder(PathFinder):
    """Python's own, but blind to the packages of the extras."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        hidden = fullname.partition(".")[0] in MISSING
        return None if hidden else super().find_spec(fullname, path, target)


sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]

import torch  # noqa: E402  # after the packages are hidden
from safetensors.torch import load_file  # noqa: E402  # as above

import unrolled  # noqa: E402  # after the packages are hidden
from unrolled.cli.main import run  # noqa: E402  # as above

folder = Path(sys.argv[1])
words = ["<unk>", "not", "a", "bad", "film"]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(len(words), 4)
        self.rnn = unrolled.cells.recurrent("mlstm", 4, 5, batch_first=True)
        self.head = torch.nn.Linear(5, 2)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


def refused(extra, *line):
    """The command line ends with status 2 and one line on stderr that names the extra."""
    from contextlib import redirect_stderr
    from io import StringIO

    said = StringIO()
    with redirect_stderr(said):
        assert run([str(word) for word in line]) == 2, said.getvalue()
    assert said.getvalue().count("\n") == 1, said.getvalue()
    assert f"pip install 'unrolled[{extra}]'" in said.getvalue(), said.getvalue()
    return said.getvalue()


torch.manual_seed(0)
found = unrolled.explain(Model(), torch.tensor([[1, 2, 3, 4]]), target=1, tokens=words[1:])
assert abs(found.ledger.remainder) < 1e-5
assert "bad film" in str(found)
found.save_html(folder / "page.html")
states = torch.nn.GRU(4, 5, batch_first=True)
inputs = torch.randn(2, 3, 4)
assert torch.allclose(unrolled.decompose(states, inputs).vectors().sum(dim=2), states(inputs)[0], atol=1e-5)
for call in (found.figure, lambda: unrolled.load(folder)):
    said = ""
    try:
        call()
    except unrolled.UsageError as error:
        said = str(error)
    assert "pip install 'unrolled[" in said

parts = {"emb": torch.nn.Embedding(len(words), 4), "core": torch.nn.LSTM(4, 5), "fc": torch.nn.Linear(5, 3)}
torch.save(torch.nn.ModuleDict(parts).state_dict(), folder / "net.pt")
(folder / "words.txt").write_text("\n".join(words))
network = ["--weights", str(folder / "net.safetensors"), "--vocab", str(folder / "words.txt"), "not a bad film"]
assert run(["convert", str(folder / "net.pt"), str(folder / "net.safetensors")]) == 0
assert len(load_file(folder / "net.safetensors")) == 7
assert run(["explain", *network, "--html", str(folder / "net.html")]) == 0
assert run(["parameters", "lstm", "--match", "1M", "--input", "64"]) == 0
assert "a figure needs matplotlib" in refused("figures", "explain", *network, "--png", folder / "net.png")
assert "a run folder needs the laboratory" in refused("lab", "explain", folder, "not a bad film")
for command in ("demo", "train classify --data x.tsv", "resume x", "evaluate x", "generate x", "translate x y"):
    assert f"`unrolled {command.split()[0]}` needs the laboratory" in refused("lab", *command.split())
for command in ("data list", "reproduce --list"):
    refused("lab", *command.split())
assert run(["--help"]) == 0
print("OK")  # noqa: T201  # for the test that runs this program
