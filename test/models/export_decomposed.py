"""What torch.onnx.export makes of a transformers model, with past inputs.

Used by export_onnx.py; needs torch and transformers. Weights that the export
holds become external data in model.safetensors again.
"""
import io

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import AutoModelForCausalLM, DynamicCache


class Step(torch.nn.Module):
    """logits and presents of (input_ids, attention_mask, position_ids, *past)."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         position_ids=position_ids, past_key_values=cache, use_cache=True)
        presents = [t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)]
        return (out.logits, *presents)


def repeat_pairs(x, repeats, dim):
    """What torch.repeat_interleave gives for a number, which cannot be exported."""
    assert isinstance(repeats, int) and dim == -1
    return torch.stack([x] * repeats, dim=-1).flatten(-2)


def export(folder, weights):
    torch.repeat_interleave = repeat_pairs
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto",
                                                 attn_implementation="eager").eval()
    with torch.no_grad():
        cached = model(torch.zeros(1, 5, dtype=torch.int64), use_cache=True).past_key_values
    past = [torch.zeros_like(t) for layer in cached.layers for t in (layer.keys, layer.values)]
    layers = range(len(cached.layers))
    ids = torch.arange(1, 4)[None]
    names = ["input_ids", "attention_mask", "position_ids"]
    pasts = [f"past_key_values.{i}.{w}" for i in layers for w in ("key", "value")]
    presents = [f"present.{i}.{w}" for i in layers for w in ("key", "value")]
    axes = {"input_ids": {1: "sequence"}, "position_ids": {1: "sequence"},
            "attention_mask": {1: "total"}, **{n: {2: "past"} for n in pasts}}
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(
            Step(model), (ids, torch.ones(1, 8, dtype=torch.int64), torch.arange(5, 8)[None], *past),
            file, input_names=names + pasts, output_names=["logits"] + presents,
            dynamic_axes=axes, opset_version=17, do_constant_folding=False, dynamo=False)
    return shared_weights(onnx.load_from_string(file.getvalue()), weights)


def shared_weights(exported, weights):
    """The model with its weights as external data in the folder's file."""
    # A weight of the file by its name, else by its bytes.
    twins = {}
    for name in weights.header:
        tensor = weights.initializer(name)
        begin, size = (int(tensor.external_data[i].value) for i in (1, 2))
        with open(weights.path, "rb") as data:
            data.seek(begin)
            twins[name] = (data.read(size), tensor)
    by_bytes = {data: tensor for data, tensor in twins.values()}
    for i, tensor in enumerate(exported.graph.initializer):
        data = np.ascontiguousarray(numpy_helper.to_array(tensor)).tobytes()
        short = tensor.name.removeprefix("model.")
        names = [n for n in (short, short.partition(".")[2]) if twins.get(n, (b"",))[0] == data]
        twin = twins[names[0]][1] if names else by_bytes.get(data) if len(data) > 256 else None
        if twin is not None and list(twin.dims) == list(tensor.dims):
            replacement = onnx.TensorProto()
            replacement.CopyFrom(twin)
            replacement.name = tensor.name
            exported.graph.initializer[i].CopyFrom(replacement)
    for value in list(exported.graph.value_info):
        exported.graph.value_info.remove(value)
    return exported
