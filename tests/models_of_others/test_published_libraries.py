"""Linear recurrences and hybrids as published libraries build them: every model of a list has an account that holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import unrolled

transformers = pytest.importorskip("transformers", reason="needs the extra [dev]")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # these libraries warn of their own calls

WORDS = 37
IDS = torch.tensor([[5, 9, 3, 11, 7, 20, 8]])
PLACE = 3
"""The position whose output is explained."""

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ATTENTION = {"intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
MAMBA = {"state_size": 4, "conv_kernel": 3, "time_step_rank": 2}
MAMBA_2 = {"mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_chunk_size": 4}
EXPERTS = {"num_experts_per_tok": 1}
CAUSAL = {
    "Mamba": MAMBA,
    "FalconMamba": MAMBA,
    "Mamba2": {"state_size": 8, "num_heads": 4, "head_dim": 8, "n_groups": 2, "conv_kernel": 3, "chunk_size": 4},
    "Rwkv": {"attention_hidden_size": 16, "intermediate_size": 32, "context_length": 64},
    "RecurrentGemma": {
        **ATTENTION,
        "num_hidden_layers": 3,
        "lru_width": 16,
        "attention_window_size": 8,
        "conv1d_width": 3,
        "block_types": ["recurrent", "recurrent", "attention"],
    },
    "xLSTM": {"hidden_size": 64, "num_heads": 2, "num_blocks": 2, "chunk_size": 4, "qk_dim_factor": 1.0},
    "Zamba2": {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "mamba_ngroups": 1,
        "chunk_size": 4,
        "layers_block_type": ["mamba", "hybrid", "mamba"],
    },
    "Bamba": {**ATTENTION, **MAMBA_2, "attn_layer_indices": [1]},
    "FalconH1": {**ATTENTION, **MAMBA_2, "mamba_d_ssm": 32},
    "NemotronH": {
        **ATTENTION,
        "head_dim": 8,
        "ssm_state_size": 8,
        "mamba_num_heads": 4,
        "mamba_head_dim": 8,
        "n_groups": 1,
        "chunk_size": 4,
        "hybrid_override_pattern": "M*",
    },
    "Lfm2": {**ATTENTION, "layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
    "Llama": ATTENTION,
    "Jamba": {
        **ATTENTION,
        **EXPERTS,
        "mamba_d_state": 4,
        "mamba_d_conv": 3,
        "mamba_dt_rank": 2,
        "num_experts": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
    },
    "Qwen3Next": {
        **ATTENTION,
        **EXPERTS,
        "num_hidden_layers": 4,
        "head_dim": 8,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "num_experts": 2,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
    "MiniMax": {**ATTENTION, **EXPERTS, "head_dim": 8, "block_size": 4, "num_local_experts": 2},
    "GraniteMoeHybrid": {
        **ATTENTION,
        **MAMBA_2,
        **EXPERTS,
        "layer_types": ["mamba", "attention"],
        "num_local_experts": 2,
        "shared_intermediate_size": 16,
    },
}
IN_FLOAT32 = {"Jamba", "Qwen3Next", "MiniMax", "GraniteMoeHybrid", "xLSTM"}
"""Their grouped products and states exist in this precision only."""


def causal(name):
    """Build a language model with drawn weights that are large enough for every token to matter."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(vocab_size=WORDS, **{**SIZES, **CAUSAL[name]})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return model if name in IN_FLOAT32 else model.double()


def at_place(out):
    return out.logits[:, PLACE, 4]


@pytest.mark.parametrize("name", CAUSAL)
def test_a_language_model_has_an_account_in_which_no_later_token_counts(name):
    model = causal(name)
    found = unrolled.account(model, IDS, target=at_place)
    assert found.closes
    assert not [note for note in found.notes if "remainder" in note]
    assert found.tokens[0, : PLACE + 1].abs().min() > 1e-6
    assert found.tokens[0, PLACE + 1 :].abs().max() == 0
    prefix = unrolled.account(model, IDS[:, : PLACE + 1], target=at_place)
    torch.testing.assert_close(found.tokens[:, : PLACE + 1], prefix.tokens, atol=1e-5, rtol=1e-4)
    assert "unrolled.account" in str(unrolled.check(model, IDS))


def test_in_a_model_that_reads_both_ways_later_tokens_count():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    found = unrolled.account(transformers.BertForMaskedLM(config).double().eval(), IDS, target=at_place)
    assert found.closes
    assert found.tokens[0, PLACE + 1 :].abs().min() > 0


@pytest.mark.parametrize("name", ["Mamba", "RecurrentGemma", "Llama"])
def test_padding_under_the_attention_mask_counts_nothing(name):
    model, padded = causal(name), torch.cat((IDS, torch.zeros(1, 3, dtype=torch.long)), 1)
    mask = (padded != 0).long()
    found = unrolled.account(model, input_ids=padded, attention_mask=mask, target=at_place)
    alone = unrolled.account(model, IDS, target=at_place)
    torch.testing.assert_close(found.tokens[:, : IDS.shape[1]], alone.tokens)
    assert found.tokens[0, IDS.shape[1] :].abs().max() == 0


def test_mamba_by_its_parallel_scan_has_the_account_of_the_loop():
    mamba = pytest.importorskip("mambapy.mamba", reason="needs the extra [dev]")

    class Model(nn.Module):
        def __init__(self, parallel):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.head = nn.Embedding(WORDS, 16), nn.Linear(16, 2)
            self.body = mamba.Mamba(mamba.MambaConfig(d_model=16, n_layers=2, d_state=4, pscan=parallel))

        def forward(self, ids):
            return self.head(self.body(self.embed(ids))[:, -1])

    found, expected = (unrolled.account(Model(parallel), IDS, target=1) for parallel in (True, False))
    torch.testing.assert_close(found.tokens, expected.tokens, atol=1e-6, rtol=1e-4)
    assert found.closes
    assert found.tokens.abs().max() > 1e-2


def test_the_page_on_these_models_says_what_runs(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "mamba-and-rwkv.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "transformers import MambaC" in block)  # the others have tests of their own
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page.name, "exec"), {})
    assert "remainder is rounding" in capsys.readouterr().out
    assert (tmp_path / "mamba.html").exists()
    assert set(re.findall(r"\b(Falcon\w+|Nemotron\w+|Jamba|Bamba|xLSTM|Zamba2)\b", page.read_text())) <= set(CAUSAL)
