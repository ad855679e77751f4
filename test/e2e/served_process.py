#!/usr/bin/env python3
"""The program `ingot serve` as an operator has it: signals in the middle of
streams, a port that is taken, file descriptors that run out.

    served_process.py --bin DIR [--compiler FILE]
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "test/bench"))
from served import Ingot, Server, compile_model  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--bin", type=pathlib.Path, required=True)
parser.add_argument("--compiler", type=pathlib.Path, help="default: ingot-compiler of --bin")
options = parser.parse_args()
COMPILER = options.compiler or options.bin / "ingot-compiler"
INGOT = options.bin / "ingot"


def stream(port, tokens):
    """A stream under way, of which something has come."""
    body = json.dumps({"prompt": "KING:\n", "max_tokens": tokens, "stream": True,
                       "ignore_eos": True}).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: test\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
    data = b""
    while b"data: " not in data:
        data += connection.recv(4096)
    return connection, data


def rest(connection, data=b""):
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionError:
        pass
    connection.close()
    return data


class ServedProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.artifact = compile_model(COMPILER, SOURCE / "test/models/target",
                                     pathlib.Path(cls.folder.name) / "target.ingot",
                                     "--quantize", "int8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def serve(self, *flags):
        return Ingot(INGOT, f"m={self.artifact}", *flags)

    def test_sigterm_finishes_streams(self):
        with self.serve() as server:
            streams = [stream(server.port, 900) for _ in range(4)]
            idle = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(rest(idle), b"")
            for connection, data in streams:
                self.assertIn(b"data: [DONE]", rest(connection, data))
            self.assertEqual(server.process.wait(60), 0)
            with self.assertRaises(ConnectionError):
                socket.create_connection(("127.0.0.1", server.port), timeout=5)
            self.assertIn("done", server.text())
            self.assertEqual(server.text().count(" 200 POST /v1/completions"), 4)

    def test_a_second_signal_ends_at_once(self):
        with self.serve() as server:
            connection, data = stream(server.port, 900)
            server.process.send_signal(signal.SIGTERM)
            while "no new requests" not in server.text():
                time.sleep(0.01)
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(20), 130)
            rest(connection, data)

    def test_the_drain_has_a_deadline(self):
        with self.serve("--drain-timeout", 0) as server:
            connection, data = stream(server.port, 900)
            begin = time.time()
            server.process.send_signal(signal.SIGTERM)
            told = rest(connection, data)
            self.assertEqual(server.process.wait(20), 7)
            self.assertLess(time.time() - begin, 15)
            self.assertIn(b"the server is shutting down", told)
            self.assertIn(b"data: [DONE]", told)
            self.assertTrue(told.endswith(b"0\r\n\r\n"), told[-40:])
            self.assertIn("1 requests are ended with an error", server.text())

    def copied(self, name):
        return pathlib.Path(shutil.copy(self.artifact, pathlib.Path(self.folder.name) / name))

    def test_a_file_that_is_written_over_is_not_served(self):
        path = self.copied("over.ingot")
        ask = {"prompt": "KING:", "max_tokens": 1}
        with Ingot(INGOT, f"m={path}") as server:
            replacement = self.copied("new.ingot")
            replacement.rename(path)
            self.assertEqual(server.request("POST", "/v1/completions", ask)[0], 200)
        with Ingot(INGOT, f"m={path}") as server:
            with open(path, "r+b") as file:
                file.write(file.read(1))
            status, _, body = server.request("POST", "/v1/completions", ask)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (503, "model_changed"))
            self.assertEqual(server.request("GET", "/health")[0], 503)
            self.assertEqual(server.text().count(f"{path}: was written to after"), 1)

    def test_a_file_that_is_cut_short(self):
        path = self.copied("short.ingot")
        with Ingot(INGOT, f"m={path}") as server:
            connection, data = stream(server.port, 900)
            os.truncate(path, 0)
            self.assertEqual(server.process.wait(60), 4)
            rest(connection, data)
            self.assertIn(f"ingot: {path}: was cut short while it was in use", server.text())

    def test_sigint_drains_too(self):
        with self.serve("--log-json") as server:
            self.assertEqual(server.request("GET", "/health")[0], 200)
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(20), 0)
            for line in server.text().splitlines():
                json.loads(line)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([INGOT, "serve", self.artifact, "--port", str(port)],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"127.0.0.1:{port}: cannot listen", done.stderr)

    def test_file_descriptors_that_run_out(self):
        command = ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh", INGOT, "serve",
                   f"m={self.artifact}", "--port", "0"]
        with Server(command, r"listening on http://[^ ]*:(\d+)") as server:
            held = [socket.create_connection(("127.0.0.1", server.port), timeout=60)
                    for _ in range(120)]
            held[0].sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"200 OK", held[0].recv(4096))
            before = server.cpu_seconds()
            time.sleep(1)
            self.assertLess(server.cpu_seconds() - before, 0.3, "it spins")
            for connection in held:
                connection.close()
            self.assertEqual(server.request("GET", "/health")[0], 200)
            self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
