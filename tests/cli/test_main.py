"""The program itself: version, help, what it imports, how it fails."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nlsf.cli import app

NLSF = [sys.executable, "-m", "nlsf.cli"]


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
