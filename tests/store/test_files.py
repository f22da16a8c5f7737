"""Files are whole or absent, whoever is killed, and anyone may read them who may read others."""

import errno
import hashlib
import os
import random
import resource
import signal
import stat
import time
from contextlib import contextmanager

import pytest

from nlsf.errors import DataError, FormatError
from nlsf.store.files import (
    DAY,
    TEMPORARY,
    file_checksum,
    read_text,
    remove_leftovers,
    text_checksum,
    whole_file,
    whole_file_at,
    write_bytes,
    write_text,
)
from processes import Process


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def by_stream(path, data):
    with whole_file(path) as file:
        for start in range(0, len(data), 1000):
            file.write(data[start : start + 1000])


def by_name(path, data):
    with whole_file_at(path) as temporary:
        temporary.write_bytes(data)


def by_another_file(path, data):
    """As a library does that writes privately and renames on its own."""
    with whole_file_at(path) as temporary:
        private = temporary.with_name("private")
        private.touch(0o600)
        private.write_bytes(data)
        os.replace(private, temporary)


WRITERS = [write_bytes, by_stream, by_name, by_another_file]
each_writer = pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)


@each_writer
def test_a_file_is_written_and_replaced(tmp_path, write):
    path = tmp_path / "a.bin"
    write(path, b"old")
    write(path, b"\x00new" * 5000)
    assert path.read_bytes() == b"\x00new" * 5000
    assert names(tmp_path) == ["a.bin"]


def test_text_is_utf8_and_keeps_its_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "λ\r\nμ\n")
    assert (tmp_path / "a.txt").read_bytes() == "λ\r\nμ\n".encode()


@each_writer
@pytest.mark.parametrize(
    ("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o027, 0o640), (0o077, 0o600)]
)
def test_the_mode_follows_the_umask(tmp_path, write, umask, mode):
    old = os.umask(umask)
    try:
        write(tmp_path / "a", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to any group")
@each_writer
def test_the_group_is_the_folders_where_the_folder_says_so(tmp_path, write):
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, -1, 54321)
    shared.chmod(0o2775)
    write(shared / "a", b"")
    assert (shared / "a").stat().st_gid == 54321


@each_writer
def test_the_longest_name_can_be_written(tmp_path, write):
    longest = "λ" * 127
    write(tmp_path / longest, b"x")
    assert names(tmp_path) == [longest]


def test_a_missing_folder_is_named_by_the_file(tmp_path):
    path = tmp_path / "no" / "a.txt"
    with pytest.raises(FileNotFoundError) as caught:
        write_text(path, "x")
    assert caught.value.filename == str(path)
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}'"


def test_a_folder_in_the_place_of_the_file_stays(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_bytes(tmp_path / "a", b"x")
    assert caught.value.filename == str(tmp_path / "a")
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_a_permission_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        write_bytes(tmp_path / "a", b"x")


def fails(path, error):
    with whole_file(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        DataError("the host does not answer"),
        FileNotFoundError(errno.ENOENT, "No such file", "/another/file"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_keep_their_words_and_leave_nothing(tmp_path, error):
    write_bytes(tmp_path / "a", b"old")
    with pytest.raises(type(error)) as caught:
        fails(tmp_path / "a", error)
    assert caught.value is error
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "a", b"x")
    assert names(tmp_path) == []


@contextmanager
def full_disk(size):
    """No file can grow beyond this many bytes; Python ignores the signal that comes with it."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@each_writer
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, write):
    if write is by_another_file:
        pytest.skip("its private file is its own to remove")
    path = tmp_path / "a.bin"
    write(path, b"old")
    with full_disk(10_000), pytest.raises(OSError, match="File too large") as caught:
        write(path, b"x" * 20_000)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


HALF = """
import time
from pathlib import Path
from nlsf.store.files import whole_file
with whole_file(Path("a.bin")) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_writer_that_is_killed_in_the_middle_leaves_the_old_content(tmp_path, old):
    path = tmp_path / "a.bin"
    if old is not None:
        write_bytes(path, old)
    writer = Process(tmp_path, exec, HALF, {})
    assert writer.wait_for(lambda: writer.output == "half\n"), writer.errors
    writer.signal(signal.SIGKILL)
    assert (path.read_bytes() if path.exists() else None) == old
    (leftover,) = tmp_path.glob(TEMPORARY)
    assert leftover.read_bytes() == b"half"
    remove_leftovers(tmp_path)
    assert not leftover.exists()


FOREVER = """
from pathlib import Path
from nlsf.store.files import whole_file, whole_file_at, write_bytes
path, number = Path("a.bin"), 0
while True:
    data = bytes([number % 256]) * 2_000_000
    if number % 3 == 0:
        write_bytes(path, data)
    elif number % 3 == 1:
        with whole_file(path) as file:
            for start in range(0, len(data), 100_000):
                file.write(data[start : start + 100_000])
    else:
        with whole_file_at(path) as temporary:
            temporary.write_bytes(data)
    number += 1
"""


def another_than(path):
    """Whether the file of this path is another one than now."""

    def look():
        return path.stat().st_mtime_ns if path.exists() else None

    now = look()
    return lambda: look() != now


def test_writers_that_are_killed_at_any_time_leave_whole_files(tmp_path):
    path, draw = tmp_path / "a.bin", random.Random(0)
    for _ in range(8):
        writers = [Process(tmp_path, exec, FOREVER, {}, name=name) for name in "ab"]
        for _ in range(2):
            assert writers[0].wait_for(another_than(path)), writers[0].errors
        time.sleep(draw.uniform(0, 0.05))
        for writer in writers:
            writer.signal(signal.SIGKILL)
            data = path.read_bytes()
            assert data == data[:1] * 2_000_000
    remove_leftovers(tmp_path)
    assert not list(tmp_path.glob(TEMPORARY))


def test_a_reader_beside_writers_always_sees_a_whole_file(tmp_path):
    path = tmp_path / "a.bin"
    writers = [Process(tmp_path, exec, FOREVER, {}, name=name) for name in "ab"]
    assert writers[0].wait_for(path.exists), writers[0].errors
    for _ in range(50):
        data = path.read_bytes()
        assert data == data[:1] * 2_000_000
    for writer in writers:
        writer.signal(signal.SIGKILL)


def test_only_leftovers_of_that_age_are_removed(tmp_path):
    old, new = tmp_path / ".a-0123456789ab.tmp", tmp_path / ".b-0123456789ab.tmp"
    others = [tmp_path / name for name in (".notes.tmp", "a-0123456789ab.tmp", ".git")]
    for path in (old, new, *others):
        path.touch()
    for path in (old, *others):
        os.utime(path, (0, 0))
    remove_leftovers(tmp_path, age=DAY)
    assert names(tmp_path) == sorted(path.name for path in (new, *others))
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted(path.name for path in others)
    remove_leftovers(tmp_path / "none")


def test_small_texts_are_read_and_others_refused(tmp_path):
    write_text(tmp_path / "a", "λ\r\n")
    assert read_text(tmp_path / "a", limit=2**20) == "λ\r\n"
    write_bytes(tmp_path / "a", b"\xff")
    with pytest.raises(FormatError, match="not text in UTF-8"):
        read_text(tmp_path / "a", limit=2**20)
    write_bytes(tmp_path / "a", b"#" * (2**20 + 1))
    with pytest.raises(FormatError, match="larger than 1 MiB"):
        read_text(tmp_path / "a", limit=2**20)


def test_checksums(tmp_path):
    text = "λabc" * 100_000
    write_text(tmp_path / "a", text)
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert file_checksum(tmp_path / "a") == text_checksum(text) == expected
