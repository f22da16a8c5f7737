import os
import subprocess
import sys

import pytest

NLSF = [sys.executable, "-m", "nlsf.cli"]


def run(*arguments, **options):
    return subprocess.run([*NLSF, *arguments], capture_output=True, text=True, **options)


def test_version_and_help_import_nothing_heavy():
    program = (
        "import sys; from nlsf.cli import app\n"
        "for flag in ('--version', '--help'):\n"
        "    try: app([flag])\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nlsf 0." in done.stdout
    assert "spectrum" in done.stdout


def test_spectrum_prints_and_draws(tmp_path):
    picture = tmp_path / "new folder" / "digits.png"
    done = run("spectrum", "digits", "-o", str(picture), "-S", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1,797 nodes" in done.stdout
    assert "largest eigenvalue 36.3" in done.stdout
    assert done.stdout.count("share of the features") == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(picture.parent) == ["digits.png"], "no half-written file stays"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["spectrum", "digit"], 2, "Did you mean 'digits'?"),
        (["spectrum", "cora"], 2, "Known: digits."),
        (["spectrum"], 2, "Missing argument"),
        (["spectrun"], 2, "No such command"),
        (["spectrum", "digits", "-r", "2"], 1, "decay rate r must lie between 0 and 1"),
        (["spectrum", "digits", "-o", "/proc/nowhere/x.png"], 1, "nowhere"),
    ],
)
def test_errors_are_one_sentence(arguments, code, says, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback():
    done = run("--debug", "spectrum", "digits", "-r", "2")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
