"""What torch.onnx.export makes of a transformers encoder: the states of its last layer
of (input_ids, attention_mask) and, where it has types of tokens, token_type_ids.

Used by export_onnx.py; needs torch and transformers. Weights that the export holds
become external data in model.safetensors again.
"""
import io

import onnx
import torch
from transformers import AutoModel

from export_decomposed import shared_weights


class States(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *types):
        more = {"token_type_ids": types[0]} if types else {}
        return self.model(input_ids=input_ids, attention_mask=attention_mask,
                          **more).last_hidden_state


def export(folder, weights):
    model = AutoModel.from_pretrained(folder, dtype=torch.float32,
                                      attn_implementation="eager").eval()
    names = ["input_ids", "attention_mask"]
    if getattr(model.config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    ids = torch.arange(8, 20).reshape(2, 6)
    inputs = [ids, torch.ones_like(ids), torch.zeros_like(ids)][:len(names)]
    axes = {name: {0: "batch", 1: "sequence"} for name in names + ["last_hidden_state"]}
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(States(model), tuple(inputs), file, input_names=names,
                          output_names=["last_hidden_state"], dynamic_axes=axes,
                          opset_version=17, do_constant_folding=False, dynamo=False)
    return shared_weights(onnx.load_from_string(file.getvalue()), weights)
