"""What a memory keeps, and that it never keeps more than it may."""

import dataclasses
import gc
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from types import FunctionType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import Linear, Parameter

from nlsf.errors import ConfigError
from nlsf.spectral import laplacian, partial_eigh
from nlsf.store.memory import Memory, forget_all, memory_limit, storages_of
from nlsf.testing.graphs import torus

KB = 1000


def array(size):
    return np.zeros(size, dtype=np.uint8)


def bytes_of(value):
    """Of its arrays, without what Python's own objects take."""
    return sum(size for place, size in storages_of(value).items() if place)


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    forget_all()
    yield
    forget_all()


def test_a_result_is_computed_once():
    memory, computed = Memory(), []
    for _ in range(2):
        for key in ("a", None, (1, b"x")):
            assert memory.get(key, lambda key=key: computed.append(key)) is None
    assert computed == ["a", None, (1, b"x")]
    assert len(memory) == 3
    assert "a" in memory
    memory.clear()
    assert len(memory) == memory.nbytes == 0
    assert "a" not in memory


def test_an_error_is_not_kept():
    memory = Memory()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            memory.get("a", lambda: 1 / 0)
    assert memory.get("a", lambda: 1) == 1


def test_what_was_not_asked_for_longest_is_forgotten_first():
    memory = Memory(limit=25 * KB)
    for key in "ababa":
        memory.get(key, lambda: array(10 * KB))
    memory.get("c", lambda: array(10 * KB))
    assert [key in memory for key in "abc"] == [True, False, True]


LIMIT = 55 * KB
SIZES = st.integers(0, 9).map(lambda number: (number, 10 * KB * (number % 8)))


@given(st.lists(SIZES, max_size=60))
def test_the_limit_holds_after_any_sequence(calls):
    """Against a plain account: the oldest go, and one that is larger than the limit stays."""
    memory, expected = Memory(limit=LIMIT), OrderedDict()
    for key, size in calls:
        found = memory.get(key, lambda size=size: array(size))
        assert len(found) == size
        new = key not in expected
        expected[key] = size
        expected.move_to_end(key)
        if new:
            large = next((k for k in reversed(expected) if expected[k] > LIMIT), None)
            for old in list(expected):
                if sum(n for k, n in expected.items() if k != large) <= LIMIT:
                    break
                if old != large:
                    del expected[old]
        assert [key for key in range(10) if key in memory] == sorted(expected)
        assert key in memory
        largest = max(expected.values())
        assert memory.nbytes <= LIMIT + (largest + KB if largest > LIMIT else 0)
        assert memory._shelf._bytes == memory.nbytes


@given(st.lists(st.tuples(st.integers(0, 2), SIZES, st.booleans()), max_size=40))
def test_memories_share_one_limit(calls):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLSF_MEMORY", str(LIMIT))
        memories = [Memory() for _ in range(3)]
        for which, (key, size), forget in calls:
            memories[which].get(key, lambda size=size: array(size))
            if forget:
                memories[which].clear()
            kept = sum(memory.nbytes for memory in memories)
            assert kept <= LIMIT + 70 * KB + KB
            assert kept == memories[0]._shelf._bytes
        forget_all()
        assert memories[0]._shelf._bytes == 0


def test_an_own_limit_is_apart(monkeypatch):
    monkeypatch.setenv("NLSF_MEMORY", "15KB")
    shared, own = Memory(), Memory(limit=15 * KB)
    for memory in (shared, own):
        memory.get("a", lambda: array(10 * KB))
    assert "a" in shared
    assert "a" in own


def test_a_result_larger_than_the_limit_is_kept_beside_the_others():
    memory = Memory(limit=20 * KB)
    memory.get("large", lambda: array(1000 * KB))
    for key in range(10):
        memory.get(key, lambda: array(8 * KB))
    assert [key for key in range(10) if key in memory] == [8, 9]
    assert "large" in memory
    memory.get("larger", lambda: array(2000 * KB))
    assert "larger" in memory
    assert "large" not in memory


def test_arrays_that_results_share_count_once():
    memory, shared = Memory(limit=25 * KB), array(20 * KB)
    for key in range(10):
        memory.get(key, lambda: [shared, shared[5:]])
    assert len(memory) == 10
    assert memory.nbytes < 25 * KB
    memory.get("other", lambda: array(10 * KB))
    assert len(memory) == 1  # the shared array is free only when nobody holds it


def test_what_results_grow_by_counts():
    memory = Memory(limit=25 * KB)
    first = memory.get("a", dict)
    first["later"] = array(20 * KB)
    memory.get("b", lambda: array(10 * KB))
    assert "a" not in memory
    second = memory.get("c", dict)
    memory.get("d", lambda: array(5 * KB))
    memory.get("c", dict)  # handed out again: it may grow again
    second["later"] = array(20 * KB)
    memory.get("e", lambda: array(10 * KB))
    assert [key in memory for key in "bcde"] == [False, False, False, True]


def test_a_memory_that_is_gone_keeps_nothing(monkeypatch):
    monkeypatch.setenv("NLSF_MEMORY", "1MB")
    memory, other = Memory(), Memory()
    memory.get("a", lambda: array(500 * KB))
    shelf = memory._shelf
    del memory
    gc.collect()
    other.get("b", lambda: array(KB))
    assert shelf._bytes == other.nbytes


def test_all_memories_forget():
    memories = [Memory(), Memory(), Memory(limit=KB)]
    for memory in memories:
        memory.get("a", list)
    forget_all()
    assert [len(memory) for memory in memories] == [0, 0, 0]


def test_threads_that_ask_for_one_key_compute_it_once():
    memory, computed, found = Memory(), [], []

    def compute():
        time.sleep(0.02)
        computed.append(1)
        return object()

    def work():
        found.append(memory.get("a", compute))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 1
    assert len(set(map(id, found))) == 1


def test_a_result_may_need_others_of_the_same_memory():
    memory = Memory()

    def factorial(n):
        return memory.get(n, lambda: n * factorial(n - 1) if n else 1)

    assert factorial(20) == 2432902008176640000
    assert len(memory) == 21


def test_many_threads_leave_the_account_right():
    memory, failed = Memory(limit=40 * KB), []

    def work(seed):
        draw = np.random.default_rng(seed)
        try:
            for _ in range(400):
                key = int(draw.integers(12))
                assert len(memory.get(key, lambda key=key: array(KB * key))) == KB * key
                if draw.integers(50) == 0:
                    memory.clear()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert memory.nbytes == memory._shelf._bytes <= 40 * KB
    assert not memory._turns


@dataclasses.dataclass(slots=True)
class Slotted:
    x: object
    y: object = None


@dataclasses.dataclass(frozen=True)
class Plain:
    x: object


class Odd:
    """Answers to any name."""

    def __getattr__(self, name):
        raise RuntimeError(name)


def compressed(layout):
    values = torch.ones(100, dtype=torch.float64)
    return torch.sparse_compressed_tensor(
        ends, ends[:-1], values, layout=layout, check_invariants=False
    )


x = torch.zeros(1000, dtype=torch.float64)
ends = torch.arange(101)
dense = torch.eye(100, dtype=torch.float64)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (x, 8 * KB),
        (x[:10], 8 * KB),  # a view holds all
        ([x, x[5:], {"again": (x.view(10, 100),)}], 8 * KB),
        ([x, x.numpy()], 8 * KB),
        ([x, x.clone()], 16 * KB),
        (x.new_zeros(1).expand(1000), 8),
        (torch.empty(0), 0),
        (Parameter(x), 8 * KB),
        (Linear(9, 10, dtype=torch.float64), 800),
        (dense.to_sparse(), 100 * (16 + 8)),
        (lambda: compressed(torch.sparse_csr), (101 + 100) * 8),
        (lambda: compressed(torch.sparse_csc), (101 + 100) * 8),
        (np.zeros((10, 100)), 8 * KB),
        (np.zeros((10, 100))[2:, ::2], 8 * KB),
        (np.float32(3), 4),
        (Slotted(x, Plain(x.clone())), 16 * KB),
        (Plain({"a": [Slotted(x)]}), 8 * KB),
        ({(1, 2): {x}, "b": frozenset([x])}, 8 * KB),
        (OrderedDict(a=x), 8 * KB),
        ((None, "text", 3, 2.5, True, len, KB, torch.float32, np, Odd()), 0),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_the_size_of_a_value_is_that_of_its_storages(value, size):
    assert bytes_of(value() if isinstance(value, FunctionType) else value) == size


def test_values_may_hold_themselves():
    value = Plain([x])
    value.x.append(value)
    assert bytes_of(value) == 8 * KB


def test_the_size_of_texts_and_containers_is_not_forgotten():
    assert storages_of("x" * KB)[0] > KB
    assert storages_of(list(range(KB)))[0] > 8 * KB


def test_the_size_of_a_spectrum():
    shift = laplacian(torus(6, 7))
    spectrum = partial_eigh(shift)
    tensors = (spectrum.values, spectrum.vectors, spectrum.residuals)
    assert bytes_of(spectrum) >= sum(tensor.nbytes for tensor in tensors)
    assert bytes_of([spectrum, spectrum]) == bytes_of(spectrum)
    matrix = shift.matrix
    assert bytes_of(shift) >= matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("500MB", 500 * 10**6), ("2 gb", 2 * 10**9), ("1.5K", 1500), ("0", 0)],
)
def test_the_variable_says_how_much(monkeypatch, text, size):
    monkeypatch.setenv("NLSF_MEMORY", text)
    assert memory_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "2 XB", "1e9", "nan", "9" * 400])
def test_another_variable_is_refused(monkeypatch, text):
    monkeypatch.setenv("NLSF_MEMORY", text)
    with pytest.raises(ConfigError, match="NLSF_MEMORY must be a number of bytes"):
        memory_limit()


def test_without_the_variable_it_is_a_share_of_the_machine(monkeypatch):
    monkeypatch.delenv("NLSF_MEMORY", raising=False)
    assert 256 << 20 <= memory_limit() <= 4 << 30
    with pytest.raises(ConfigError, match="from 0 on"):
        Memory(limit=-1)


def test_it_needs_no_tensor_library():
    program = (
        "import sys, nlsf.store.memory as m\n"
        "assert m.Memory().get(1, lambda: [1, 2]) == [1, 2]\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
