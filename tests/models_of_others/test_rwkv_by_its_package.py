"""RWKV-7 as the package rwkv runs it: the recipe of the documentation, with a file of small weights."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("rwkv", reason="needs the extra [dev]")
pytestmark = pytest.mark.slow

WORDS, SIZE, LAYERS, HEADS = 100, 128, 2, 2
IDS = [7, 3, 52, 1, 90, 12]
STEP_BY_STEP = """
class OneByOne(Reader):
    def forward(self, ids):
        state = self.rwkv.generate_zero_state()
        for each in torch.nn.functional.embedding(ids[0], self.rwkv.z["emb.weight"]):
            out, state = self.rwkv.forward_one_alt(each, state)
        return out[None]

import json
made = unrolled.account(model, ids, target=42)
prefix = unrolled.account(model, ids[:, :4], target=42)
loop = unrolled.account(OneByOne("rwkv7-g1"), ids, target=42)
own, _ = model.rwkv.forward(ids[0].tolist(), None)  # the library's own call
told = {"tokens": made.tokens.tolist(), "loop": loop.tokens.tolist(), "prefix": prefix.tokens.tolist()}
told |= {"closes": made.closes and loop.closes and prefix.closes, "output": made.ledger["output"]}
print(json.dumps(told | {"own": float(own[42])}))
"""


def weights():
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape, scale=1.0):
        return scale * torch.randn(*shape, generator=generator) / (shape[-1] ** 0.5 if len(shape) == 2 else 8.0)

    def norm(name, *, drawn_weight=True):
        return {f"{name}.weight": 1 + drawn_weight * drawn(SIZE), f"{name}.bias": drawn_weight * drawn(SIZE)}

    made = {"emb.weight": drawn(WORDS, SIZE, scale=8.0), "head.weight": drawn(WORDS, SIZE)}
    made |= norm("ln_out") | norm("blocks.0.ln0")
    for i in range(LAYERS):
        block, att = f"blocks.{i}", f"blocks.{i}.att"
        made |= norm(f"{block}.ln1") | norm(f"{block}.ln2") | norm(f"{att}.ln_x")
        made |= {f"{att}.x_{each}": drawn(1, 1, SIZE).abs() for each in "rwkvag"}
        for each in "wav":
            made |= {f"{att}.{each}0": drawn(1, 1, SIZE)}
        for each in "wavg":
            made |= {f"{att}.{each}1": drawn(SIZE, 16), f"{att}.{each}2": drawn(16, SIZE)}
        made |= {f"{att}.k_k": 1 + drawn(1, 1, SIZE), f"{att}.k_a": 1 + drawn(1, 1, SIZE)}
        made |= {f"{att}.r_k": drawn(HEADS, SIZE // HEADS)}
        made |= {f"{att}.{each}.weight": drawn(SIZE, SIZE) for each in ("receptance", "key", "value", "output")}
        made |= {f"{block}.ffn.x_k": drawn(1, 1, SIZE).abs()}
        made |= {f"{block}.ffn.key.weight": drawn(4 * SIZE, SIZE), f"{block}.ffn.value.weight": drawn(SIZE, 4 * SIZE)}
    return made


def run(code, folder, **environment):
    given = {key: value for key, value in os.environ.items() if key not in ("PYTORCH_JIT", "RWKV_V7_ON")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        env=given | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def recipe():
    page = Path(__file__).parents[2] / "docs" / "mamba-and-rwkv.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "from rwkv.model" in block)
    return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rwkv")
    torch.save(weights(), made / "rwkv7-g1.pth")
    return made


def test_the_recipe_closes_and_is_that_of_the_loop(recipe, folder):
    done = run(recipe + STEP_BY_STEP, folder)
    assert done.returncode == 0, done.stderr
    assert "closes: the remainder is rounding" in done.stdout
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["closes"]
    assert told["output"] == pytest.approx(told["own"], abs=1e-5)
    torch.testing.assert_close(*map(torch.tensor, (told["tokens"], told["loop"])), atol=1e-5, rtol=1e-4)
    (tokens,), (prefix,) = told["tokens"], told["prefix"]
    assert min(map(abs, tokens)) > 1e-5
    assert tokens[:4] != pytest.approx(prefix, rel=1e-2)  # the control: a later token changes what is left of others


def test_as_torchscript_runs_it_the_model_is_refused_with_what_helps(recipe, folder):
    done = run(recipe.replace('os.environ["PYTORCH_JIT"] = "0"', ""), folder)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "rwkv is a scripted module" in last
    assert "start Python with the environment variable PYTORCH_JIT=0" in last
