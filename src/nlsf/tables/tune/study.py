"""Studies, new or gone on with, in a file or a database: `kept_in`, `open_study`, `load_study`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nlsf.errors import ConfigError, DataError, FormatError
from nlsf.tables.tune.keeper import SPEC, Journal, Keeper
from nlsf.tables.tune.postgres import Postgres

if TYPE_CHECKING:
    from optuna import Study


def open_keeper(storage: str | Path, *, new: bool = True) -> Keeper:
    """The storage of a path or a URL.

    Args:
        storage: a journal file, or ``postgresql://USER@HOST/DATABASE``.
        new: whether a file that is not there yet is made.
    """
    optuna = import_optuna()
    text = str(storage)
    if "://" not in text:
        path = Path(storage)
        if not new and not path.is_file():
            raise DataError(f"There is no journal of trials {path}.")
        return Journal(path, optuna)
    scheme = text.split("://")[0]
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigError(
            "The storage must be a path, or postgresql://USER:PASSWORD@HOST/DATABASE, "
            f"not a URL that begins with {scheme}://."
        )
    return Postgres(text, optuna)


def open_study(
    keeper: Keeper, name: str, spec: Mapping[str, Any], *, maximize: bool, first: Mapping[str, Any]
) -> Study:
    """A study, new or gone on with; call it while `Keeper.alone`.

    Args:
        keeper: where it is kept.
        name: its name.
        spec: what is tuned, in JSON values.
        maximize: whether larger values are better.
        first: parameters of the first trial.

    Raises:
        ConfigError: a study of this name tunes something else.
    """
    import optuna

    known = [one.study_name for one in optuna.get_all_study_summaries(keeper.storage, False)]
    study = optuna.create_study(
        storage=keeper.storage,
        study_name=name,
        direction="maximize" if maximize else "minimize",
        load_if_exists=True,
    )
    # A worker that was killed in here left a study without its spec or its first trial.
    if name not in known or SPEC not in study.user_attrs:
        study.set_user_attr(SPEC, dict(spec))
    kept = study.user_attrs[SPEC]
    if other := [key for key in {**kept, **spec} if _text(kept.get(key)) != _text(spec.get(key))]:
        raise ConfigError(
            f"The study {name!r} in {keeper.label} was started with another {' and '.join(other)}: "
            "choose another study name or another storage."
        )
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(dict(first))
    return study


def load_study(keeper: Keeper, name: str) -> Study:
    """A study that exists."""
    import optuna

    known = [one.study_name for one in optuna.get_all_study_summaries(keeper.storage, False)]
    if name not in known:
        there = ", ".join(repr(one) for one in sorted(known)) or "none"
        raise ConfigError(f"There is no study {name!r} in {keeper.label}; there are: {there}.")
    study = optuna.load_study(study_name=name, storage=keeper.storage)
    if SPEC not in study.user_attrs:
        raise FormatError(f"The study {name!r} in {keeper.label} was not made by nlsf.")
    return study


def import_optuna() -> Any:
    """The package, quiet.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("Tuning needs Optuna: pip install 'nlsf[tune]'.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@contextmanager
def kept_in(storage: str | Path, *, new: bool = True) -> Iterator[Keeper]:
    """`open_keeper` for a while; a storage that fails meanwhile is one sentence."""
    keeper = open_keeper(storage, new=new)
    from optuna.exceptions import StorageInternalError

    try:
        yield keeper
    except StorageInternalError as error:
        raise ConfigError(
            f"{keeper.label} could not be read or written: go on when it is there again."
        ) from error
    finally:
        keeper.close()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
