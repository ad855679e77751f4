#!/usr/bin/env python3
"""Trains the small models of this folder: a tokenizer, a target and a draft.

The tests want weights that mean something (a real distribution over real text,
a draft that agrees with its target) and that are small enough to live in the
tree. This script makes them from one public-domain text, tinyshakespeare:

  tokenizer   byte-level BPE of 1024 tokens, trained on the first nine tenths
  target      Llama architecture, about 2.6 M parameters, AdamW on that text
  draft       Llama architecture, about a tenth, distilled from the target

The last tenth of the text is never seen: it is written to held-out.txt, and
`eval` (and the reference in test/e2e/goldens) measures perplexity on it.

  python train.py --corpus tinyshakespeare.txt tokenizer
  python train.py --corpus tinyshakespeare.txt target
  python train.py --corpus tinyshakespeare.txt draft
  python train.py --corpus tinyshakespeare.txt eval

Everything is seeded. Bits may still differ between machines, because XLA
chooses its own order of summation, and `--minutes` ends the schedule by the
clock; the committed weights are the reference.

The model follows LlamaForCausalLM exactly: RMSNorm in float32, rotary
embedding in the half-split layout, grouped key/value heads, SwiGLU, embeddings
tied to the head. Weights keep the names and the [out, in] layout of Hugging
Face. They are trained in float32 and saved in float16.
"""

import argparse
import json
import math
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCAB = 1024
CONTEXT = 1024

# In-features of 192 and 96 are no multiples of 128 on purpose: quantised groups
# of 128 end in a short group there.
SIZES = {
    "target": dict(hidden_size=192, num_hidden_layers=6, num_attention_heads=6,
                   num_key_value_heads=2, intermediate_size=512),
    "draft": dict(hidden_size=96, num_hidden_layers=2, num_attention_heads=3,
                  num_key_value_heads=1, intermediate_size=256),
}
HEAD_DIM = 32
ROPE_THETA = 10000.0
EPSILON = 1e-5

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def model_config(name):
    return dict(
        architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=VOCAB,
        **SIZES[name], head_dim=HEAD_DIM, hidden_act="silu",
        max_position_embeddings=CONTEXT, rms_norm_eps=EPSILON, rope_theta=ROPE_THETA,
        rope_scaling=None, attention_bias=False, attention_dropout=0.0, mlp_bias=False,
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=0, pad_token_id=None,
        initializer_range=0.02, use_cache=True, torch_dtype="float16")


# ---------------------------------------------------------------------------
# Text: the split, the tokenizer, the training streams.


def read_split(corpus):
    """The text before and after the nine-tenths point, cut at a line end."""
    with open(corpus, encoding="utf-8", newline="") as f:
        text = f.read()
    cut = text.index("\n", len(text) * 9 // 10) + 1
    return text[:cut], text[cut:]


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        json.dump(value, f, indent=2, ensure_ascii=False)
        f.write("\n")


def write_text_files(folder, name):
    """The files of a Hugging Face folder beside the weights and the tokenizer."""
    write_json(os.path.join(folder, "config.json"), model_config(name))
    write_json(os.path.join(folder, "generation_config.json"),
               dict(eos_token_id=[0, 2], max_length=CONTEXT, do_sample=False))
    write_json(os.path.join(folder, "tokenizer_config.json"), dict(
        tokenizer_class="PreTrainedTokenizerFast", model_max_length=CONTEXT,
        bos_token=None, eos_token=SPECIAL[0], unk_token=None, pad_token=None,
        add_bos_token=False, add_prefix_space=False, clean_up_tokenization_spaces=False,
        added_tokens_decoder={str(i): dict(content=s, lstrip=False, normalized=False,
                                           rstrip=False, single_word=False, special=True)
                              for i, s in enumerate(SPECIAL)},
        additional_special_tokens=SPECIAL[1:], chat_template=CHAT_TEMPLATE))


def train_tokenizer(corpus):
    train, held_out = read_split(corpus)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator([train], trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    assert tokenizer.get_vocab_size() == VOCAB
    for name in SIZES:
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        write_text_files(folder, name)
    with open(os.path.join(HERE, "held-out.txt"), "w", encoding="utf-8", newline="") as f:
        f.write(held_out)
    n = len(tokenizer.encode(train).ids)
    print(f"tokenizer: {n} training tokens, {len(train.encode()) / n:.2f} bytes a token, "
          f"{len(tokenizer.encode(held_out).ids)} held-out tokens")


def load_tokenizer():
    return Tokenizer.from_file(os.path.join(HERE, "target", "tokenizer.json"))


def chat_stream(text, tokenizer, seed):
    """The speeches of `text` as short conversations, so that the control tokens
    have learned embeddings and a chat answer ends by itself."""
    rng = np.random.default_rng(seed)
    speeches = [s for s in text.split("\n\n") if s]
    ids, i = [], 0
    while i < len(speeches):
        for turn in range(2 * int(rng.integers(1, 4))):
            if i == len(speeches):
                break
            role = "user" if turn % 2 == 0 else "assistant"
            ids += [1] + tokenizer.encode(f"{role}\n{speeches[i]}").ids + [2]
            ids += tokenizer.encode("\n").ids
            i += 1
        ids.append(0)
    return np.array(ids, np.int32)


def training_streams(corpus):
    """(text, chat, validation): the last 2 % of the training text validates."""
    train, _ = read_split(corpus)
    tokenizer = load_tokenizer()
    cut = train.index("\n", len(train) * 98 // 100) + 1
    text = np.array(tokenizer.encode(train[:cut]).ids, np.int32)
    return text, chat_stream(train[:cut], tokenizer, 7), \
        np.array(tokenizer.encode(train[cut:]).ids, np.int32)


def sample_batch(rng, text, chat, rows, length):
    """`rows` windows of length + 1; one row in eight is of the chat stream."""
    batch = np.empty((rows, length + 1), np.int32)
    for row in range(rows):
        source = chat if rng.random() < 0.125 else text
        start = int(rng.integers(0, len(source) - length))
        batch[row] = source[start:start + length + 1]
    return batch


# ---------------------------------------------------------------------------
# The model.


def init_params(name, seed):
    size = SIZES[name]
    hidden, ffn = size["hidden_size"], size["intermediate_size"]
    q = size["num_attention_heads"] * HEAD_DIM
    kv = size["num_key_value_heads"] * HEAD_DIM
    rng = np.random.default_rng(seed)

    def normal(rows, cols, scale):
        return jnp.asarray(rng.normal(0, scale, (rows, cols)), jnp.float32)

    inner = 1 / math.sqrt(hidden)
    layers = size["num_hidden_layers"]
    params = {"model.embed_tokens.weight": normal(VOCAB, hidden, 0.04),
              "model.norm.weight": jnp.ones(hidden)}
    for i in range(layers):
        p = f"model.layers.{i}."
        params[p + "input_layernorm.weight"] = jnp.ones(hidden)
        params[p + "post_attention_layernorm.weight"] = jnp.ones(hidden)
        params[p + "self_attn.q_proj.weight"] = normal(q, hidden, inner)
        params[p + "self_attn.k_proj.weight"] = normal(kv, hidden, inner)
        params[p + "self_attn.v_proj.weight"] = normal(kv, hidden, inner)
        params[p + "self_attn.o_proj.weight"] = normal(hidden, q, inner / math.sqrt(2 * layers))
        params[p + "mlp.gate_proj.weight"] = normal(ffn, hidden, inner)
        params[p + "mlp.up_proj.weight"] = normal(ffn, hidden, inner)
        params[p + "mlp.down_proj.weight"] = normal(
            hidden, ffn, 1 / math.sqrt(ffn) / math.sqrt(2 * layers))
    return params


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * weight


def rotate(x, cos, sin):
    """x: [batch, length, heads, head_dim]; element i pairs with i + head_dim/2."""
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def forward(params, ids, name, dropout=0.0, key=None):
    """Logits [batch, length, vocab] of ids [batch, length]."""
    size = SIZES[name]
    heads, kv_heads = size["num_attention_heads"], size["num_key_value_heads"]
    batch, length = ids.shape
    angle = jnp.arange(length)[:, None] * ROPE_THETA ** (-jnp.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    cos, sin = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    mask = jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -1e30)
    keys = iter(jax.random.split(key, 2 * size["num_hidden_layers"] + 1)) if dropout else None

    def drop(x):
        if not dropout:
            return x
        # One mask for all rows of the batch: drawing it costs more than it is worth.
        keep = jax.random.bernoulli(next(keys), 1 - dropout, x.shape[1:])
        return jnp.where(keep, x / (1 - dropout), 0)

    def linear(x, weight):
        return jnp.matmul(x, params[weight].T)

    # A product with one-hot rows: the gradient of a gather is slow on CPUs.
    x = drop(jax.nn.one_hot(ids, VOCAB) @ params["model.embed_tokens.weight"])
    for i in range(size["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = rms_norm(x, params[p + "input_layernorm.weight"])
        q = linear(h, p + "self_attn.q_proj.weight").reshape(batch, length, heads, HEAD_DIM)
        k = linear(h, p + "self_attn.k_proj.weight").reshape(batch, length, kv_heads, HEAD_DIM)
        v = linear(h, p + "self_attn.v_proj.weight").reshape(batch, length, kv_heads, HEAD_DIM)
        q, k = rotate(q, cos, sin) / math.sqrt(HEAD_DIM), rotate(k, cos, sin)
        # [batch, kv head, length * group, head_dim]: one plain product a kv head.
        group = heads // kv_heads
        q = q.reshape(batch, length, kv_heads, group, HEAD_DIM).transpose(0, 2, 3, 1, 4)
        q = q.reshape(batch, kv_heads, group * length, HEAD_DIM)
        score = jnp.matmul(q, k.transpose(0, 2, 3, 1)).reshape(
            batch, kv_heads, group, length, length)
        weight = jax.nn.softmax(score + mask, -1)
        o = jnp.matmul(weight.reshape(batch, kv_heads, group * length, length),
                       v.transpose(0, 2, 1, 3))
        o = o.reshape(batch, heads, length, HEAD_DIM).transpose(0, 2, 1, 3)
        o = o.reshape(batch, length, heads * HEAD_DIM)
        x = x + drop(linear(o, p + "self_attn.o_proj.weight"))
        h = rms_norm(x, params[p + "post_attention_layernorm.weight"])
        h = jax.nn.silu(linear(h, p + "mlp.gate_proj.weight")) * linear(h, p + "mlp.up_proj.weight")
        x = x + drop(linear(h, p + "mlp.down_proj.weight"))
    return linear(rms_norm(x, params["model.norm.weight"]), "model.embed_tokens.weight")


score = jax.jit(forward, static_argnames="name")


def save(params, name):
    path = os.path.join(HERE, name, "model.safetensors")
    save_file({k: np.asarray(v, np.float16) for k, v in sorted(params.items())},
              path + ".new", metadata={"format": "pt"})
    os.chmod(path + ".new", 0o644)
    os.replace(path + ".new", path)


def load(name):
    return {k: jnp.asarray(v, jnp.float32) for k, v in
            load_file(os.path.join(HERE, name, "model.safetensors")).items()}


def perplexity(params, ids, name, window=512, rows=4):
    """Non-overlapping windows, each starting fresh; positions 1.. are scored and
    an incomplete last window is left out."""
    windows = ids[:len(ids) // window * window].reshape(-1, window)
    total, count = 0.0, 0
    for i in range(0, len(windows), rows):
        w = windows[i:i + rows]
        lp = np.asarray(jax.nn.log_softmax(score(params, w[:, :-1], name)), np.float64)
        total -= np.take_along_axis(lp, w[:, 1:, None], -1).sum()
        count += w[:, 1:].size
    return math.exp(total / count)


# ---------------------------------------------------------------------------
# Training.


def cross_entropy(logits, targets):
    chosen = (logits * jax.nn.one_hot(targets, VOCAB)).sum(-1)
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def adamw(loss_fn, peak, decay=0.1, warmup=60, clip=1.0, ema_half=60):
    """A jitted step of AdamW with a cosine schedule over `progress` in [0, 1], and an
    exponential mean of the weights, which is what is evaluated and saved."""

    def step(state, progress, *data):
        loss, grad = jax.value_and_grad(loss_fn)(state["params"], state["step"], *data)
        t = state["step"] + 1
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in grad.values()))
        scale = jnp.minimum(1.0, clip / (norm + 1e-6))
        cosine = 0.5 * (1 + jnp.cos(math.pi * progress))
        rate = peak * jnp.minimum(t / warmup, 1) * (0.02 + 0.98 * cosine)
        keep = jnp.minimum(0.5 ** (1 / ema_half), 1 - 1 / (t + 1.0))
        new = {n: {} for n in ("params", "m", "v", "mean")}
        for k, g in grad.items():
            g = g * scale
            m = 0.9 * state["m"][k] + 0.1 * g
            v = 0.95 * state["v"][k] + 0.05 * g * g
            update = (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.95 ** t)) + 1e-8)
            w = state["params"][k]
            w = w - rate * (update + (decay * w if w.ndim == 2 else 0))
            new["params"][k], new["m"][k], new["v"][k] = w, m, v
            new["mean"][k] = keep * state["mean"][k] + (1 - keep) * w
        return dict(new, step=t), loss

    return jax.jit(step, donate_argnums=0)


def fresh_state(params):
    def copy(f):
        return {k: f(v) for k, v in params.items()}
    return dict(params=copy(jnp.array), m=copy(jnp.zeros_like), v=copy(jnp.zeros_like),
                mean=copy(jnp.array), step=jnp.int32(0))


def run(name, state, step, batches, args):
    """Trains, and keeps the mean weights with the best validation perplexity."""
    validation = training_streams(args.corpus)[2]
    best, start, losses, i, progress = math.inf, time.time(), [], 0, 0.0
    while progress < 1:
        state, loss = step(state, progress, *batches(progress))
        losses.append(loss)
        i += 1
        progress = i / args.steps
        if args.minutes:
            progress = max(progress, (time.time() - start) / 60 / args.minutes)
        if i % args.every == 0 or progress >= 1:
            ppl = perplexity(state["mean"], validation, name)
            if ppl < best:
                best = ppl
                save(state["mean"], name)
            print(f"{name} {i} {progress:.3f} loss {np.mean([float(l) for l in losses]):.4f} "
                  f"validation {ppl:.3f} best {best:.3f} {time.time() - start:.0f} s", flush=True)
            losses = []


def train_target(args):
    text, chat, _ = training_streams(args.corpus)
    rng = np.random.default_rng(11)
    key = jax.random.key(5, impl="unsafe_rbg")

    def loss(params, i, batch):
        dropout_key = jax.random.fold_in(key, i) if args.dropout else None
        logits = forward(params, batch[:, :-1], "target", args.dropout, dropout_key)
        return cross_entropy(logits, batch[:, 1:])

    # Short windows are cheaper; the last part teaches the long positions.
    def batches(progress):
        length = 128 if progress < 0.5 else 256 if progress < 0.85 else CONTEXT
        return (sample_batch(rng, text, chat, max(1, args.tokens // length), length),)

    state = fresh_state(load("target") if args.resume else init_params("target", 3))
    run("target", state, adamw(loss, args.rate or 2.5e-3), batches, args)


def train_draft(args):
    """Distillation: the draft learns the target's distribution on the training
    windows, of which the target scores `--taught` once, kept in float16."""
    text, chat, _ = training_streams(args.corpus)
    rng = np.random.default_rng(13)
    length = 512
    stream = np.concatenate([text, chat[:len(chat) // 6]])
    windows = stream[:len(stream) // length * length].reshape(-1, length)
    windows = windows[rng.permutation(len(windows))[:args.taught]]
    teacher = load("target")
    logits = np.empty((*windows.shape, VOCAB), np.float16)
    start = time.time()
    for i in range(0, len(windows), 4):
        logits[i:i + 4] = np.asarray(score(teacher, windows[i:i + 4], "target"))
    print(f"draft: {len(windows)} windows scored in {time.time() - start:.0f} s", flush=True)

    def loss(params, i, batch, taught):
        lp = jax.nn.log_softmax(forward(params, batch, "draft"))
        p = jax.nn.softmax(taught.astype(jnp.float32))
        return -(p * lp).sum(-1).mean()

    def batches(progress):
        rows = rng.integers(0, len(windows), max(1, args.tokens // length))
        return windows[rows], logits[rows]

    state = fresh_state(load("draft") if args.resume else init_params("draft", 4))
    run("draft", state, adamw(loss, args.rate or 4e-3, decay=0.02), batches, args)


def evaluate():
    with open(os.path.join(HERE, "held-out.txt"), encoding="utf-8", newline="") as f:
        ids = np.array(load_tokenizer().encode(f.read()).ids, np.int32)
    tops = []
    for name in SIZES:
        params = load(name)
        count = sum(int(np.prod(v.shape)) for v in params.values())
        print(f"{name}: {count} parameters, held-out perplexity {perplexity(params, ids, name):.4f}")
        windows = ids[:20 * 512].reshape(-1, 512)
        tops.append(np.concatenate([np.asarray(score(params, w[None], name))[0] for w in windows]).argmax(-1))
    print(f"draft and target choose the same token at {(tops[0] == tops[1]).mean():.3f} of positions")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", required=True, help="path of tinyshakespeare.txt")
    parser.add_argument("what", choices=["tokenizer", "target", "draft", "eval"])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--minutes", type=float, help="end the schedule after this time at the latest")
    parser.add_argument("--resume", action="store_true", help="start from the saved weights")
    parser.add_argument("--rate", type=float, help="peak learning rate")
    parser.add_argument("--dropout", type=float, default=0.1, help="of the target's training")
    parser.add_argument("--tokens", type=int, default=1024, help="tokens a step")
    parser.add_argument("--every", type=int, default=100, help="steps between evaluations")
    parser.add_argument("--taught", type=int, default=1000, help="windows that teach the draft")
    args = parser.parse_args()
    if args.what == "tokenizer":
        train_tokenizer(args.corpus)
    elif args.what == "target":
        train_target(args)
    elif args.what == "draft":
        train_draft(args)
    else:
        evaluate()


if __name__ == "__main__":
    main()
