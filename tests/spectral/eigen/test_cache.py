import os

import pytest
import torch

from cases import GRAPHS, OPERATORS
from nlsf.errors import CacheWarning
from nlsf.spectral import DyadicBands, Spectrum, SpectrumCache, laplacian, partial_eigh
from nlsf.spectral.eigen import eigensolve
from processes import Process

SHIFT = laplacian(GRAPHS["torus"])


def files(folder):
    return sorted(os.listdir(folder))


def same(a: Spectrum, b: Spectrum):
    for name in ("values", "vectors", "residuals"):
        assert getattr(a, name).equal(getattr(b, name))
    for name in ("far", "reach", "gap_tol", "trace", "nullity", "name", "order", "solver"):
        assert getattr(a, name) == getattr(b, name)


@pytest.fixture
def solves(monkeypatch):
    """Counts how often something is really computed."""
    calls = []
    real = eigensolve._solve
    monkeypatch.setattr(eigensolve, "_solve", lambda request: (calls.append(1), real(request))[1])
    return calls


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("graph", ["torus", "empty", "isolated nodes"])
def test_what_is_read_is_what_was_written(tmp_path, solves, operator, graph):
    shift = OPERATORS[operator](GRAPHS[graph])
    first = partial_eigh(shift, cache=tmp_path)
    second = partial_eigh(shift, cache=tmp_path)
    assert len(solves) == 1
    same(first, second)
    same(first, partial_eigh(shift))


def test_the_key_is_the_content(tmp_path, solves):
    partial_eigh(SHIFT, k=2, cache=tmp_path)
    partial_eigh(laplacian(GRAPHS["torus"]), k=2, cache=tmp_path)
    assert len(solves) == 1, "an equal graph built anew is the same graph"
    partial_eigh(SHIFT, k=3, cache=tmp_path)
    partial_eigh(SHIFT, bands=DyadicBands(), cache=tmp_path)
    partial_eigh(SHIFT, k=2, gap_tol=1e-7, cache=tmp_path)
    partial_eigh(laplacian(GRAPHS["torus"], normalization="sym"), k=2, cache=tmp_path)
    partial_eigh(laplacian(GRAPHS["ring"]), k=2, cache=tmp_path)
    assert len(solves) == len(files(tmp_path)) == 6


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:-8] + bytes(8),
        lambda data: data.replace(b'\\"name\\": \\"L\\"', b'\\"name\\": \\"M\\"'),
        lambda data: b"\x80\x04not a tensor file" * 10,
    ],
    ids=["truncated", "empty", "altered tensor", "altered field", "another format"],
)
def test_a_damaged_file_is_removed_and_computed_again(tmp_path, solves, damage):
    first = partial_eigh(SHIFT, k=3, cache=tmp_path)
    (name,) = files(tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    with pytest.warns(CacheWarning, match="damaged"):
        second = partial_eigh(SHIFT, k=3, cache=tmp_path)
    same(first, second)
    assert len(solves) == 2
    same(first, partial_eigh(SHIFT, k=3, cache=tmp_path))
    assert len(solves) == 2


def test_a_file_under_the_wrong_name_is_not_believed(tmp_path):
    cache = SpectrumCache(tmp_path)
    cache.save("a" * 64, partial_eigh(SHIFT))
    os.replace(cache.path("a" * 64), cache.path("b" * 64))
    with pytest.warns(CacheWarning, match="another spectrum"):
        assert cache.load("b" * 64) is None


def test_argument_then_variable_then_user_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NLSF_CACHE", str(tmp_path / "variable"))
    assert SpectrumCache(tmp_path / "argument").root == tmp_path / "argument"
    assert SpectrumCache().root == tmp_path / "variable"
    monkeypatch.delenv("NLSF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert "nlsf" in str(SpectrumCache().root)
    assert SpectrumCache.of(None) is SpectrumCache.of(False) is None


def test_a_folder_that_cannot_be_written_costs_a_warning_only(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(CacheWarning, match="NLSF_CACHE"):
        spectrum = partial_eigh(SHIFT, k=2, cache=tmp_path / "file")
    same(spectrum, partial_eigh(SHIFT, k=2))


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nlsf.spectral.eigen.cache.save_file", full)
    with pytest.warns(CacheWarning, match="No space left"):
        partial_eigh(SHIFT, k=2, cache=tmp_path)
    assert files(tmp_path) == []


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path):
    before = (f".{'a' * 16}-x1", ".tmpAb3dEf", f".{'a' * 48}-0123456789ab.tmp")
    old, new = [tmp_path / name for name in before], tmp_path / f".{'b' * 48}-0123456789ab.tmp"
    other = tmp_path / ".notes"
    for path in (*old, new, other):
        path.touch()
    for path in (*old, other):
        os.utime(path, (0, 0))
    partial_eigh(SHIFT, k=2, cache=tmp_path)
    assert not any(path.exists() for path in old)
    assert new.exists()  # it may be of a process that is writing
    assert other.exists()


WRITER = """
import warnings
warnings.simplefilter("error")
from nlsf.spectral import SpectrumCache, laplacian, partial_eigh
from nlsf.testing.graphs import torus
shift = laplacian(torus(12, 12))
cache = SpectrumCache(folder)
spectrum = partial_eigh(shift)
for _ in range(60):
    cache.save("k" * 64, spectrum)
    found = cache.load("k" * 64)
    assert found is not None and found.vectors.equal(spectrum.vectors)
"""


def test_two_processes_may_write_the_same_key(tmp_path):
    cache = tmp_path / "cache"
    words = {"folder": str(cache)}
    writers = [Process(tmp_path, exec, WRITER, words, name=name) for name in "ab"]
    for writer in writers:
        assert writer.end(120) == 0, writer.errors
    assert files(cache) == ["k" * 64 + ".safetensors"]


def test_tensors_are_independent_of_the_file(tmp_path):
    spectrum = partial_eigh(SHIFT, cache=tmp_path)
    again = partial_eigh(SHIFT, cache=tmp_path)
    (name,) = files(tmp_path)
    (tmp_path / name).write_bytes(b"")
    torch.testing.assert_close(again.vectors, spectrum.vectors)
