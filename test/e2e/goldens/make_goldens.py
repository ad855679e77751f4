#!/usr/bin/env python3
"""Writes the reference results of this folder with Hugging Face transformers.

  python make_goldens.py --smollm2 SmolLM2-135M-Instruct.Q4_1.gguf \\
                         --wikitext wikitext-2/test.txt [MODEL ...]

MODEL is any of the names in MODELS, `perplexity` or `prompts`; without one, all
are written. `--check` compares the target against a plain numpy forward pass.
The format is described in README.md beside this file.

What is the truth? Every reference value is computed in float64. Transformers
asks for float32 inside (softmax, norms, rotary tables) whatever the type of the
model, so the model is built and run under Float64Mode below, which answers each
request for float32 with float64 and refuses any float32 result. The weights are
those of the file, converted exactly. The difference between transformers' own
float32 run and this truth is stored for each prompt: it is the yardstick for
the error of any other float32 implementation.
"""

import argparse
import hashlib
import json
import math
import os
import sys

import numpy as np
import torch
import transformers
from gguf import GGUFReader, dequantize
from tokenizers import Tokenizer
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText,
                          AutoTokenizer, DynamicCache, LlamaConfig, LlamaForCausalLM)

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS_FOLDER = os.path.join(HERE, "..", "..", "models")
SMALL = ["target", "draft", "tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"]
CODED = "target-int4"
SMOLLM2 = "smollm2-135m-instruct"
MODELS = SMALL + [CODED, SMOLLM2]

# The lengths that straddle vector widths, tiles, cache blocks and windows.
LENGTHS = [1, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300, 512, 1023, 1024,
           2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 23, 24, 25,
           28, 30, 36, 40, 47, 48, 49, 50, 56, 72, 80, 95, 96, 97, 100, 112, 144,
           160, 191, 192, 193, 224, 255, 256, 257, 320, 384, 511, 513]
# Prompts (by number) that are continued greedily: short enough that prompt and
# continuation stay inside a context of 1024.
CONTINUED = [1, 3, 6, 9, 11, 12, 15, 22]
STEPS = 128
TOP = 64
PROJECTIONS = 8
WINDOW = 512
DOUBLE_WINDOWS = 4

# The last prompts of SmolLM2 are conversations; they replace the continued ones.
CONVERSATIONS = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain in two sentences why the sky is blue.",
    "List five fruits that are yellow.",
    "Translate 'good morning' into Spanish, Italian and German.",
    "What is 12 + 30? Answer with the number only.",
]


class Float64Mode(TorchFunctionMode):
    """Answers each request for float32 with float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        args, kwargs = tree_map(widen, args), tree_map(widen, kwargs or {})
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype == torch.float32:
            raise TypeError(f"{func} made a float32 tensor in a float64 run")
        return result


class Float64:
    """Float64Mode with float64 as the default type of new tensors."""

    def __enter__(self):
        torch.set_default_dtype(torch.float64)
        self.mode = Float64Mode()
        self.mode.__enter__()

    def __exit__(self, *error):
        self.mode.__exit__(*error)
        torch.set_default_dtype(torch.float32)


def load_gguf(path):
    """A Llama model of a GGUF file, each tensor dequantised to float32."""
    reader = GGUFReader(path)

    def field(key):
        return reader.fields["llama." + key].contents()

    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    tensors = {t.name: torch.from_numpy(np.array(dequantize(t.data, t.tensor_type)))
               for t in reader.tensors}

    def half_split(weight, count):
        # GGUF stores the rows of q and k for interleaved rotation.
        rows, columns = weight.shape
        return weight.reshape(count, rows // count // 2, 2, columns).swapaxes(1, 2).reshape(
            rows, columns)

    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
             "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    weights = {"model.embed_tokens.weight": tensors.pop("token_embd.weight"),
               "model.norm.weight": tensors.pop("output_norm.weight")}
    weights["lm_head.weight"] = tensors.pop("output.weight", weights["model.embed_tokens.weight"])
    tied = weights["lm_head.weight"] is weights["model.embed_tokens.weight"]
    for key, value in tensors.items():
        _, layer, kind, _ = key.split(".")
        if kind in ("attn_q", "attn_k"):
            value = half_split(value, heads if kind == "attn_q" else kv_heads)
        weights[f"model.layers.{layer}.{names[kind]}.weight"] = value

    model = LlamaForCausalLM._from_config(LlamaConfig(
        vocab_size=len(weights["model.embed_tokens.weight"]), hidden_size=field("embedding_length"),
        num_hidden_layers=field("block_count"), num_attention_heads=heads,
        num_key_value_heads=kv_heads, intermediate_size=field("feed_forward_length"),
        max_position_embeddings=field("context_length"), rope_theta=field("rope.freq_base"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"), tie_word_embeddings=tied),
        dtype=torch.float32, attn_implementation="eager")
    model.load_state_dict(weights)
    return model


def load_coded(folder):
    """target with the weights that the codes of a folder stand for."""
    sys.path.insert(0, MODELS_FOLDER)
    from make_target_int4 import dequantized
    model = AutoModelForCausalLM.from_pretrained(
        os.path.join(MODELS_FOLDER, "target"), dtype=torch.float32, attn_implementation="eager")
    weights = {k: torch.from_numpy(v.copy()) for k, v in dequantized(folder).items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    return model


def load_pair(name, args):
    """(float32 model, float64 model) with equal weights."""
    auto, attention = AutoModelForCausalLM, "eager"
    if name == SMOLLM2:
        single = load_gguf(args.smollm2)
    elif name == CODED:
        single = load_coded(os.path.join(MODELS_FOLDER, name))
    else:
        folder = os.path.join(MODELS_FOLDER, name)
        config = AutoConfig.from_pretrained(folder)
        if hasattr(config, "vision_config"):
            auto = AutoModelForImageTextToText
        # Eager, Falcon adds the bias of ALiBi twice: to the scores and with the mask.
        if getattr(config, "alibi", False):
            attention = "sdpa"
        single = auto.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention)
    # Experts one by one: grouped products are not made for float64.
    if hasattr(single, "set_experts_implementation"):
        single.set_experts_implementation("eager")
    weights = single.state_dict()
    with Float64():
        double = auto.from_config(
            single.config, dtype=torch.float64, attn_implementation=attention)
        double.load_state_dict({k: v.double() for k, v in weights.items()})
        double.tie_weights()
        if hasattr(double, "set_experts_implementation"):
            double.set_experts_implementation("eager")
    return single.eval(), double.eval()


def hash_of(name, args):
    """SHA-256 over the weight files, so that stale goldens show."""
    digest = hashlib.sha256()
    if name == SMOLLM2:
        files = [args.smollm2]
    else:
        folder = os.path.join(MODELS_FOLDER, name)
        files = [os.path.join(folder, f) for f in sorted(os.listdir(folder))
                 if f.endswith(".safetensors")]
    for file in files:
        with open(file, "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()


def splitmix64(x):
    x = (x + np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def signs(vocabulary):
    """[PROJECTIONS, vocabulary] of +1 and -1: the top bit of splitmix64(j * 2^32 + i)."""
    j, i = np.ogrid[:PROJECTIONS, :vocabulary]
    bits = splitmix64(j.astype(np.uint64) << np.uint64(32) | i.astype(np.uint64))
    return 1.0 - 2.0 * (bits >> np.uint64(63)).astype(np.float64)


def held_out():
    with open(os.path.join(MODELS_FOLDER, "held-out.txt"), encoding="utf-8", newline="") as f:
        return f.read()


def slices(ids, lengths):
    """Prompt k begins at token (k * 769) mod (len - 1024) of the held-out text."""
    span = len(ids) - 1024
    return [ids[k * 769 % span:k * 769 % span + n] for k, n in enumerate(lengths)]


def small_tokenizer():
    return Tokenizer.from_file(os.path.join(MODELS_FOLDER, "target", "tokenizer.json"))


def smollm2_tokenizer(args):
    folder, file = os.path.split(os.path.abspath(args.smollm2))
    return AutoTokenizer.from_pretrained(folder, gguf_file=file)


def make_prompts(args):
    """prompts-small.json and prompts-smollm2.json; one prompt a line."""
    small = slices(small_tokenizer().encode(held_out()).ids, LENGTHS)
    write("prompts-small.json", dict(vocabulary=1024, source="held-out.txt"), prompts=small)

    tokenizer = smollm2_tokenizer(args)
    ids = tokenizer(held_out(), add_special_tokens=False)["input_ids"]
    large = []
    for k, n in enumerate(LENGTHS):
        # Few different beginnings, so that prompts share forward passes.
        base = 0 if n > 600 else 1 if n > 330 else 2 + k % 3
        large.append(ids[base * 5000:base * 5000 + n])
    for k, text in zip(CONTINUED, CONVERSATIONS):
        rendered = tokenizer.apply_chat_template([dict(role="user", content=text)], tokenize=False,
                                                 add_generation_prompt=True)
        large[k] = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    write("prompts-smollm2.json", dict(
        vocabulary=49152, source="held-out.txt; conversations at " +
        ", ".join(str(k) for k in CONTINUED[:len(CONVERSATIONS)])), prompts=large)


def read_prompts(name):
    file = "prompts-smollm2.json" if name == SMOLLM2 else "prompts-small.json"
    with open(os.path.join(HERE, file), encoding="utf-8") as f:
        return file, json.load(f)["prompts"]


def write(file, head, **lists):
    """JSON with one line for each element of the lists: compact, and a diff reads well."""
    lines = ["{"] + [f"{json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    for n, (key, rows) in enumerate(lists.items()):
        lines.append(f"{json.dumps(key)}: [")
        lines += [dump(row) + ("," if i + 1 < len(rows) else "") for i, row in enumerate(rows)]
        lines.append("]," if n + 1 < len(lists) else "]")
    with open(os.path.join(HERE, file), "w", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(lines + ["}"]) + "\n")


class Digits(float):
    """A number that is written with eight significant digits (or fewer)."""

    def __new__(cls, value, count=8):
        return super().__new__(cls, f"{float(value):.{count}g}")


def dump(value):
    return json.dumps(value, separators=(",", ":"))


def families(prompts):
    """[(ids, [k, ...])]: prompts that are prefixes of a longer one share its forward pass."""
    found = []
    for k in sorted(range(len(prompts)), key=lambda k: -len(prompts[k])):
        ids = prompts[k]
        for base, members in found:
            if base[:len(ids)] == ids:
                members.append(k)
                break
        else:
            found.append((ids, [k]))
    return found


def logits_at(model, ids, lengths):
    """[len(lengths), vocabulary]: the logits behind the first n tokens, for each n."""
    positions = torch.tensor([n - 1 for n in lengths])
    out = model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=positions)
    return out.logits[0].double().numpy()


def greedy(model, prompts):
    """For each prompt STEPS tokens with the cache, and the lead of each over the
    second best. The prompts run as one batch, padded on the left and masked."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    tokens, gaps = [[] for _ in prompts], [[] for _ in prompts]
    for _ in range(STEPS):
        out = model(input_ids=ids, attention_mask=mask, position_ids=positions,
                    past_key_values=cache, use_cache=True, logits_to_keep=1)
        top = out.logits[:, -1].topk(2)
        for row in range(len(prompts)):
            tokens[row].append(int(top.indices[row, 0]))
            gaps[row].append(Digits(top.values[row, 0] - top.values[row, 1], 4))
        ids, positions = top.indices[:, :1], positions[:, -1:] + 1
        mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], -1)
    return tokens, gaps


@torch.no_grad()
def make_model(name, args):
    file, prompts = read_prompts(name)
    single, double = load_pair(name, args)
    vocabulary = single.config.vocab_size
    sign = signs(vocabulary)
    rows = [None] * len(prompts)
    for ids, members in families(prompts):
        lengths = [len(prompts[k]) for k in members]
        low = logits_at(single, ids, lengths)
        with Float64():
            high = logits_at(double, ids, lengths)
        for k, single_logits, logits in zip(members, low, high):
            error = single_logits - logits
            order = np.argsort(-logits, kind="stable")[:TOP]
            peak = logits.max()
            rows[k] = dict(
                prompt=k, ids=order.tolist(), logits=[Digits(x) for x in logits[order]],
                logSumExp=Digits(peak + math.log(np.exp(logits - peak).sum()), 10),
                projections=[Digits(x, 10) for x in sign @ logits],
                maxError=Digits(np.abs(error).max(), 3),
                rmsError=Digits(math.sqrt((error ** 2).mean()), 3))
    worst = max(row["maxError"] for row in rows)
    tokens, gaps = greedy(single, [prompts[k] for k in CONTINUED])
    greedy_rows = [dict(prompt=k, tokens=t, gaps=g) for k, t, g in zip(CONTINUED, tokens, gaps)]
    write(f"{name}.json", dict(
        model=name, weightsSha256=hash_of(name, args), transformers=transformers.__version__,
        torch=torch.__version__, vocabulary=vocabulary, promptFile=file),
        logits=rows, greedy=greedy_rows)
    least = min(min(row["gaps"]) for row in greedy_rows)
    print(f"{name}: {len(rows)} prompts, largest float32 error {worst:.3g}, "
          f"smallest greedy lead {least:.3g}", flush=True)


@torch.no_grad()
def make_perplexity(args):
    """Non-overlapping windows of WINDOW tokens, each starting fresh; tokens 1.. of
    each are scored, and an incomplete last window is left out. A result whose
    weights have not changed is kept."""

    def nll(model, window):
        logits = model(input_ids=torch.tensor([window]), use_cache=False).logits[0].double()
        scores = torch.log_softmax(logits[:-1], -1)
        return -scores.gather(1, torch.tensor(window[1:])[:, None]).sum().item()

    path = os.path.join(HERE, "perplexity.json")
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            rows = {row["model"]: row for row in json.load(f)["models"]}
    for name in args.perplexity_of:
        digest = hash_of(name, args)
        if rows.get(name, {}).get("weightsSha256") == digest:
            continue
        single, double = load_pair(name, args)
        if name == SMOLLM2:
            with open(args.wikitext, encoding="utf-8", newline="") as f:
                text = f.read()
            # Enough of the text for twenty windows whatever the tokenizer does.
            ids = smollm2_tokenizer(args)(text[:120000], add_special_tokens=False)["input_ids"]
            ids, source = ids[:20 * WINDOW], "wikitext-2 test, first 20 windows"
        else:
            ids, source = small_tokenizer().encode(held_out()).ids, "held-out.txt"
        windows = [ids[i:i + WINDOW] for i in range(0, len(ids) - WINDOW + 1, WINDOW)]
        low = [nll(single, w) for w in windows]
        with Float64():
            high = [nll(double, w) for w in windows[:DOUBLE_WINDOWS]]
        count = len(windows) * (WINDOW - 1)
        rows[name] = dict(
            model=name, weightsSha256=digest, transformers=transformers.__version__, text=source,
            window=WINDOW, windows=len(windows), scored=count,
            perplexity=Digits(math.exp(sum(low) / count), 10),
            windowNll=[Digits(x, 10) for x in low],
            float64WindowNll=[Digits(x, 10) for x in high])
        print(f"{name}: perplexity {rows[name]['perplexity']}", flush=True)
        write("perplexity.json", {}, models=list(rows.values()))


def plain_logits(ids):
    """Last logits of the target in numpy, float64, from the published formulas only."""
    from safetensors.numpy import load_file
    folder = os.path.join(MODELS_FOLDER, "target")
    weights = {k: v.astype(np.float64) for k, v in
               load_file(os.path.join(folder, "model.safetensors")).items()}
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    dim, heads = config["head_dim"], config["num_attention_heads"]
    group = heads // config["num_key_value_heads"]
    angle = np.arange(len(ids))[:, None] * config["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angle), np.sin(angle)

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weights[weight]

    def rotate(x):
        a, b = x[:, :dim // 2], x[:, dim // 2:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = weights["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "input_layernorm.weight")
        q, k, v = (h @ weights[f"{p}self_attn.{n}_proj.weight"].T for n in "qkv")
        outputs = []
        for head in range(heads):
            own, shared = slice(head * dim, head * dim + dim), head // group * dim
            score = rotate(q[:, own]) @ rotate(k[:, shared:shared + dim]).T / math.sqrt(dim)
            score = np.where(np.tri(len(ids), dtype=bool), score, -np.inf)
            p_row = np.exp(score - score.max(-1, keepdims=True))
            outputs.append(p_row / p_row.sum(-1, keepdims=True) @ v[:, shared:shared + dim])
        x = x + np.concatenate(outputs, -1) @ weights[p + "self_attn.o_proj.weight"].T
        h = norm(x, p + "post_attention_layernorm.weight")
        gate = h @ weights[p + "mlp.gate_proj.weight"].T
        up = h @ weights[p + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[p + "mlp.down_proj.weight"].T
    return norm(x, "model.norm.weight")[-1] @ weights["model.embed_tokens.weight"].T


@torch.no_grad()
def check(args):
    """The float64 run agrees with the plain one far below float32 error."""
    _, prompts = read_prompts("target")
    _, double = load_pair("target", args)
    for k in (0, 4, 11):
        with Float64():
            logits = logits_at(double, prompts[k], [len(prompts[k])])[0]
        error = np.abs(logits - plain_logits(prompts[k])).max()
        print(f"prompt {k}: transformers in float64 against plain numpy: {error:.3g}")
        if not error < 1e-10:
            raise SystemExit("the float64 run is not the truth it claims to be")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--smollm2", help="SmolLM2-135M-Instruct as GGUF")
    parser.add_argument("--wikitext", help="test text of wikitext-2")
    parser.add_argument("--check", action="store_true", help="only compare with plain numpy")
    parser.add_argument("--perplexity-of", nargs="+", metavar="MODEL",
                        choices=["target", "draft", SMOLLM2], default=["target", "draft", SMOLLM2],
                        help="the models of `perplexity`")
    parser.add_argument("names", nargs="*", metavar="MODEL",
                        help=f"{', '.join(MODELS)}, perplexity, prompts")
    args = parser.parse_args()
    if args.check:
        return check(args)
    for name in args.names or ["prompts", *MODELS, "perplexity"]:
        if name == "prompts":
            make_prompts(args)
        elif name == "perplexity":
            make_perplexity(args)
        elif name in MODELS:
            make_model(name, args)
        else:
            parser.error(f"unknown model {name}; known: {', '.join(MODELS)}, perplexity, prompts")


if __name__ == "__main__":
    main()
