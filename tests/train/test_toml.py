import itertools
import tomllib
from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np
import pytest

from nlsf.errors import ConfigError
from nlsf.nn import Start
from nlsf.nn.models import GraphClassifierConfig, NodeClassifierConfig
from nlsf.spectral import bands
from nlsf.train.settings.toml import (
    BANDS,
    from_table,
    merged,
    parse_setting,
    parse_toml,
    read_toml,
    to_table,
    write_toml,
)

FAMILIES = {
    "index": bands.IndexBands(3),
    "dyadic": bands.DyadicBands(r=0.25, S=7, K=4),
    "uniform": bands.UniformBands(S=2),
    "affine-geometric": bands.AffineGeometricBands(r=1.5, S=4),
    "interval": bands.IntervalBands(((0.0, 0.5), (0.5, 1.0))),
    "quantile": bands.QuantileBands(S=3, of="energy"),
    "atom": bands.AtomBands(bands.DyadicBands(S=3), atoms=4, share=0.1),
    "polynomial": bands.PolynomialBands(bands.UniformBands(S=5, K=3), order=12, pairs=4),
}
CONFIGS = (NodeClassifierConfig, GraphClassifierConfig)


def read_back(table):
    return tomllib.loads(write_toml(table))


def test_every_family_has_a_case():
    assert FAMILIES.keys() == BANDS.keys()
    assert {name: type(one) for name, one in FAMILIES.items()} == BANDS


@pytest.mark.parametrize(
    ("config", "index", "value"),
    [
        (config, *pair)
        for config in CONFIGS
        for pair in itertools.chain(
            ((name, "dyadic") for name in FAMILIES), (("index", name) for name in FAMILIES)
        )
    ],
)
def test_a_model_config_comes_back_from_toml(config, index, value):
    settings = config(
        5, 3, index_bands=FAMILIES[index], value_bands=FAMILIES[value], start=Start("heat", t=0.1)
    )
    table = to_table(settings)
    assert list(table) == [f.name for f in fields(config)]
    assert from_table(config, table) == settings
    assert from_table(config, read_back(table)) == settings
    assert table["value_bands"]["kind"] == value


VALUES = [
    0,
    -3,
    2**62,
    1.0,
    -0.1,
    1e-300,
    1e22,
    1 / 3,
    float("inf"),
    True,
    False,
    "",
    "plain",
    "quotes \" and ' and \\",
    "two\nlines\r\n\ttab",
    "λ, Erdős, 图, 🙂",
    "\x00 \x1f \x7f \u2028",
    "none of it",
    [],
    [1, 2],
    [[0.5, 1.0], ["a", 'b"']],
    [{"kind": "atom", "base": {"kind": "uniform", "S": 20}}, {"a b": [{"x": 0.5}]}, {}],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_with_their_type(value):
    back = read_back({"key": value, "inner": {"key": value}})
    assert back == {"key": value, "inner": {"key": value}}
    assert type(back["key"]) is type(value)


@pytest.mark.parametrize("key", ["a", "a-b_9", "a b", "a.b", "", "-", "λ", "🙂", 'x"y', "a\nb"])
def test_keys_come_back(key):
    table = {key: 1, "inner": {key: {key: 2}}}
    assert read_back(table) == table


def test_none_is_a_word_and_numpy_floats_are_floats():
    assert write_toml({"a": None, "b": np.float64(0.5)}) == 'a = "none"\nb = 0.5\n'


def test_empty_tables_and_order_stay():
    table = {"z": 1, "b": {}, "a": {"y": {"x": 1}, "w": 2}}
    back = read_back(table)
    assert back == table
    assert list(back) == ["z", "b", "a"]


@dataclass(frozen=True)
class Inner:
    t: float = 1.0


@dataclass(frozen=True)
class Settings:
    whole: int = 1
    number: float = 1.0
    maybe: float | None = None
    yes: bool = True
    text: str = ""
    choice: Literal["left", "right"] = "left"
    several: tuple[int, ...] = ()
    pairs: tuple[tuple[float, float], ...] = ()
    inner: Inner = field(default_factory=Inner)
    family: bands.Bands = field(default_factory=bands.DyadicBands)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("whole", 1.0, "whole must be a whole number, not 1.0"),
        ("whole", True, "whole must be a whole number, not True"),
        ("whole", "1", "whole must be a whole number"),
        ("whole", "none", "whole must be a whole number"),
        ("number", "x", "number must be a number, not 'x'"),
        ("number", False, "number must be a number"),
        ("number", float("nan"), "number must be a number, not nan"),
        ("number", [1.0], "number must be a number"),
        ("maybe", "non", "maybe must be a number, not 'non'"),
        ("maybe", True, "maybe must be a number"),
        ("yes", 1, "yes must be true or false, not 1"),
        ("yes", "true", "yes must be true or false"),
        ("text", 1, "text must be a text, not 1"),
        ("choice", "up", "choice must be one of left, right, not 'up'"),
        ("choice", ["left"], "choice must be one of left, right"),
        ("several", 3, "several must be a list, not 3"),
        ("several", "12", "several must be a list"),
        ("several", [1, "2"], r"several\[1\] must be a whole number, not '2'"),
        ("pairs", [[0.0, 1.0], [0.0, "x"]], r"pairs\[1\]\[1\] must be a number"),
        ("inner", 3, "inner must be a table, not 3"),
        ("inner", {"t": "x"}, "inner.t must be a number, not 'x'"),
        ("inner", {"u": 1}, r"There is no key in \[inner\] 'u'"),
        ("family", 3, "family must be a table with a kind"),
        ("family", {"S": 3}, "family must be a table with a kind"),
        ("family", {"kind": "diadic"}, "'diadic'. Did you mean 'dyadic'?"),
        ("family", {"kind": ["dyadic"]}, "There is no kind of bands for family"),
        ("family", {"kind": "dyadic", "S": 2.5}, "family.S must be a whole number, not 2.5"),
        ("family", {"kind": "dyadic", "s": 2}, r"There is no key in \[family\] 's'"),
        ("family", {"kind": "atom", "base": {"kind": "x"}}, "family.base"),
        ("hole", 1, "There is no key 'hole'. Did you mean 'whole'?"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_key(key, value, says):
    with pytest.raises(ConfigError, match=says):
        from_table(Settings, {key: value})


def test_the_table_is_named_too():
    with pytest.raises(ConfigError, match=r"key in \[model\] 'hole'. Did you mean 'whole'"):
        from_table(Settings, {"hole": 1}, "model")
    with pytest.raises(ConfigError, match=r"model.inner.t must be a number"):
        from_table(Settings, {"inner": {"t": "x"}}, "model")


def test_what_may_be_read_generously():
    read = from_table(Settings, {"number": 2, "maybe": 3, "several": [1, 2], "inner": {"t": 4}})
    assert read == Settings(number=2.0, maybe=3.0, several=(1, 2), inner=Inner(4.0))
    assert type(read.number) is type(read.maybe) is type(read.inner.t) is float
    assert from_table(Settings, {"maybe": "none"}).maybe is None


def test_merged_keeps_what_is_not_named():
    base = {"a": 1, "t": {"x": 1, "y": {"z": 1}}}
    assert merged(base, {}) == base
    assert merged({}, base) == base
    assert merged(base, base) == base
    assert merged(base, {"t": {"y": {"w": 2}}}) == {"a": 1, "t": {"x": 1, "y": {"z": 1, "w": 2}}}
    assert merged(base, {"t": 3}) == {"a": 1, "t": 3}
    assert merged(base, {"a": {"b": 1}})["a"] == {"b": 1}
    assert base == {"a": 1, "t": {"x": 1, "y": {"z": 1}}}, "it is not changed"


def test_merging_is_associative():
    one, two, three = {"t": {"x": 1, "y": 1}}, {"t": {"y": 2}, "b": 2}, {"t": {"z": 3}, "b": 3}
    assert merged(merged(one, two), three) == merged(one, merged(two, three))


def test_a_new_kind_starts_afresh():
    base = {"bands": {"kind": "dyadic", "r": 0.5, "S": 6}}
    assert merged(base, {"bands": {"kind": "uniform"}}) == {"bands": {"kind": "uniform"}}
    same = merged(base, {"bands": {"kind": "dyadic", "S": 3}})
    assert same == {"bands": {"kind": "dyadic", "r": 0.5, "S": 3}}
    assert merged(base, {"bands": {"S": 3}}) == same


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("lr=0.1", ["lr"], 0.1),
        ("training.lr = 1e-3", ["training", "lr"], 1e-3),
        ("model.start.name=ppr", ["model", "start", "name"], "ppr"),
        ("a=3", ["a"], 3),
        ("a=true", ["a"], True),
        ("a=True", ["a"], "True"),
        ("a=none", ["a"], "none"),
        ("a=[1, 2]", ["a"], [1, 2]),
        ('a="3"', ["a"], "3"),
        ('a={kind="uniform", S=3}', ["a"], {"kind": "uniform", "S": 3}),
        ("a=60-20-20", ["a"], "60-20-20"),
        ("a=b=c", ["a"], "b=c"),
        ("a=", ["a"], ""),
        ("a=1\nb=2", ["a"], "1\nb=2"),
    ],
)
def test_settings_of_the_command_line(text, path, value):
    assert parse_setting(text) == (path, value)
    assert type(parse_setting(text)[1]) is type(value)


@pytest.mark.parametrize("text", ["", "lr", "=3", " =3"])
def test_a_setting_needs_key_and_value(text):
    with pytest.raises(ConfigError, match=r"--set expects key=value"):
        parse_setting(text)


def test_what_is_not_toml_is_named(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("seeds = 3\nepochs == 4\n")
    with pytest.raises(ConfigError, match=r"run.toml is not a TOML file: .*line 2"):
        read_toml(path)
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"run.toml is not a TOML file: it is not text in UTF-8"):
        read_toml(path)
    with pytest.raises(ConfigError, match=r"not a TOML file"):
        parse_toml("a = " + "[" * 10_000, path)
    path.write_text("seeds = 3\n")
    assert read_toml(path) == {"seeds": 3}
