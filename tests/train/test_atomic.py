import errno
import os
import resource
from contextlib import contextmanager

import pytest

from nlsf.train.atomic import write_bytes, write_text


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, b"old")
    write_bytes(path, b"\x00new")
    assert path.read_bytes() == b"\x00new"
    assert names(tmp_path) == ["a.bin"]


def test_text_is_utf8_and_keeps_its_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "λ\r\nμ\n")
    assert (tmp_path / "a.txt").read_bytes() == "λ\r\nμ\n".encode()


def test_the_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


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


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, b"old")
    with full_disk(10_000), pytest.raises(OSError, match="File too large") as caught:
        write_bytes(path, b"x" * 20_000)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]
