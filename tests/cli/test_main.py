"""The program itself: version, help, what it imports, how it fails."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nlsf import cli
from nlsf.cli import app

NLSF = [sys.executable, "-m", "nlsf"]


def test_version_help_and_list_import_nothing_heavy(tmp_path):
    program = (
        "import sys; from nlsf.cli import app\n"
        "for line in (['--version'], ['--help'], ['train', '--help'], ['data', 'list']):\n"
        "    try: app(line)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    environment = {**os.environ, "NLSF_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "nlsf 0." in done.stdout
    assert "spectrum" in done.stdout
    assert "csbm" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["spectrum"], "Missing argument"),
        (["spectrun"], "No such command"),
        (["train", "csbm", "--epochs", "3"], "No such option"),
        (["train", "csbm", "--seeds", "many"], "--seeds"),
        (["predict", "run"], "Missing argument"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, says):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert says in done.output


def test_debug_shows_the_traceback(tmp_path):
    done = subprocess.run(
        [*NLSF, "--debug", "data", "info", "coda"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    plain = subprocess.run(
        [*NLSF, "data", "info", "coda"], capture_output=True, text=True, cwd=tmp_path
    )
    assert plain.returncode == 1
    assert plain.stderr == "nlsf: There is no data set 'coda'. Did you mean 'Cora'?\n"


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
