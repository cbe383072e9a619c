"""A Llama, a BERT and a GPT-2 of four layers from transformers, random weights, in eval mode."""

import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = LlamaConfig(
            num_hidden_layers=4, hidden_size=512, intermediate_size=1376,
            num_attention_heads=8, num_key_value_heads=8, vocab_size=8192,
        )  # fmt: skip
        self.model = LlamaForCausalLM(config).eval()

    def forward(self, ids):
        return self.model(ids, use_cache=False).logits


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = BertModel(BertConfig(num_hidden_layers=4)).eval()

    def forward(self, ids):
        return self.model(ids).last_hidden_state


class GPT2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT2LMHeadModel(GPT2Config(n_layer=4)).eval()

    def forward(self, ids):
        return self.model(ids, use_cache=False).logits


def make_inputs(device="cuda"):
    generator = torch.Generator().manual_seed(0)
    return (torch.randint(0, 8192, (2, 256), generator=generator).to(device),)
