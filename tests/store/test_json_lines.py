import errno
import json
import math
import resource
from contextlib import contextmanager

import numpy as np
import pytest

from nlsf.errors import FormatError
from nlsf.store.json_lines import append, encode, mend, read, sync, write
from processes import Process


def test_rows_keep_their_order_and_every_digit():
    rows = [{"seed": 1, "b": 0.1 + 0.2, "a": 1e-300}, {"x": [1.5, {"y": np.float64(2.5)}]}]
    text = encode(rows).decode()
    assert text.splitlines()[0] == '{"seed": 1, "b": 0.30000000000000004, "a": 1e-300}'
    assert [json.loads(line) for line in text.splitlines()] == rows


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_null(value):
    assert encode([{"a": value, "b": (value,)}]) == b'{"a": null, "b": [null]}\n'


def test_appending_and_reading(tmp_path):
    path = tmp_path / "m.jsonl"
    append(path, [{"a": 1}, {"a": 2}])
    append(path, [])
    append(path, [{"name": "a\nb λ"}])
    assert read(path) == [{"a": 1}, {"a": 2}, {"name": "a\nb λ"}]


def test_a_torn_line_is_left_out_or_refused(tmp_path):
    path = tmp_path / "m.jsonl"
    whole = encode([{"a": 1}, {"b": "λ"}])
    first = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        rows = read(path, torn=True)
        assert rows == [{"a": 1}, {"b": "λ"}][: whole[:size].count(b"\n")]
        if size not in (0, first, len(whole)):
            with pytest.raises(FormatError, match=r"m\.jsonl, line \d: the line is cut off"):
                read(path)


@pytest.mark.parametrize("line", [b"x", b"[1]", b"", b"\xff", b"[" * 100_000])
def test_bad_lines_are_named(tmp_path, line):
    (tmp_path / "m.jsonl").write_bytes(b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(FormatError, match=r"m\.jsonl, line 2: expected a JSON object"):
        read(tmp_path / "m.jsonl", torn=True)


def test_a_torn_line_is_cut_off(tmp_path):
    path = tmp_path / "m.jsonl"
    whole = encode([{"a": 1}, {"b": "λ"}])
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        mend(path)
        assert path.read_bytes() == whole[: whole[:size].rfind(b"\n") + 1]


def test_writing_replaces_what_was_there(tmp_path):
    path = tmp_path / "m.jsonl"
    write(path, [{"a": 1}, {"a": 2}])
    write(path, [{"a": 3}])
    assert read(path) == [{"a": 3}]
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.jsonl"]


def test_a_file_beyond_its_limit_is_not_read(tmp_path):
    path = tmp_path / "m.jsonl"
    write(path, [{"text": "x" * 2**20}])
    assert len(read(path, limit=2**21)) == 1
    with pytest.raises(FormatError, match=r"m\.jsonl is larger than 1 MiB"):
        read(path, limit=2**20)


APPEND = """
from pathlib import Path
from nlsf.store.json_lines import append
for number in range(200):
    append(Path("m.jsonl"), [{"who": who, "number": number, "long": "x" * 3000}])
"""


def test_processes_that_append_at_once_never_mix_their_rows(tmp_path):
    both = [Process(tmp_path, exec, APPEND, {"who": who}, name=who) for who in "ab"]
    for process in both:
        assert process.end() == 0, process.errors
    rows = read(tmp_path / "m.jsonl")
    for who in "ab":
        assert [row["number"] for row in rows if row["who"] == who] == list(range(200))


def test_syncing_needs_no_file(tmp_path):
    sync(tmp_path / "m.jsonl")
    assert not (tmp_path / "m.jsonl").exists()


@contextmanager
def full_disk(size):
    """No file can grow beyond this many bytes; Python ignores the signal that comes with it."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_disk_takes_all_rows_or_none(tmp_path):
    path = tmp_path / "m.jsonl"
    with full_disk(1000):
        append(path, [{"a": 1}])
        with pytest.raises(OSError, match="File too large") as caught:
            append(path, [{"a": 0}, {"text": "x" * 5000}])
        append(path, [{"a": 2}])
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert read(path) == [{"a": 1}, {"a": 2}]
