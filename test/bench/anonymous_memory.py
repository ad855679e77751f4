#!/usr/bin/env python3
"""Runs a command and prints the most anonymous memory that it had: memory of its own,
without the pages of files that it maps, which the kernel takes back as it likes.

    anonymous_memory.py [--json] [--interval-ms 5] [--max-mb N] -- COMMAND...

RssAnon of /proc/PID/status, summed over the command and the processes that it starts,
is sampled; what is taken and given back between two samples is not seen. The
command's output goes to stderr. Exit code: the command's, or 9 where it used more
than --max-mb.

Standard library only; Linux.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

KEYS = {"RssAnon:": "anonymous", "RssFile:": "file"}


def family(pid):
    """The process and all below it."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        try:
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            pass  # it has ended
    return found


def resident_bytes(pid):
    """{"anonymous": bytes, "file": bytes} of the process and all below it."""
    total = dict.fromkeys(KEYS.values(), 0)
    for one in family(pid):
        try:
            lines = pathlib.Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        for key, number, *_ in (line.split() for line in lines if line.startswith("Rss")):
            if key in KEYS:
                total[KEYS[key]] += int(number) * 1024
    return total


def measure(command, interval=0.005, **kwargs):
    """(exit code, peaks in bytes, samples, seconds)."""
    start = time.monotonic()
    process = subprocess.Popen(command, **kwargs)
    peaks, samples = dict.fromkeys(KEYS.values(), 0), 0
    while process.poll() is None:
        for key, value in resident_bytes(process.pid).items():
            peaks[key] = max(peaks[key], value)
        samples += 1
        time.sleep(interval)
    return process.returncode, peaks, samples, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--interval-ms", type=float, default=5)
    parser.add_argument("--max-mb", type=float)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    code, peaks, samples, seconds = measure(options.command, options.interval_ms / 1e3,
                                            stdout=sys.stderr)
    exceeded = options.max_mb is not None and peaks["anonymous"] > options.max_mb * 1e6
    if options.json:
        print(json.dumps(dict(exit_code=code, peak_anonymous_bytes=peaks["anonymous"],
                              peak_file_bytes=peaks["file"], samples=samples,
                              seconds=round(seconds, 3), exceeded=exceeded)))
    else:
        print(f"peak of anonymous memory {peaks['anonymous'] / 1e6:.1f} MB, of mapped files "
              f"{peaks['file'] / 1e6:.1f} MB; {samples} samples, {seconds:.1f} s")
    sys.exit(code or (9 if exceeded else 0))


if __name__ == "__main__":
    main()
