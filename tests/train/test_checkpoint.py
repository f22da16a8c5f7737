import json
import math

import pytest
import torch
from safetensors.torch import save_file

from nlsf.errors import DataError, FormatError
from nlsf.train.run.folder import load, save

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


def example():
    return {"w": torch.arange(6.0).view(2, 3), "rng": torch.get_rng_state()}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 2)], ids=str)
def test_every_dtype_comes_back(tmp_path, dtype, shape):
    tensor = (torch.randn(shape, dtype=torch.complex128) * 4).to(torch.complex128)
    tensor = tensor.to(dtype) if dtype.is_complex else tensor.real.to(dtype)
    save(tmp_path / "c", {"t": tensor}, {})
    back = load(tmp_path / "c")[0]["t"]
    assert back.dtype == dtype
    assert torch.equal(back, tensor)


def test_views_and_shared_memory_come_back_as_values(tmp_path):
    base = torch.arange(12.0).view(3, 4)
    tensors = {
        "base": base,
        "same": base,
        "transposed": base.T,
        "row": base[1],
        "expanded": base[:1].expand(5, 4),
        "parameter": torch.nn.Parameter(base[:2]),
        "conjugate": torch.tensor([1 + 2j]).conj(),
    }
    save(tmp_path / "c", tensors, {})
    back, _ = load(tmp_path / "c")
    assert set(back) == set(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(back[name], tensor.detach()), name
    back["base"].zero_()
    assert not torch.equal(back["same"], back["base"])


def test_a_generator_continues_where_it_was(tmp_path):
    generator = torch.Generator().manual_seed(3)
    torch.rand(7, generator=generator)
    save(tmp_path / "c", {"rng": generator.get_state()}, {})
    expected = torch.rand(5, generator=generator)
    other = torch.Generator()
    other.set_state(load(tmp_path / "c")[0]["rng"])
    assert torch.equal(torch.rand(5, generator=other), expected)


def test_meta_comes_back(tmp_path):
    meta = {"epoch": 3, "best": [-math.inf, 0.1 + 0.2], "name": "λ", "none": None}
    save(tmp_path / "c", {}, meta)
    assert load(tmp_path / "c") == ({}, meta)
    save(tmp_path / "c", {}, {"x": math.nan})
    assert math.isnan(load(tmp_path / "c")[1]["x"])


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(tmp_path / name, {k: v.clone() for k, v in example().items()}, {"x": 1, "y": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_loaded_checkpoint_outlives_its_file(tmp_path):
    save(tmp_path / "c", example(), {})
    back, _ = load(tmp_path / "c")
    (tmp_path / "c").write_bytes(b"")
    assert torch.equal(back["w"], example()["w"])


def test_meta_that_json_cannot_hold_keeps_the_old_file(tmp_path):
    save(tmp_path / "c", example(), {"epoch": 1})
    with pytest.raises(TypeError):
        save(tmp_path / "c", example(), {"epoch": object()})
    assert load(tmp_path / "c")[1] == {"epoch": 1}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"no checkpoint .*/c\.safetensors"):
        load(tmp_path / "c.safetensors")


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 300, -1])
def test_truncated_files_are_refused(tmp_path, keep):
    path = tmp_path / "c"
    save(path, example(), {"epoch": 1})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FormatError, match="is damaged") as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "c"
    save(path, {"w": torch.arange(4.0)}, {"epoch": 1})
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0x11
        path.write_bytes(damaged)
        # A byte of padding or of a name in the header may change without changing the content.
        try:
            tensors, meta = load(path)
        except FormatError:
            continue
        assert meta == {"epoch": 1}
        assert torch.equal(tensors["w"], torch.arange(4.0))


@pytest.mark.parametrize("content", [b"PK\x03\x04" * 50, b"\x80\x04\x95" * 50, b"epoch = 1\n" * 9])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(FormatError, match="damaged or not a checkpoint"):
        load(tmp_path / "c")


def test_other_safetensors_files_are_refused(tmp_path):
    save_file({"w": torch.zeros(2)}, tmp_path / "c")
    with pytest.raises(FormatError, match="not a checkpoint of nlsf"):
        load(tmp_path / "c")


@pytest.mark.parametrize("header", ["[", "[]", "{}", "3", "[" * 100_000, '{"format": 1}'])
def test_strange_headers_are_refused(tmp_path, header):
    save_file({"w": torch.zeros(2)}, tmp_path / "c", metadata={"nlsf": header})
    with pytest.raises(FormatError):
        load(tmp_path / "c")


def test_another_version_is_named(tmp_path):
    header = json.dumps({"format": "nlsf-checkpoint 2"})
    save_file({"w": torch.zeros(2)}, tmp_path / "c", metadata={"nlsf": header})
    with pytest.raises(FormatError, match="'nlsf-checkpoint 2', but this version") as caught:
        load(tmp_path / "c")
    assert str(tmp_path / "c") in str(caught.value)
