"""``nlsf table`` in processes of its own, which begin at once."""

import multiprocessing
import os
import sys
import time

_CONTEXT = multiprocessing.get_context("forkserver")
# A server imports PyTorch once; the processes are its children.
_CONTEXT.set_forkserver_preload(["nlsf.experiments.fill", "nlsf.cli", "optuna"])


def _main(folder, arguments, output, barrier):
    os.chdir(folder)
    with open(output, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["nlsf", "table", *arguments]
    from nlsf.cli import main

    if barrier is not None:
        barrier.wait(60)
    main()


class TableProcess:
    """A process; what it prints is in ``folder/NAME.txt``."""

    def __init__(self, folder, *arguments, name="output", barrier=None):
        self.output = folder / f"{name}.txt"
        self.process = _CONTEXT.Process(
            target=_main, args=(folder, arguments, self.output, barrier)
        )
        self.process.start()

    def wait_for(self, condition, seconds=60.0):
        """Waits until something is so; whether it was, before the process ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if not self.process.is_alive():
                return False
            time.sleep(0.0005)
        raise AssertionError(f"waited too long: {self.output.read_text()}")

    def signal(self, number):
        """Sends a signal and waits for the end; the exit code, negative for a deadly signal."""
        os.kill(self.process.pid, number)
        return self.end()

    def end(self, seconds=60.0):
        """Waits for the end; the exit code."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, self.output.read_text()
        return self.process.exitcode


def barrier(count):
    """For processes that shall begin at the same time."""
    return _CONTEXT.Barrier(count)
