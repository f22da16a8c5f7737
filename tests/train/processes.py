"""Groups of processes on this machine, started as ``torchrun`` starts them, but from one import."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

# Imports once; every process is then forked off, with the environment that torchrun would set.
SERVER = """
import json, os, signal, sys, traceback
import torch
import nlsf.cli, nlsf.train, nlsf.display.progress
import nlsf.data.generators, nlsf.data.catalogue.entries
from train import small

torch.set_num_threads(1)
# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def work(command, arguments):
    if command == "cli":
        sys.argv = ["nlsf", *arguments]
        return nlsf.cli.main()
    data, settings, path = arguments
    with nlsf.train.Group.joined() as group:
        settings = settings[group.rank] if isinstance(settings, list) else settings
        data = getattr(small, data)()
        result = nlsf.train.train(data, settings, output=path, cache=False, group=group)
    print(json.dumps(result.rows))

for line in sys.stdin:
    request = json.loads(line)
    if isinstance(request, int):
        print(os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]), flush=True)
        continue
    folder, environment, command, arguments = request
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(folder)
            os.environ.update(environment)
            printed = os.open(f"printed-{os.getpid()}", os.O_WRONLY | os.O_CREAT)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            work(command, arguments)
            status = 0
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(child, flush=True)
"""


class Started:
    """A group that runs: the process numbers ``pids``, in the order of their ranks."""

    def __init__(self, ask, folder, pids):
        self.ask, self.folder, self.pids = ask, folder, pids

    def send(self, signal):
        for pid in self.pids:
            os.kill(pid, signal)

    def end(self):
        """Waits for all: their exit codes, and what each of them printed."""
        codes = [self.ask(pid) for pid in self.pids]
        return codes, [(self.folder / f"printed-{pid}").read_text() for pid in self.pids]


class Processes:
    """Starts groups; a context manager."""

    def __enter__(self):
        tests = str(Path(__file__).parents[1])
        path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self

    def __exit__(self, *error):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def start(self, size, folder, command, arguments):
        """Starts ``nlsf ARGUMENTS`` ("cli"), or a training in Python ("train"), in a folder."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
        pids = [
            self._ask([str(folder), {**place, "RANK": str(rank)}, command, arguments])
            for rank in range(size)
        ]
        return Started(self._ask, folder, pids)

    def run(self, *arguments):
        """`start` and `Started.end`."""
        return self.start(*arguments).end()

    def _ask(self, request):
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())
