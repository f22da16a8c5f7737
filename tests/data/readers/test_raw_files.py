"""Archives are read within limits, and hostile ones are refused."""

import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nlsf.data.readers.raw_files import read_members, table
from nlsf.errors import FormatError


@pytest.fixture
def packed(tmp_path):
    def packed(*members, method=zipfile.ZIP_DEFLATED):
        path = tmp_path / "set.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return path

    return packed


def link(name):
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


def test_members_by_name(packed):
    path = packed(("S/", b""), ("S/S_A.txt", b"1, 2\n"), ("S/README", b""))
    assert read_members(path) == {"S/S_A.txt": b"1, 2\n", "S/README": b""}
    assert list(read_members(path, lambda name: name.endswith("_A.txt"))) == ["S/S_A.txt"]


@pytest.mark.parametrize(
    "name", ["../evil", "S/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "C:evil", ".."]
)
def test_names_that_lead_outside(packed, tmp_path, name):
    path = packed(("S/good.txt", b"1"), (zipfile.ZipInfo(name), b"x"))
    before = set(tmp_path.parent.iterdir()), set(tmp_path.iterdir())
    with pytest.raises(FormatError, match="outside") as caught:
        read_members(path)
    assert str(path) in str(caught.value)
    assert (set(tmp_path.parent.iterdir()), set(tmp_path.iterdir())) == before


def test_links(packed):
    with pytest.raises(FormatError, match="'S/link' is a link"):
        read_members(packed((link("S/link"), b"/etc/passwd")))


def test_doubles(packed):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = packed(("S/a", b"1"), ("S/a", b"2"))
    with pytest.raises(FormatError, match="'S/a' is there twice"):
        read_members(path)


def test_encrypted_members(packed):
    path = packed(("S/a", b"content"))
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x03\x04") + 6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="'S/a' is encrypted"):
        read_members(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_bounded(packed, method):
    with pytest.raises(FormatError, match="deflate"):
        read_members(packed(("S/a", b"1" * 100), method=method))


def test_a_bomb_that_declares_its_size(packed):
    path = packed(("S/a", bytes(50 << 20)))
    assert path.stat().st_size < 60_000
    with pytest.raises(FormatError, match="declares 52,428,800 bytes"):
        read_members(path)


def test_a_bomb_that_hides_its_size(packed):
    path = packed(("S/a", bytes(50 << 20)))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = raw.index(signature) + offset
        raw[start : start + 4] = struct.pack("<I", 10)
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"set\.zip"):
        read_members(path)


def test_one_body_under_many_names(packed):
    """Members that share their bytes: each is small, together they are not."""
    path = packed(("S/a", bytes(900_000)), ("S/b", b""))
    raw = path.read_bytes()
    directory = raw.index(b"PK\x01\x02")
    first = raw[directory : raw.index(b"PK\x01\x02", directory + 1)]
    names = [b"S/%c" % (97 + k) for k in range(26)]
    copies = b"".join(first.replace(b"S/a", name) for name in names)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 26, 26, len(copies), directory, 0)
    path.write_bytes(raw[:directory] + copies + end)
    with pytest.raises(FormatError, match="declares 23,400,000"):
        read_members(path)


def test_limits(packed):
    path = packed(*((f"S/{k}", b"12345") for k in range(8)))
    assert len(read_members(path, max_files=8, max_bytes=40)) == 8
    with pytest.raises(FormatError, match="8 members"):
        read_members(path, max_files=7)
    with pytest.raises(FormatError, match="40 bytes"):
        read_members(path, max_bytes=39)


def test_small_archives_may_be_dense(packed):
    assert len(read_members(packed(("S/a", bytes(1 << 20))))["S/a"]) == 1 << 20


@pytest.mark.parametrize("cut", [0, 10, 100, -1, -30])
def test_truncated_archives(packed, cut):
    path = packed(("S/a", bytes(range(256)) * 20))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FormatError, match="not a whole zip archive"):
        read_members(path)


def test_a_member_with_a_wrong_byte(packed):
    path = packed(("S/a", bytes(range(256))), method=zipfile.ZIP_STORED)
    raw = bytearray(path.read_bytes())
    raw[60] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="CRC"):
        read_members(path)


@pytest.mark.data
def test_real_archives_fit_the_limits_with_room(root: Path):
    for path in sorted((root / "tu").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
        assert total < (2 << 30) / 5
        assert total < 200 * path.stat().st_size / 10
        # COLLAB takes seconds to inflate: its labels say enough.
        found = read_members(path, lambda name: name.endswith("_graph_labels.txt"))
        assert len(found) == 1


def test_a_member_without_a_name_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "1")
    path.write_bytes(path.read_bytes().replace(b"x1", b"\x001").replace(b"x", b"\x00"))
    with pytest.raises(FormatError, match=r"a\.zip"):
        read_members(path)


def test_a_directory_that_points_outside_is_damage(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("name", "1")
    content = bytearray(path.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    content[end + 16 : end + 20] = (2**31 - 1).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(FormatError, match="fetch it again"):
        read_members(path)


def test_lines_of_numbers():
    found = table("a.txt", b"1, 2\r\n-3,4\n5 , 6\n\n", kind=int, columns=2)
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2], [-3, 4], [5, 6]]
    assert table("a.txt", b" 1.5, 2e3\n.5, -1", kind=float).tolist() == [[1.5, 2000], [0.5, -1]]


def test_nothing():
    assert table("a.txt", b"\n", kind=int, columns=2).shape == (0, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2\n3\n", "a.txt, line 2 has 1 values; expected 2."),
        # As many numbers as two regular lines have.
        (b"1,2,3\n4\n", "a.txt, line 1 has 3 values; expected 2."),
        (b"1,2\n\n3,4\n", "a.txt, line 2 has 1 values; expected 2."),
        (b"\n1,2\n3,x\n", "a.txt, line 3: 'x' is not a whole number."),
        (b"1,2\n3,4.5\n", "a.txt, line 2: '4.5' is not a whole number."),
        (b"1,2\n3,\n", "a.txt, line 2: '' is not a whole number."),
        (b"1,2\n3,4 5\n", "a.txt, line 2: '4 5' is not a whole number."),
        (b"1,2\n\xff\xfe,4\n", "a.txt, line 2: '\ufffd\ufffd' is not a whole number."),
    ],
)
def test_the_first_bad_line_is_named(content, message):
    with pytest.raises(FormatError) as raised:
        table("a.txt", content, kind=int, columns=2)
    assert str(raised.value) == message
