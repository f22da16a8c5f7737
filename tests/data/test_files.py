"""Files are found, or the error says where to put them."""

import functools
import hashlib
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nlsf.data.files import RemoteFile, is_present, locate_all
from nlsf.errors import DataError

PAGE = "https://example.org/page"
BY_HAND = [RemoteFile(f"set/{name}", page=PAGE) for name in "ab"]


def test_what_is_there_is_taken(tmp_path):
    (tmp_path / "set").mkdir()
    for file in BY_HAND:
        file.at(tmp_path).write_text(file.path)
    assert locate_all(BY_HAND, tmp_path) == [tmp_path / "set/a", tmp_path / "set/b"]
    assert locate_all(BY_HAND[1:], tmp_path, offline=True) == [tmp_path / "set/b"]


def test_what_is_missing_is_named_with_its_place_and_its_publisher(tmp_path):
    with pytest.raises(DataError) as caught:
        locate_all(BY_HAND, tmp_path)
    a, b = (tmp_path / "set" / name for name in "ab")
    assert str(caught.value) == f"{a}, {b} are missing: put them there from {PAGE}."
    with pytest.raises(DataError, match="is missing: put it there"):
        locate_all(BY_HAND[:1], tmp_path)
    assert os.listdir(tmp_path) == []


def test_offline_downloads_nothing(tmp_path):
    file = RemoteFile("set/a", url="https://example.org/folder/a")
    with pytest.raises(DataError, match=r"from https://example\.org/folder\."):
        locate_all([file], tmp_path, offline=True)
    assert os.listdir(tmp_path) == []


def test_nothing_is_downloaded_when_another_file_must_come_by_hand(tmp_path):
    files = [RemoteFile("set/c", url="http://127.0.0.1:1/c"), *BY_HAND]
    with pytest.raises(DataError, match=r"set/a, .*set/b are missing"):
        locate_all(files, tmp_path)


def test_what_is_missing_is_downloaded_once(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    (tmp_path / "publisher").mkdir()
    (tmp_path / "publisher" / "a b").write_text("content")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=tmp_path / "publisher")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_port}/a%20b"
        file = RemoteFile("set/a", url=url, sha256=hashlib.sha256(b"content").hexdigest())
        (path,) = locate_all([file], tmp_path / "root")
        server.shutdown()
    assert path == tmp_path / "root" / "set" / "a"
    assert path.read_text() == "content"
    assert locate_all([file], tmp_path / "root") == [path], "the publisher is not asked again"
    with pytest.raises(DataError, match="cannot be downloaded"):
        locate_all([file], tmp_path / "other")


def test_a_root_that_is_no_folder(tmp_path):
    root = tmp_path / "file"
    root.write_text("")
    with pytest.raises(DataError, match="is not a folder: choose another"):
        locate_all(BY_HAND[:1], root, offline=True)


def test_a_folder_that_cannot_be_looked_into(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        is_present(RemoteFile("x" * 300 + "/a"), tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permissions(tmp_path):
    (tmp_path / "set").mkdir()
    path = BY_HAND[0].at(tmp_path)
    path.write_text("")
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read"):
        locate_all(BY_HAND[:1], tmp_path)
    (tmp_path / "set").chmod(0)
    try:
        with pytest.raises(DataError, match="mend its permissions"):
            locate_all(BY_HAND[:1], tmp_path)
    finally:
        (tmp_path / "set").chmod(0o755)
