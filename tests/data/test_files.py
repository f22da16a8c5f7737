"""Files are found, or the error says where to put them."""

import functools
import hashlib
import io
import os
import resource
import threading
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import platformdirs
import pytest
from rich.console import Console

from nlsf.data.catalogue.files import RemoteFile, data_root, download, is_present, locate_all
from nlsf.display.progress import Progress
from nlsf.display.sinks import progress_for
from nlsf.errors import DataError, FormatError

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


BODY = bytes(range(256)) * 4000
SIZE = len(BODY)
SUM = hashlib.sha256(BODY).hexdigest()


class Publisher(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        getattr(self, self.path.strip("/").split("/")[0].replace("-", "_"))()

    def give(self, body, length=None):
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, target):
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def whole(self):
        self.give(BODY, len(BODY))

    def no_length(self):
        self.give(BODY)

    def truncated(self):
        self.give(BODY[:1000], len(BODY))

    def other(self):
        self.give(b"<html>Sign in</html>", 20)

    def longer(self):
        self.give(BODY + b"!")

    def gone(self):
        self.send_error(404)

    def moved(self):
        self.redirect("/whole")

    def circle(self):
        self.redirect("/circle")

    def to_file(self):
        self.redirect("file:///etc/hostname")

    def to_http(self):
        self.redirect("http://example.org/x")

    def hangs(self):
        self.server.stop.wait(5)

    def hangs_later(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000])
        self.wfile.flush()
        self.server.stop.wait(5)

    def nonsense(self):
        self.wfile.write(b"this is not HTTP\r\n\r\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    server.seen, server.stop = [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.stop.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def get(server, tmp_path):
    """Downloads a path of the server; returns the target. Whatever happens, no part file stays."""
    target = tmp_path / "set" / "x.bin"

    def get(path, *, sha256=SUM, size=SIZE, **options):
        url = f"http://127.0.0.1:{server.server_port}/{path}"
        file = RemoteFile("set/x.bin", sha256=sha256, url=url, size=size)
        options.setdefault("progress", Progress())
        download(file, target, **options)
        return target

    yield get
    left = set(os.listdir(target.parent)) if target.parent.exists() else set()
    assert left <= {"x.bin"}, "no part of a file stays"


@pytest.mark.parametrize("path", ["whole", "no-length", "moved"])
def test_a_whole_file(get, path):
    target = get(path)
    assert target.read_bytes() == BODY
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask, "others may read it"


def test_without_a_checksum_what_comes_is_kept(get):
    assert get("whole", sha256=None, size=None).read_bytes() == BODY


@pytest.mark.parametrize(
    ("path", "options", "error", "words"),
    [
        ("truncated", {}, DataError, "broke off after 1,000 of 1,024,000 bytes"),
        ("truncated", {"size": None, "sha256": None}, DataError, "broke off"),
        ("other", {}, FormatError, "gave 20 bytes, but 1,024,000 were expected"),
        ("longer", {}, FormatError, "more than the 1,024,000 bytes"),
        ("whole", {"sha256": "0" * 64}, FormatError, f"SHA-256 {SUM}, but {'0' * 64}"),
        ("gone", {}, DataError, "answers 404 Not Found"),
        ("circle", {}, DataError, "answers 302"),
        ("to-file", {}, DataError, "'file:///etc/hostname' is not allowed"),
        ("to-http", {}, DataError, "http://example.org/x is not fetched"),
        ("hangs", {"timeout": 0.2}, DataError, "timed out"),
        ("hangs-later", {"timeout": 0.2}, DataError, "timed out"),
        ("nonsense", {}, DataError, "cannot be downloaded"),
    ],
)
def test_failures_leave_nothing(get, tmp_path, path, options, error, words):
    with pytest.raises(error) as caught:
        get(path, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "set" / "x.bin").exists()


def test_a_failure_leaves_the_old_file(get, tmp_path):
    get("whole")
    with pytest.raises(FormatError):
        get("other")
    assert (tmp_path / "set" / "x.bin").read_bytes() == BODY


def test_redirects_are_few(get, server):
    with pytest.raises(DataError):
        get("circle")
    assert len(server.seen) <= 6


def test_an_unreachable_host(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    file = RemoteFile("x", url="http://127.0.0.1:1/x")
    with pytest.raises(DataError, match="cannot be downloaded"):
        download(file, tmp_path / "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "ftp://example.org/x", "file:///etc/hosts"]
)
def test_only_https(tmp_path, url):
    with pytest.raises(DataError, match="only https"):
        download(RemoteFile("x", url=url), tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_full_disk(get, tmp_path):
    """A limit on the size of files makes writing fail in the middle, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        with pytest.raises(DataError, match=r"x\.bin cannot be written .*make room"):
            get("whole")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path / "set") == []


def test_a_file_where_a_folder_should_be(get, tmp_path):
    (tmp_path / "set").write_text("")
    try:
        with pytest.raises(DataError, match="cannot be written"):
            get("whole")
    finally:
        (tmp_path / "set").unlink()


def test_two_at_once(get, tmp_path):
    threads = [threading.Thread(target=get, args=("whole",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "set" / "x.bin").read_bytes() == BODY


def test_progress(get):
    plain, terminal = io.StringIO(), io.StringIO()
    get("whole", progress=progress_for(Console(file=plain)))
    console = Console(file=terminal, width=100, force_terminal=True, _environ={"TERM": "xterm"})
    with progress_for(console):  # who draws at the moment draws this too
        get("whole", progress=None)
    assert plain.getvalue().startswith("Downloading set/x.bin: from http://127.0.0.1")
    assert "\x1b" not in plain.getvalue()
    assert "set/x.bin" in terminal.getvalue()
    assert "1.0 MB of 1.0 MB" in terminal.getvalue()


def test_a_file_without_an_address(tmp_path):
    with pytest.raises(DataError, match=r"from https://example\.org by hand"):
        download(RemoteFile("x", page="https://example.org"), Path(tmp_path / "x"))


def test_argument_then_variable_then_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("NLSF_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "variable"
    for nothing in ("", None):
        if nothing is None:
            monkeypatch.delenv("NLSF_DATA")
        else:
            monkeypatch.setenv("NLSF_DATA", nothing)
        assert data_root() == Path(platformdirs.user_data_dir("nlsf"))


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root("~/raw") == tmp_path / "raw"
