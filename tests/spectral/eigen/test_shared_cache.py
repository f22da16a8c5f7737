"""A cache that several users share: what one cannot read or write costs a warning, not a result."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from nlsf.spectral import SpectrumCache, laplacian, partial_eigh
from nlsf.testing.graphs import torus
from processes import Process

OTHER = 54321
"""A user and group that own nothing here."""

AS_ANOTHER_USER = """
import os
import warnings
from pathlib import Path
from nlsf.spectral import laplacian, partial_eigh
from nlsf.spectral.eigen import eigensolve
from nlsf.testing.graphs import torus
solved, solve = [], eigensolve._solve
eigensolve._solve = lambda request: (solved.append(1), solve(request))[1]
partial_eigh(laplacian(torus(3, 3)), k=2)  # whatever is imported late
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.umask(0o022)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for k in ks:
        found = partial_eigh(laplacian(torus(4, 5)), k=k, cache=folder)
        assert found.values.equal(partial_eigh(laplacian(torus(4, 5)), k=k).values)
print(len(solved) - 1 - len(ks))
for one in caught:
    print(one.category.__name__, one.message)
"""


@pytest.fixture
def cache():
    """A cache with one spectrum, in a folder that every user can reach."""
    # pytest's own folders are closed to others.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    old = os.umask(0o022)
    try:
        cache = SpectrumCache(folder / "spectra")
        partial_eigh(laplacian(torus(4, 5)), k=3, cache=cache)
    finally:
        os.umask(old)
    yield cache
    for path in (cache.root, *cache.root.glob("*")):
        path.chmod(0o700)
    shutil.rmtree(folder)


def limit(path, mode):
    """Sets the mode; where there is no other user to try it, it holds for this one too."""
    others = mode & 0o7
    path.chmod(mode if os.geteuid() == 0 else mode & ~0o700 | others << 6)


def use(tmp_path, cache, *ks):
    """What another user computes, and is told, who asks for so many eigenpairs."""
    words = {"folder": cache.root, "ks": ks, "user": OTHER}
    process = Process(tmp_path, exec, AS_ANOTHER_USER, words)
    assert process.end() == 0, process.errors
    solved, *warned = process.output.splitlines()
    return int(solved), warned


def content(cache):
    return {path.name: (path.stat().st_ino, path.read_bytes()) for path in cache.root.iterdir()}


def test_what_one_user_computed_another_one_reads(tmp_path, cache):
    (path,) = cache.root.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert use(tmp_path, cache, 3) == (0, [])


def test_users_may_share_a_folder_that_both_write(tmp_path, cache):
    limit(cache.root, 0o777)
    assert use(tmp_path, cache, 3, 4) == (1, [])
    assert use(tmp_path, cache, 4) == (0, [])
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache.root.iterdir()} == {0o644}
    partial_eigh(laplacian(torus(4, 5)), k=4, cache=cache)
    assert len(list(cache.root.iterdir())) == 2


def test_the_umask_opens_files_to_the_group(cache):
    old = os.umask(0o002)
    try:
        path = cache.save("k" * 64, partial_eigh(laplacian(torus(4, 5)), k=4))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


@pytest.mark.parametrize("folder", [0o755, 0o777])
def test_a_file_that_cannot_be_read_is_named_and_stays(tmp_path, cache, folder):
    (path,) = cache.root.iterdir()
    before = content(cache)
    limit(cache.root, folder)
    limit(path, 0o600)
    solved, (warning,) = use(tmp_path, cache, 3)
    assert solved == 1
    assert warning.startswith("CacheWarning")
    assert f"{path} cannot be read (Permission denied)" in warning
    assert f"chmod a+rX {path}" in warning
    path.chmod(0o644)
    assert content(cache) == before


def test_a_folder_that_cannot_be_written_costs_one_sentence(tmp_path, cache):
    before = content(cache)
    limit(cache.root, 0o755)
    solved, warned = use(tmp_path, cache, 3, 4, 5)
    assert solved == 2
    assert len(warned) == 2  # one a spectrum, the same: Python shows it once
    assert len(set(warned)) == 1
    assert f"could not be kept in {cache.root} (Permission denied)" in warned[0]
    assert content(cache) == before


def test_a_folder_that_cannot_be_entered_costs_one_sentence(tmp_path, cache):
    limit(cache.root, 0o700)
    solved, warned = use(tmp_path, cache, 3, 4)
    assert solved == 2
    assert len(set(warned)) == 1
    assert f"{cache.root} cannot be read (Permission denied)" in warned[0]
    cache.root.chmod(0o755)
    assert len(content(cache)) == 1


def test_a_damaged_file_in_another_users_folder_is_no_error(tmp_path, cache):
    (path,) = cache.root.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    limit(cache.root, 0o755)
    solved, warned = use(tmp_path, cache, 3)
    assert solved == 1
    assert "is damaged" in warned[0]
    assert "could not be kept" in warned[1]
