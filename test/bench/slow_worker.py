"""Holds a worker thread of a running `ingot` up now and then, as a busy or
throttled core would: whoever waits for it must wait, and nothing else may
break. Linux's ptrace stops one thread and leaves the others alone."""
import ctypes
import os
import pathlib
import random
import threading

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WAIT_FOR_ALL_THREADS = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace of thread {thread}")


def workers(process):
    """The thread ids of the process's workers, by their name."""
    tasks = pathlib.Path(f"/proc/{process}/task")
    return [int(task.name) for task in tasks.iterdir()
            if (task / "comm").read_text().startswith("ingot-worker")]


class SlowWorker(threading.Thread):
    """`count` says how often a worker was held; `error` what went wrong."""

    def __init__(self, process, seed=1, most_seconds=0.15, pause_seconds=1.0):
        super().__init__(daemon=True)
        self.process, self.rng = process, random.Random(seed)
        self.most, self.pause = most_seconds, pause_seconds
        self.count, self.error, self.stopped = 0, None, threading.Event()

    def run(self):
        try:
            while not self.stopped.wait(self.rng.uniform(0, 2 * self.pause)):
                self.hold(self.rng.choice(workers(self.process)))
        except (OSError, IndexError) as error:
            self.error = error

    def hold(self, thread):
        ptrace(PTRACE_SEIZE, thread)
        ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WAIT_FOR_ALL_THREADS)
        self.stopped.wait(self.rng.uniform(0, self.most))
        ptrace(PTRACE_DETACH, thread)
        self.count += 1

    def end(self):
        self.stopped.set()
        self.join()
