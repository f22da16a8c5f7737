"""Every law of a file of tests, over one thing more: `keep_laws`."""

import inspect

import pytest


def keep_laws(module, name, value, place, but=(), **fixtures):
    """Runs each test of a file that is parametrised by an argument, with a new value for it.

    The other arguments take the values that they have in the file.

    Args:
        module: the file, imported.
        name: the argument.
        value: what it is this time.
        place: an empty folder, for tests that write.
        but: names of tests that are about something else.
        fixtures: those of the file that are asked for, each a function of an empty folder.

    Returns:
        The names of the tests.
    """
    ran = {}
    for title, test in vars(module).items():
        marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
        if title in but or not any(name in names(mark) for mark in marks):
            continue
        cases = [{}]
        for mark in marks:
            cases = [{**case, **row} for case in cases for row in rows(mark, name, value)]
        for number, case in enumerate(cases):
            own = place / f"{title}-{number}"
            own.mkdir(parents=True)
            run(test, case, {"tmp_path": lambda own: own, **fixtures}, own)
        ran[title] = len(cases)
    assert ran, f"no test of {module.__name__} has the argument {name}"
    return ran


def names(mark):
    """The arguments that a mark gives."""
    given = mark.args[0]
    return [one.strip() for one in given.split(",")] if isinstance(given, str) else list(given)


def rows(mark, name, value):
    """The cases of a mark with this value for this argument; each of what is left once."""
    seen = []
    for row in mark.args[1]:
        values = row.values if hasattr(row, "marks") else row
        if len(names(mark)) == 1 and not hasattr(row, "marks"):
            values = (row,)
        case = dict(zip(names(mark), values, strict=True))
        if name in case:
            case[name] = value
        if repr(case) not in seen:
            seen.append(repr(case))
            yield case


def run(test, case, fixtures, folder):
    """One test, with what else it asks for."""
    with pytest.MonkeyPatch.context() as patch:
        fixtures = {**fixtures, "monkeypatch": lambda folder: patch}
        wanted = set(inspect.signature(test).parameters) - set(case)
        try:
            test(**case, **{fixture: fixtures[fixture](folder) for fixture in wanted})
        except pytest.skip.Exception:
            pass
        except Exception as error:
            error.add_note(f"in {test.__name__} with {case}")
            raise
