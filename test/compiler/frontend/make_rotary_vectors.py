"""Writes RotaryVectors.inc: inverse frequencies as the transformers package
computes them, for plain, linear, Llama 3, yarn and longrope rotary embeddings
(of the last the short list, then the long one).

    python make_rotary_vectors.py > RotaryVectors.inc
"""
import numpy as np
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
CASES = [
    ("Default", 4, {"rope_type": "default", "rope_theta": 10000.0}),
    ("Default", 64, {"rope_type": "default", "rope_theta": 100000.0}),
    ("Default", 96, {"rope_type": "default", "rope_theta": 10000.0}),
    ("Default", 128, {"rope_type": "default", "rope_theta": 1000000.0}),
    ("Linear", 128, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    ("Linear", 80, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}),
    ("Llama3", 128, {**LLAMA3, "rope_theta": 500000.0, "factor": 8.0}),
    ("Llama3", 64, {**LLAMA3, "rope_theta": 500000.0, "factor": 32.0}),
    ("Yarn", 128, {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0,
                   "original_max_position_embeddings": 32768}),
    ("Yarn", 32, {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0,
                  "original_max_position_embeddings": 4096}),
    ("LongRope", 96, {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 32.0,
                      "original_max_position_embeddings": 4096,
                      "short_factor": [1 + i / 64 for i in range(48)],
                      "long_factor": [1 + i * 1.25 for i in range(48)]}),
]


def main():
    print("// Made by make_rotary_vectors.py with the transformers package.")
    for kind, dim, rope in CASES:
        config = LlamaConfig(hidden_size=4 * dim, num_attention_heads=4, head_dim=dim,
                             rope_parameters=dict(rope), max_position_embeddings=131072)
        inverse = LlamaRotaryEmbedding(config).inv_freq.numpy().astype(np.float32)
        if kind == "LongRope":
            longer, _ = ROPE_INIT_FUNCTIONS["longrope"](config, "cpu", seq_len=4097)
            inverse = np.concatenate([inverse, longer.numpy()])
        numbers = [dim, rope["rope_theta"], rope.get("factor", 1.0),
                   rope.get("low_freq_factor", 0.0), rope.get("high_freq_factor", 0.0),
                   rope.get("original_max_position_embeddings", 0)]
        print(f"{{RotaryKind::{kind}, " + ", ".join(str(n) for n in numbers) + ",")
        print(" {" + ", ".join(f"0x{b:08x}u" for b in inverse.view(np.uint32)) + "}},")


main()
