"""Ways to damage the bytes of a file, for `fuzz_readers`: `damaged`."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
import zlib

NUMBERS = (b"-1", b"0", b"99999999999999999999999", b"4294967296", b"2147483648", b"1e308", b"nan",
           b"-inf", b"1_0", b"0.5", b"", b"1e999", b"[1]", b'"a"', b"true", b"null")  # fmt: skip
WORDS = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x00\x00\x00\x00",
         b"\x01\x00\x00\x00\x00\x00\x00\x80", b"\x7f\xff\xff\xff", b"\x00\x00\xf8\x7f",
         b"\x00\x00\x00\x10")  # fmt: skip


def flip_bit(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def flip_byte(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def truncate(data, rng):
    return data[: rng.randrange(len(data))]


def cut_out(data, rng):
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 1 + len(data) // 4) :]


def repeat(data, rng):
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 1 + len(data) // 4)]
    return data[:start] + piece * rng.randint(2, 20) + data[start:]


def insert(data, rng):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randint(1, 16)) + data[at:]


def swap_number(data, rng):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return flip_byte(data, rng)
    start, end = rng.choice(found).span()
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def overwrite(data, rng):
    at, word = 4 * rng.randrange(1 + len(data) // 4), rng.choice(WORDS)
    return data[:at] + word + data[at + len(word) :]


def swap_lines(data, rng):
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


DAMAGE = (flip_bit, flip_byte, truncate, cut_out, repeat, insert, swap_number, overwrite,
          swap_lines)  # fmt: skip


def damaged(data, rng):
    """One or several faults; inside of a compressed file in half of the cases."""
    inside = rng.random() < 0.5
    if inside and data[:2] == b"\x1f\x8b":
        return gzip.compress(damaged(gzip.decompress(data), rng))
    if inside and data[:2] == b"PK":
        return _rezipped(data, rng)
    if inside and data[126:128] == b"IM" and data[128:132] == b"\x0f\x00\x00\x00":
        return _recompressed(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = rng.choice(DAMAGE)(data, rng) if data else rng.randbytes(3)
    return data


def _rezipped(data, rng):
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w") as new:
        chosen = rng.choice([name for name in old.namelist() if old.read(name)])
        for member in old.infolist():
            content = old.read(member)
            member.compress_type = zipfile.ZIP_STORED
            new.writestr(member, damaged(content, rng) if member.filename == chosen else content)
    return result.getvalue()


def _recompressed(data, rng):
    """A MATLAB file whose first variable is damaged before it is compressed."""
    (length,) = struct.unpack("<I", data[132:136])
    body = zlib.compress(damaged(zlib.decompress(data[136 : 136 + length]), rng))
    return data[:128] + struct.pack("<II", 15, len(body)) + body + data[136 + length :]
