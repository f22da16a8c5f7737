import os
import subprocess
import sys

import pytest

from nlsf import cli

FAULTS = """
import resource
import sys

import torch

from nlsf.cli import keep_freed_memory

torch.set_num_threads(1)
done = keep_freed_memory() if sys.argv[1] == "keep" else False
for _ in range(3):
    torch.ones(2**21)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(2**21)  # 8 MB, 2,048 pages
print(int(done), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how, **environment):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    command = [sys.executable, "-c", FAULTS, how]
    out = subprocess.run(
        command, env=plain | environment, capture_output=True, text=True, check=True
    )
    done, count = out.stdout.split()
    return bool(int(done)), int(count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an option of glibc")
def test_freed_memory_is_used_again():
    done, count = faults("keep")
    if not done:
        pytest.skip("this C library is not glibc")
    assert count < 2048, "not even one of twenty tensors came fresh from the system"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an option of glibc")
def test_what_the_user_says_counts():
    assert not faults("keep", MALLOC_ARENA_MAX="2")[0]


def test_other_libraries_have_no_such_option(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(cli.ctypes, "CDLL", lambda name: object())
    assert not cli.keep_freed_memory()
