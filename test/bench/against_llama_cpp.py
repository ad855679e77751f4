#!/usr/bin/env python3
"""Measures Ingot beside llama.cpp on the same weights, in paired rounds.

    against_llama_cpp.py MODEL.gguf [--ingot build/release/bin/ingot]
        [--threads 2] [--rounds 7] [--work DIR] [--json]

Needs the Python package llama-cpp-python, built with native flags
(CMAKE_ARGS=-DGGML_NATIVE=ON, --no-binary llama-cpp-python), and numpy.

Method. MODEL.gguf is requantised by llama.cpp itself to Q8_0 and to Q4_0 (all
layers; the table at eight bits in both, as it does for tied heads). Ingot compiles
those same two files: with `--quantize none`, so that both sides read the same
blocks, and the Q8_0 file also with its own `--quantize int8`. A round runs every
side, the order alternating; what is reported is the median over the rounds of the
ratio within a round, with the smallest and largest. llama.cpp
runs with each of its settings (flash attention on and off); the better median of
each measure is its figure. Its prompt and generation run through the C API
(`llama_decode`), without sampling and without Python in the loop's inside;
Ingot's figures are those of `ingot bench`, which include its sampler.

Measures, in tokens a second unless said otherwise:
  decode     64 tokens one after another, after a prompt of 64
  decode16   16 sequences together, 32 steps, after prompts of 64
  prefill    a prompt of 512
  start      seconds from nothing loaded to the first token of a 16-token
             prompt; for Ingot a whole process, for llama.cpp from loading the
             model on (its library and interpreter already up)
"""
import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time


class LlamaCpp:
    """One model in one setting of llama.cpp, through its C API."""

    def __init__(self, path, threads, flash):
        import llama_cpp

        self.api = llama_cpp
        self.path = str(path).encode()
        self.threads = threads
        self.flash = flash
        self.model = None
        self.load()

    def load(self):
        parameters = self.api.llama_model_default_params()
        self.model = self.api.llama_model_load_from_file(self.path, parameters)
        if not self.model:
            sys.exit(f"llama.cpp cannot load {self.path.decode()}")
        vocab = self.api.llama_model_get_vocab(self.model)
        self.vocab_size = self.api.llama_vocab_n_tokens(vocab)

    def context(self, tokens, sequences):
        parameters = self.api.llama_context_default_params()
        parameters.n_ctx = tokens * sequences
        parameters.n_batch = parameters.n_ubatch = 512
        parameters.n_seq_max = sequences
        parameters.n_threads = parameters.n_threads_batch = self.threads
        if hasattr(parameters, "flash_attn_type"):
            parameters.flash_attn_type = 1 if self.flash else 0
        else:
            parameters.flash_attn = self.flash
        if hasattr(parameters, "kv_unified"):
            parameters.kv_unified = False
        return self.api.llama_init_from_model(self.model, parameters)

    def batch(self, rows):
        """rows: (token, position, sequence, wants logits)."""
        batch = self.api.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for index, (token, position, sequence, logits) in enumerate(rows):
            batch.token[index] = token
            batch.pos[index] = position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = logits
        return batch

    def decode(self, context, batch):
        if self.api.llama_decode(context, batch) != 0:
            sys.exit("llama.cpp: decode failed")
        # Reading a logit waits for the result.
        return self.api.llama_get_logits_ith(context, batch.n_tokens - 1)[0]

    def generate(self, sequences, prompt, steps):
        context = self.context(prompt + steps + 8, sequences)
        token = lambda i: 100 + (i * 7919) % (self.vocab_size - 200)
        for sequence in range(sequences):
            batch = self.batch([(token(p), p, sequence, p == prompt - 1) for p in range(prompt)])
            self.decode(context, batch)
            self.api.llama_batch_free(batch)
        batches = [
            self.batch([(token(p + s), p, s, True) for s in range(sequences)])
            for p in range(prompt, prompt + steps)
        ]
        self.decode(context, batches[0])
        begin = time.perf_counter()
        for batch in batches[1:]:
            self.decode(context, batch)
        seconds = time.perf_counter() - begin
        for batch in batches:
            self.api.llama_batch_free(batch)
        self.api.llama_free(context)
        return sequences * (steps - 1) / seconds

    def prefill(self, prompt):
        context = self.context(prompt + 8, 1)
        token = lambda i: 100 + (i * 7919) % (self.vocab_size - 200)
        batch = self.batch([(token(p), p, 0, p == prompt - 1) for p in range(prompt)])
        memory = self.api.llama_get_memory(context)
        self.decode(context, batch)
        self.api.llama_memory_clear(memory, True)
        begin = time.perf_counter()
        self.decode(context, batch)
        seconds = time.perf_counter() - begin
        self.api.llama_batch_free(batch)
        self.api.llama_free(context)
        return prompt / seconds

    def start(self):
        self.api.llama_model_free(self.model)
        begin = time.perf_counter()
        self.load()
        context = self.context(64, 1)
        batch = self.batch([(100 + p, p, 0, p == 15) for p in range(16)])
        self.decode(context, batch)
        seconds = time.perf_counter() - begin
        self.api.llama_batch_free(batch)
        self.api.llama_free(context)
        return seconds

    def measure(self):
        return {
            "decode": self.generate(1, 64, 64),
            "decode16": self.generate(16, 64, 32),
            "prefill": self.prefill(512),
            "start": self.start(),
        }


class Ingot:
    def __init__(self, program, artifact, threads):
        self.program, self.artifact, self.threads = str(program), str(artifact), str(threads)

    def run(self, *arguments):
        return subprocess.run(
            [self.program, *arguments, "--threads", self.threads],
            check=True, capture_output=True, text=True,
        ).stdout

    def bench(self, *arguments):
        return json.loads(self.run("bench", self.artifact, *arguments, "--json"))

    def measure(self):
        single = self.bench("--prompt", "64", "--generate", "64", "--batch", "1")
        many = self.bench("--prompt", "64", "--generate", "32", "--batch", "16")
        long = self.bench("--prompt", "512", "--generate", "2", "--batch", "1")
        prompt = "The quick brown fox jumps over the lazy dog and then it sleeps in the sun."
        begin = time.perf_counter()
        self.run("run", self.artifact, "-p", prompt, "--max-tokens", "1", "--temperature", "0")
        start = time.perf_counter() - begin
        decode = lambda report: report["decode"][0]["tokens_per_second"]
        return {
            "decode": decode(single),
            "decode16": decode(many),
            "prefill": long["prefill"][0]["tokens_per_second"],
            "start": start,
        }


def requantise(source, target, kind):
    import llama_cpp

    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = {"Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
                        "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0}[kind]
    parameters.allow_requantize = True
    # Keep the table at eight bits, as llama.cpp does for tied heads.
    parameters.token_embedding_type = parameters.output_tensor_type = 8
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(),
                                      ctypes.byref(parameters)) != 0:
        sys.exit(f"llama.cpp cannot requantise {source} to {kind}")


def compare(rounds, ours, title, quiet):
    """Medians of both sides and the ratio within a round, for every measure."""
    result = {}
    for measure in ("decode", "decode16", "prefill", "start"):
        def median(side):
            return statistics.median(r[side][measure] for r in rounds)
        choose = min if measure == "start" else max
        best = choose(("plain", "flash"), key=median)
        ratios = [r[ours][measure] / r[best][measure] for r in rounds]
        row = result[measure] = {
            "ingot": median(ours), "llama_cpp": median(best), "setting": best,
            "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
        if not quiet:
            print(f"{title:9s} {measure:9s} ingot {row['ingot']:9.3f}  llama.cpp "
                  f"{row['llama_cpp']:9.3f} ({best})  ratio {row['ratio']:.2f} "
                  f"[{row['low']:.2f}, {row['high']:.2f}]", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--ingot", type=pathlib.Path, default=pathlib.Path("build/release/bin/ingot"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)

    import llama_cpp

    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.llama_backend_init()
    system = llama_cpp.llama_print_system_info().decode()
    report = {"llama_cpp": llama_cpp.__version__, "system": system,
              "threads": arguments.threads, "rounds": arguments.rounds, "results": {}}
    if not arguments.json:
        print(f"llama.cpp (llama-cpp-python {llama_cpp.__version__}): {system}")

    for kind in ("Q8_0", "Q4_0"):
        gguf = arguments.work / f"{kind}.gguf"
        if not gguf.exists():
            requantise(arguments.model, gguf, kind)
        ours = {}
        for quantize in ("none", "int8") if kind == "Q8_0" else ("none",):
            artifact = arguments.work / f"{kind}-{quantize}.ingot"
            subprocess.run([arguments.ingot, "compile", gguf, "-o", artifact, "--quantize",
                            quantize], check=True, capture_output=True)
            ours[quantize] = Ingot(arguments.ingot, artifact, arguments.threads)
        peers = {flash: LlamaCpp(gguf, arguments.threads, flash) for flash in (False, True)}
        ours["none"].measure()
        rounds = []
        for index in range(arguments.rounds):
            sides = [*ours.items(), ("plain", peers[False]), ("flash", peers[True])]
            if index % 2:
                sides.reverse()
            rounds.append({name: side.measure() for name, side in sides})
        for quantize in ours:
            report["results"][f"{kind} {quantize}"] = compare(
                rounds, quantize, f"{kind} {quantize}", arguments.json)
    if arguments.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
