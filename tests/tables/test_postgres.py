import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from nlsf.tables.tune import keeper
from nlsf.tables.tune.trials import key, read_trials
from processes import Process
from tables.tuning_worker import run, work


def binaries():
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if all((folder / name).exists() for name in ("postgres", "initdb", "pg_ctl")):
            return folder
    pytest.skip("needs the binaries of a PostgreSQL server")


def other_user():
    """Arguments for `subprocess` that leave root, whom the server refuses."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    pytest.skip("root cannot start a PostgreSQL server, and there is no other user")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The URL of a server on loopback that ends with the tests."""
    folder, user = binaries(), other_user()
    place = Path("/tmp") if user else tmp_path_factory.mktemp("postgres")
    if user:  # a folder that another user can reach
        import tempfile

        place = Path(tempfile.mkdtemp(prefix="nlsf-postgres-", dir="/tmp"))
        os.chown(place, user["user"], user["group"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data, password = place / "data", place / "password"
    password.write_text("geheim\n")
    password.chmod(0o644)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}
    options = {"cwd": place, "env": environment, "capture_output": True, "text": True, **user}
    made = subprocess.run(
        [
            *(folder / "initdb", "-D", data, "-U", "tuner", "-A", "scram-sha-256"),
            *(f"--pwfile={password}", "--no-sync", "-E", "UTF8"),
        ],
        **options,
    )
    if made.returncode:
        pytest.skip(f"initdb fails here: {made.stderr.strip().splitlines()[-1]}")
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place} -F"
    control = [folder / "pg_ctl", "-D", data, "-w", "-l", place / "log"]
    # Without pipes: the server would inherit them, and they would never end.
    quiet = {**options, "capture_output": False, "stdout": subprocess.DEVNULL}
    started = subprocess.run([*control, "-o", settings, "start"], **quiet)
    try:
        assert started.returncode == 0, (place / "log").read_text()
        yield f"postgresql://tuner:geheim@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def database(server, request):
    """A database of its own for every test."""
    import psycopg

    name = f"d{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.rsplit('/', 1)[0]}/{name}"


def test_two_workers_share_the_trials_of_a_database(database, tmp_path):
    workers = [Process(tmp_path, work, database, 5, name=name) for name in "ab"]
    for worker in workers:
        assert worker.end(120) == 0, worker.errors
        assert worker.output == "done\n"
    trials = read_trials(database, "s")
    assert len(trials) == len({key(trial.point) for trial in trials}) == 5
    assert {trial.state for trial in trials} <= {"complete", "pruned"}


def test_the_point_of_a_killed_worker_is_tried_again(database, tmp_path, monkeypatch):
    worker = Process(tmp_path, work, database, 3, 1)
    assert worker.wait_for(lambda: worker.output == "blocked\n"), worker.errors
    (lost,) = [trial for trial in read_trials(database, "s") if trial.state == "running"]
    assert worker.signal(signal.SIGKILL) == -signal.SIGKILL
    monkeypatch.setattr(keeper, "_GRACE", 2)
    time.sleep(0.1)
    tuned = run(database, 3)
    assert tuned.complete
    assert len(tuned.trials) == 3
    assert [key(trial.point) for trial in tuned.trials].count(key(lost.point)) == 1


def test_it_makes_the_same_trials_as_a_journal(database, tmp_path):
    def results(tuned):
        return [(key(trial.point), trial.value, trial.state) for trial in tuned.trials]

    assert results(run(database, 4)) == results(run(tmp_path / "j", 4))


def test_a_wrong_password_is_one_sentence_without_it(database):
    wrong = database.replace("geheim", "falsch")
    with pytest.raises(Exception, match="password authentication failed") as caught:
        run(wrong, 2)
    assert "falsch" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
