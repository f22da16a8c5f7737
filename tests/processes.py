"""Work in processes of its own, which begin at once."""

import multiprocessing
import os
import resource
import signal
import sys
import time

_CONTEXT = multiprocessing.get_context("forkserver")
# A server imports PyTorch once; the processes are its children.
_CONTEXT.set_forkserver_preload(
    ["nlsf.tables.fill.fill", "nlsf.tables.tune.search", "nlsf.train", "nlsf.cli", "optuna"]
)


def _main(work, arguments, folder, environment, files, barrier):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # A shell's background job ignores it, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in enumerate(files, start=1):
        with open(path, "w") as file:
            os.dup2(file.fileno(), number)
    if barrier is not None:
        barrier.wait(60)
    work(*arguments)


def nlsf(*words, largest_file=None):
    """The program; with ``largest_file`` on a disk that has no room for more bytes in a file."""
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    from nlsf.cli import main

    sys.argv = ["nlsf", *map(str, words)]
    main()


class Process:
    """Calls ``work``, a function of a module; what it prints is in ``folder/NAME.*.txt``."""

    def __init__(self, folder, work, *arguments, name="process", barrier=None):
        self._files = [folder / f"{name}.{stream}.txt" for stream in ("output", "errors")]
        self._process = _CONTEXT.Process(
            target=_main,
            args=(work, arguments, folder, dict(os.environ), self._files, barrier),
            daemon=True,  # a test that fails leaves none behind
        )
        self._process.start()
        self.pid = self._process.pid

    @property
    def output(self):
        """What stands on its standard output."""
        return self._files[0].read_text() if self._files[0].exists() else ""

    @property
    def errors(self):
        """What stands on its standard error."""
        return self._files[1].read_text() if self._files[1].exists() else ""

    @property
    def said(self):
        """All that it printed."""
        return self.output + self.errors

    def wait_for(self, condition, seconds=60.0):
        """Waits until something is so; whether it was, before the process ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if not self._process.is_alive():
                return False
            time.sleep(0.0005)
        self._process.kill()
        raise AssertionError(f"waited too long: {self.said}")

    def signal(self, number):
        """Sends a signal and waits for the end; the exit code, negative for a deadly signal."""
        os.kill(self.pid, number)
        return self.end()

    def end(self, seconds=60.0):
        """Waits for the end; the exit code."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            self._process.kill()
            raise AssertionError(f"waited too long: {self.said}")
        return self._process.exitcode


def barrier(count):
    """For processes that shall begin at the same time."""
    return _CONTEXT.Barrier(count)
