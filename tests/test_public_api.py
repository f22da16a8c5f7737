"""Everything that users may rely on stands in public_api.txt, name by name, with its signature."""

import difflib
import enum
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import nlsf

SNAPSHOT = Path(__file__).with_name("public_api.txt")
UPDATE = f"python tests/{Path(__file__).name}"


def packages():
    """Every module that says by ``__all__`` what it exports, and the two that are one file."""
    found = ["nlsf.errors", "nlsf.plotting"]
    for module in pkgutil.walk_packages(nlsf.__path__, "nlsf."):
        if module.ispkg and hasattr(importlib.import_module(module.name), "__all__"):
            found.append(module.name)
    return sorted(found)


def exported(package):
    module = importlib.import_module(package)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == package
    ]
    return sorted(getattr(module, "__all__", own))


class Written:
    """Shows itself as this text, without quotes."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def annotation(value):
    return Written(value) if isinstance(value, str) else value


def default(value):
    """Without addresses in memory."""
    if inspect.isroutine(value) or inspect.isclass(value):
        return Written(value.__qualname__)
    return Written(re.sub(r" object at 0x[0-9a-f]+", "", repr(value)))


def signature(value):
    """The arguments as they are written."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    arguments = [
        one.replace(
            annotation=annotation(one.annotation),
            default=one.default if one.default is one.empty else default(one.default),
        )
        for one in found.parameters.values()
    ]
    gives = annotation(found.return_annotation)
    return str(found.replace(parameters=arguments, return_annotation=gives))


def members(kind):
    """The public methods and properties that a class defines itself."""
    for name, value in sorted(vars(kind).items()):
        if name.startswith("_"):
            continue
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(plain):
            yield f"    .{name}{signature(plain)}"
        elif isinstance(value, property) or hasattr(value, "func"):
            yield f"    .{name}"


def described(name, value):
    if inspect.isclass(value):
        plain = issubclass(value, BaseException | enum.Enum)
        bases = ", ".join(base.__name__ for base in value.__bases__)
        head = f"  class {name}({bases})" if plain else f"  class {name}{signature(value)}"
        return [head, *members(value)]
    if inspect.isfunction(value):
        return [f"  {name}{signature(value)}"]
    if inspect.ismodule(value):
        return [f"  {name} (module)"]
    return [f"  {name}: {type(value).__name__}"]


def public_api():
    """The whole text."""
    lines, seen = [], set()
    for package in packages():
        module = importlib.import_module(package)
        own = []
        for name in exported(package):
            value = getattr(module, name)
            if (name, id(value)) not in seen:  # a package may show what is in one inside of it
                seen.add((name, id(value)))
                own += described(name, value)
        if own:
            lines += [package, *own, ""]
    return "\n".join(lines)


def test_the_public_interface_is_as_it_was():
    expected, found = SNAPSHOT.read_text(), public_api()
    difference = "\n".join(
        difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "before", "now", lineterm="", n=1
        )
    )
    assert found == expected, (
        f"The public interface changed:\n{difference}\n"
        f"If that is meant, run '{UPDATE}', look at the difference, and say it in CHANGELOG.md."
    )


def test_a_change_would_be_seen(monkeypatch):
    from nlsf import spectral

    def laplacian(x, lens, *, p=2.0): ...

    monkeypatch.setattr(spectral, "laplacian", laplacian)
    assert "\n  laplacian(x, lens, *, p=2.0)\n" in public_api()
    assert public_api() != SNAPSHOT.read_text()


def test_every_exported_name_is_documented():
    for package in packages():
        module = importlib.import_module(package)
        for name in exported(package):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                assert value.__doc__, f"{package}.{name}"


if __name__ == "__main__":
    SNAPSHOT.write_text(public_api())
    print(f"{SNAPSHOT} is as the code is.")
