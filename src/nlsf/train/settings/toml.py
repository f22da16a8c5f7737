"""Settings as tables: dataclasses from TOML and back, with no key misread in silence."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tomllib
import types
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from nlsf.errors import ConfigError, unknown_name
from nlsf.spectral import bands as families
from nlsf.spectral.bands import Bands

T = TypeVar("T")
Table = dict[str, Any]


def kind_of(family: type[Bands]) -> str:
    """The ``kind`` of a family's table: ``"affine-geometric"`` for ``AffineGeometricBands``."""
    words = re.findall("[A-Z][a-z0-9]*", family.__name__.removesuffix("Bands"))
    return "-".join(words).lower()


BANDS: dict[str, type[Bands]] = {
    kind_of(family): family
    for family in (getattr(families, name) for name in families.__all__)
    if isinstance(family, type) and family is not Bands
}
"""The families of bands, by the ``kind`` of their table."""


def read_toml(path: Path) -> Table:
    """The tables of a TOML file."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: it is not text in UTF-8.") from error


def parse_toml(text: str, path: Path) -> Table:
    """The tables of a TOML text; ``path`` is where it was read."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}.") from error


def write_toml(table: Mapping[str, Any]) -> str:
    """The text of a TOML file; ``None`` is written as the string "none".

    Tables inside lists are written inline: ``bands = [{kind = "index", J = 4}]``.
    """
    lines = _lines(table, "")
    return "\n".join(lines).strip() + "\n"


def from_table(cls: type[T], table: Mapping[str, Any], where: str = "") -> T:
    """A dataclass from a table; unknown keys and wrong types are errors that name the key.

    Args:
        cls: the dataclass.
        table: its fields; what is left out has its default.
        where: the table's own name, for messages.
    """
    hints = _hints(cls)  # type: ignore[arg-type]
    known = [f.name for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]
    values = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(unknown_name(f"key in [{where}]" if where else "key", key, known))
        values[key] = _convert(hints[key], value, f"{where}.{key}" if where else key)
    return cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields; Python compiles every one of them anew."""
    return get_type_hints(cls, include_extras=True)


def to_table(settings: Any) -> Table:
    """The table of a dataclass, all fields; the inverse of `from_table`."""
    table: Table = {}
    if isinstance(settings, Bands):
        table["kind"] = next(name for name, family in BANDS.items() if type(settings) is family)
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = to_table(value)
        table[field.name] = value
    return table


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Table:
    """The tables of ``base`` with those of ``change`` on top; a new ``kind`` starts afresh."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            new_kind = "kind" in value and value["kind"] != old.get("kind")
            result[key] = dict(value) if new_kind else merged(old, value)
        else:
            result[key] = value
    return result


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of nested tables as ``a.b.c``, with their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def parse_setting(text: str) -> tuple[list[str], Any]:
    """A ``key=value`` of the command line: the parts of its key, and a TOML value or a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set expects key=value, as in training.lr=0.01, not {text!r}.")
    try:
        read = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        read = {}
    # A line end in the value could begin keys of its own.
    parsed = read["value"] if len(read) == 1 else value.strip()
    return key.strip().split("."), parsed


def _convert(hint: Any, value: Any, key: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Bands):
        return _bands(value, key)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key} must be a table, not {value!r}.")
        return from_table(hint, value, key)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, value, key)
    if origin is Annotated:  # names of a registry, which grows
        arguments = tuple(hint.__metadata__[0])
    if origin in (Literal, Annotated):
        if value not in arguments:
            raise ConfigError(
                f"{key} must be one of {', '.join(map(str, arguments))}, not {value!r}."
            )
        return value
    if origin is dict:  # of any content
        if not isinstance(value, Mapping):
            raise ConfigError(f"{key} must be a table, not {value!r}.")
        return dict(value)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{key} must be a list, not {value!r}.")
        return tuple(_convert(arguments[0], item, f"{key}[{i}]") for i, item in enumerate(value))
    return _scalar(hint, value, key)


def _convert_union(arguments: tuple[Any, ...], value: Any, key: str) -> Any:
    if type(None) in arguments and (value is None or value == "none"):
        return None
    rest = [a for a in arguments if a is not type(None)]
    for one in rest[:-1]:
        try:
            return _convert(one, value, key)
        except ConfigError:
            continue
    return _convert(rest[-1], value, key)


_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _scalar(hint: type, value: Any, key: str) -> Any:
    fits = isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(value), True
    if not fits or (hint is float and math.isnan(value)):
        raise ConfigError(f"{key} must be {_NAMES.get(hint, hint.__name__)}, not {value!r}.")
    return value


def _bands(value: Any, key: str) -> Bands:
    if not isinstance(value, Mapping) or "kind" not in value:
        raise ConfigError(
            f"{key} must be a table with a kind, as in "
            f'{{kind = "dyadic", r = 0.5, S = 6}}, not {value!r}.'
        )
    kind = str(value["kind"])
    if kind not in BANDS:
        raise ConfigError(unknown_name(f"kind of bands for {key}", kind, BANDS))
    return from_table(BANDS[kind], {k: v for k, v in value.items() if k != "kind"}, key)


def _lines(table: Mapping[str, Any], name: str) -> list[str]:
    """The lines of a table: its values first, then the tables inside."""
    inner = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    lines = [f"{_key(k)} = {_value(v)}" for k, v in table.items() if k not in inner]
    if name and (lines or not inner):
        lines = ["", f"[{name}]", *lines]
    for key, value in inner.items():
        lines += _lines(value, f"{name}.{_key(key)}" if name else _key(key))
    return lines


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
    return key if bare else _text(key)


def _value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(float(value))
        return text if any(c in text for c in ".einfa") else f"{text}.0"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())}}}"
    return _text(str(value))


def _text(value: str) -> str:
    """A basic string of TOML: that of JSON, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
