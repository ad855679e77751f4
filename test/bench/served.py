"""Servers for the tests and benchmarks of serving: starts one, says where it
listens, reads its metrics, ends it."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time


def compile_model(compiler, model, target, *flags):
    """The artifact of `model`, made once."""
    target = pathlib.Path(target)
    if not target.exists():
        subprocess.run([compiler, "compile", model, "-o", target, *flags],
                       check=True, capture_output=True)
    return target


class Server:
    """A server program that is ended with the object's context."""

    def __init__(self, command, ready, port=None):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(list(map(str, command)), stdout=self.log,
                                        stderr=subprocess.STDOUT)
        self.port = port
        deadline = time.time() + 120
        while True:
            if self.process.poll() is not None or time.time() > deadline:
                self.__exit__()
                raise RuntimeError(f"the server did not start:\n{self.text()}")
            found = re.search(ready, self.text())
            if found:
                self.port = self.port or int(found.group(1))
                return
            time.sleep(0.05)

    def text(self):
        with open(self.log.name, errors="replace") as log:
            return log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def terminate(self, timeout=60):
        """SIGTERM and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def resident_bytes(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        return 0

    def cpu_seconds(self):
        """Processor time that it has used, in user and kernel mode."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = json.dumps(body) if isinstance(body, (dict, list)) else body
            connection.request(method, path, data,
                               {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()


class Ingot(Server):
    def __init__(self, program, *arguments):
        super().__init__([program, "serve", *arguments, "--port", 0],
                         r"listening on http://[^ ]*:(\d+)")

    def metrics(self):
        """{name with labels: value}"""
        status, _, text = self.request("GET", "/metrics")
        assert status == 200, status
        values = {}
        for line in text.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def metric(self, name):
        """The sum over all label sets."""
        return sum(value for key, value in self.metrics().items()
                   if key == name or key.startswith(name + "{"))


class LlamaCpp(Server):
    """llama.cpp's own server, without what Ingot has no counterpart of."""

    def __init__(self, program, model, port, sequences, context, threads):
        super().__init__([program, "-m", model, "--host", "127.0.0.1", "--port", port,
                          "-np", sequences, "-c", context * sequences, "-t", threads,
                          "-tb", threads, "--no-webui", "--cache-ram", 0],
                         r"listening on http:|server is listening|all slots are idle", port)
        deadline = time.time() + 120
        while self.request("GET", "/health")[0] != 200:
            if time.time() > deadline:
                raise RuntimeError(self.text())
            time.sleep(0.1)
