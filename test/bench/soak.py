#!/usr/bin/env python3
"""Random requests against `ingot serve`: good ones, aborted ones, malformed
bodies, slow readers, prompts that do not fit, and a worker that is held up now
and then. Ends with an error where the server crashes, a stream sticks, a cache
block is not given back, or memory grows.

    soak.py MODEL.ingot [--ingot build/release/bin/ingot] [--requests 2000]
            [--threads-of-load 16] [--seed 1] [--max-growth-mb 48]
            [--ingot-flags "..."]

Standard library only.
"""
import argparse
import concurrent.futures
import json
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from served import Ingot  # noqa: E402
from slow_worker import SlowWorker  # noqa: E402

WORDS = "the king and queen of France went to war, O love what say you now".split()


def text(random_, words):
    return " ".join(random_.choice(WORDS) for _ in range(words))


def raw_request(path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: soak\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n").encode() + data


def read_all(connection, pause=0.0, limit=None):
    data = b""
    while limit is None or len(data) < limit:
        piece = connection.recv(65536 if not pause else 512)
        if not piece:
            break
        data += piece
        if pause:
            time.sleep(pause)
    return data


class Soak:
    def __init__(self, server, context):
        self.server, self.context = server, context
        self.counts, self.failures, self.lock = {}, [], threading.Lock()

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fail(self, what):
        with self.lock:
            self.failures.append(what)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=120)
        return connection

    def body(self, rng):
        body = {"max_tokens": rng.choice([0, 1, 4, 16, 48]), "temperature": rng.choice([0, 0.7, 1]),
                "stream": rng.random() < 0.6}
        if rng.random() < 0.3:
            body["n"] = rng.randint(1, 3)
        if rng.random() < 0.2:
            body["seed"] = rng.randint(0, 1 << 40)
        if rng.random() < 0.2:
            body["stop"] = rng.choice(["e", ["the", "king"], "\n"])
        if rng.random() < 0.2:
            body["top_k"] = rng.choice([0, 1, 40])
            body["repetition_penalty"] = 1.1
        chat = rng.random() < 0.4
        words = rng.choice([1, 5, 20, 60, 150])
        if chat:
            body["messages"] = [{"role": "user", "content": text(rng, words)}]
            if rng.random() < 0.3:
                body.update(logprobs=True, top_logprobs=rng.randint(0, 5))
        else:
            body["prompt"] = text(rng, words)
            if rng.random() < 0.3:
                body["logprobs"] = rng.randint(0, 5)
                body["echo"] = rng.random() < 0.5
        return ("/v1/chat/completions" if chat else "/v1/completions"), body

    def good(self, rng):
        path, body = self.body(rng)
        with self.connect() as connection:
            connection.sendall(raw_request(path, body))
            data = read_all(connection)
        status = int(data.split(b" ", 2)[1]) if data else 0
        if status == 503:
            self.count("queue full")
        elif status != 200:
            self.fail(f"{path} {body}: {data[:300]}")
        elif body["stream"] and b"data: [DONE]" not in data:
            self.fail(f"{path} {body}: the stream has no end")
        else:
            self.count("good")

    def abort(self, rng):
        path, body = self.body(rng)
        body["max_tokens"] = 200
        with self.connect() as connection:
            request = raw_request(path, body)
            if rng.random() < 0.2:
                request = request[:rng.randrange(len(request))]
            connection.sendall(request)
            if rng.random() < 0.7:
                connection.settimeout(rng.choice([0.001, 0.02, 0.2]))
                try:
                    connection.recv(rng.choice([1, 400]))
                except TimeoutError:
                    pass
            if rng.random() < 0.5:  # a reset rather than an end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                      b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.count("aborted")

    def malformed(self, rng):
        path, body = self.body(rng)
        data = bytearray(json.dumps(body).encode())
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        request = bytearray(raw_request(path, bytes(data)))
        if rng.random() < 0.3:
            for _ in range(rng.randint(1, 3)):
                request[rng.randrange(len(request))] = rng.randrange(256)
        with self.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            try:
                read_all(connection)
            except ConnectionError:
                pass
        self.count("malformed")

    def slow(self, rng):
        path, body = self.body(rng)
        body["stream"] = True
        with self.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.sendall(raw_request(path, body))
            try:
                read_all(connection, pause=0.01, limit=8192)
            except ConnectionError:
                pass
        self.count("slow readers")

    def oversized(self, rng):
        body = {"prompt": text(rng, self.context * 2), "max_tokens": 4}
        with self.connect() as connection:
            connection.sendall(raw_request("/v1/completions", body))
            data = read_all(connection)
        if not data.startswith(b"HTTP/1.1 400"):
            self.fail(f"an oversized prompt: {data[:300]}")
        self.count("oversized")

    def one(self, seed):
        rng = random.Random(seed)
        kind = rng.choices([self.good, self.abort, self.malformed, self.slow, self.oversized],
                           [60, 18, 14, 4, 4])[0]
        try:
            kind(rng)
        except OSError as error:
            self.fail(f"{kind.__name__} (seed {seed}): {error!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--ingot", type=pathlib.Path, default=pathlib.Path("build/release/bin/ingot"))
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--threads-of-load", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-growth-mb", type=float, default=48)
    parser.add_argument("--ingot-flags", default="", help="more flags of ingot serve")
    arguments = parser.parse_args()
    context = 512
    with Ingot(arguments.ingot, arguments.model, "--context", context, "--sequences", 8,
               "--kv-memory", 8, "--max-queue", 32, "--threads", 3,
               *arguments.ingot_flags.split()) as server:
        soak = Soak(server, context)
        slow_worker = SlowWorker(server.process.pid, arguments.seed)
        slow_worker.start()
        begin = time.time()
        warm = None
        with concurrent.futures.ThreadPoolExecutor(arguments.threads_of_load) as pool:
            rounds = 10
            for index in range(rounds):
                first = index * arguments.requests // rounds
                last = (index + 1) * arguments.requests // rounds
                list(pool.map(soak.one, range(arguments.seed * 1000003 + first,
                                              arguments.seed * 1000003 + last)))
                if server.process.poll() is not None:
                    sys.exit(f"the server ended by itself:\n{server.text()[-3000:]}")
                if index == 2:
                    warm = server.resident_bytes()
        slow_worker.end()
        deadline = time.time() + 30
        while server.metric("ingot_num_requests_running") + \
                server.metric("ingot_num_requests_waiting") > 0:
            if time.time() > deadline:
                sys.exit("requests still run, and nobody waits for them")
            time.sleep(0.1)
        used = server.metric("ingot_kv_cache_blocks_used")
        growth = (server.resident_bytes() - warm) / 1e6
        status, _, _ = server.request("GET", "/health")
        code = server.terminate()
        print(f"{arguments.requests} requests in {time.time() - begin:.1f} s: "
              + ", ".join(f"{value} {key}" for key, value in sorted(soak.counts.items()))
              + f"; a worker held {slow_worker.count} times; blocks used {used:.0f}; memory {growth:+.1f} MB since the third round; "
                f"health {status}; exit {code}")
        problems = soak.failures[:5]
        if slow_worker.error:
            problems.append(f"no worker could be held up: {slow_worker.error!r}")
        if used:
            problems.append(f"{used} cache blocks are still held")
        if growth > arguments.max_growth_mb:
            problems.append(f"memory grew by {growth:.1f} MB")
        if status != 200 or code != 0:
            problems.append(f"health {status}, exit {code}: {server.text()[-2000:]}")
        if problems:
            sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
