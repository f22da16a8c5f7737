"""One process at a time; a killed one holds nothing."""

import signal
import threading

import pytest

from nlsf.store.locks import FileLock, is_held
from processes import Process

HOLD = """
import time
from pathlib import Path
from nlsf.store.locks import FileLock
with FileLock(Path("lock")):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_is_held_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    assert not is_held(path)
    lock = FileLock(path)
    assert lock.acquire(wait=False)
    assert is_held(path)
    assert not FileLock(path).acquire(wait=False)
    lock.release()
    assert not is_held(path)
    with pytest.raises(RuntimeError), FileLock(path):
        raise RuntimeError
    assert FileLock(path).acquire(wait=False)


def test_a_killed_process_holds_nothing(tmp_path):
    path = tmp_path / "lock"
    holder = Process(tmp_path, exec, HOLD, {})
    assert holder.wait_for(lambda: holder.output == "held\n"), holder.errors
    assert is_held(path)
    assert not FileLock(path).acquire(wait=False)
    holder.signal(signal.SIGKILL)
    assert not is_held(path)
    with FileLock(path):
        pass


COUNT = """
from pathlib import Path
from nlsf.store.locks import FileLock
number = Path("number")
for _ in range(300):
    with FileLock(Path("lock")):
        number.write_text(str(int(number.read_text()) + 1))
"""


def test_processes_take_turns(tmp_path):
    (tmp_path / "number").write_text("0")
    both = [Process(tmp_path, exec, COUNT, {}, name=name) for name in "ab"]
    for process in both:
        assert process.end(60) == 0, process.errors
    assert (tmp_path / "number").read_text() == "600"


def test_threads_may_share_one_lock(tmp_path):
    lock, count = FileLock(tmp_path / "lock"), [0]

    def work():
        for _ in range(300):
            with lock:
                before = count[0]
                count[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [900]
    assert not is_held(lock.path)


def test_a_lock_that_cannot_be_made_names_its_file(tmp_path):
    path = tmp_path / "no" / "lock"
    with pytest.raises(FileNotFoundError) as caught:
        FileLock(path).acquire()
    assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError):
        FileLock(tmp_path).acquire()
