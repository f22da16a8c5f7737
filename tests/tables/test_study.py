import multiprocessing
import time

import pytest

from nlsf.errors import ConfigError, DataError, FormatError
from nlsf.tables.tune.keeper import (
    ATTEMPT,
    WORKER,
    Journal,
    import_optuna,
    keeper_for,
    open_keeper,
)
from nlsf.tables.tune.trials import load_study, open_study, read_trials

SPEC = {"space": {"training.lr": [0.1]}, "metric": "accuracy", "default": {"training.lr": 0.1}}


def opened(path, spec=SPEC):
    keeper = open_keeper(path)
    with keeper.alone():
        study = open_study(keeper, "s", spec, maximize=True, first={"training.lr": 0})
    return keeper, study


def test_a_study_is_opened_twice_but_begins_once(tmp_path):
    opened(tmp_path / "j")
    _, study = opened(tmp_path / "j")
    assert [trial.state.name for trial in study.trials] == ["WAITING"]


def test_two_studies_live_in_one_storage(tmp_path):
    keeper, _ = opened(tmp_path / "j")
    with keeper.alone():
        open_study(keeper, "t", {**SPEC, "metric": "rmse"}, maximize=False, first={})
    assert len(read_trials(tmp_path / "j", "s")) == 1
    assert load_study(keeper, "t").direction.name == "MINIMIZE"


def test_a_study_that_was_killed_while_it_was_made_is_completed(tmp_path):
    import optuna

    keeper = open_keeper(tmp_path / "j")
    optuna.create_study(storage=keeper.storage, study_name="s", direction="maximize")
    _, study = opened(tmp_path / "j")
    assert len(study.trials) == 1


def test_a_trial_without_signature_is_given_back(tmp_path):
    keeper, study = opened(tmp_path / "j")
    study.ask()
    with keeper.alone():
        keeper.rescue(study)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "WAITING"]


@pytest.mark.parametrize("drawn", [(), ("training.lr",), ("training.lr", "model.dropout")])
def test_a_worker_that_died_while_it_drew_a_queued_point_loses_nothing_of_it(tmp_path, drawn):
    from optuna.distributions import CategoricalDistribution

    first = {"training.lr": 2, "model.dropout": 1}
    choices = list(range(1000))  # so many that luck does not draw what is lost
    spaces = {name: CategoricalDistribution(choices) for name in first}
    keeper = open_keeper(tmp_path / "j")
    with keeper.alone():
        study = open_study(keeper, "s", SPEC, maximize=True, first=first)
        study.ask({name: spaces[name] for name in drawn})
        keeper.rescue(study)
    assert study.ask(spaces).params == first


def test_a_trial_of_no_point_gives_none_back(tmp_path):
    keeper, study = opened(tmp_path / "j")
    study.tell(study.ask(), 0.5)
    study.ask()
    with keeper.alone():
        keeper.rescue(study)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL"]


def test_a_point_that_kills_its_workers_is_given_up(tmp_path):
    keeper, study = opened(tmp_path / "j")
    attempts = []
    while any(trial.state.name == "WAITING" for trial in study.trials):
        trial = study.ask()
        trial.set_user_attr(WORKER, "host:1:dead")
        attempts.append(trial.user_attrs.get(ATTEMPT, 1))
        with keeper.alone():
            keeper.rescue(study)
    assert attempts == [1, 2, 3]


def test_a_worker_is_alive_while_it_holds_its_file(tmp_path):
    keeper = open_keeper(tmp_path / "j")
    with keeper.at_work() as worker:
        assert open_keeper(tmp_path / "j").alive(worker)
    assert not keeper.alive(worker)
    assert [path.name for path in tmp_path.iterdir()] == ["j"]


def _hold(path, ready):
    with Journal(path, import_optuna()).alone():
        ready.set()
        time.sleep(600)


def test_a_killed_process_leaves_no_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_hold, args=(tmp_path / "j", ready))
    process.start()
    assert ready.wait(60)
    process.kill()
    process.join()
    with open_keeper(tmp_path / "j").alone():
        pass


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "sqlite:///x.db", "http://h", "redis://:secret@h"]
)
def test_other_storages_are_refused_without_their_password(url):
    with pytest.raises(ConfigError, match="must be a path, or postgresql://") as caught:
        open_keeper(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_one_sentence_without_password():
    with pytest.raises(
        ConfigError, match=r"^postgresql://127.0.0.1:1/d cannot be used: "
    ) as caught:
        open_keeper("postgresql://me:secret@127.0.0.1:1/d?password=secret")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://u:secret@h:port/d", "postgresql://u:secret@[h/d"])
def test_a_malformed_url_is_one_sentence_without_password(url):
    with pytest.raises(ConfigError) as caught:
        open_keeper(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b"[1]\n", b"\x00\xff"])
def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="is not a journal of trials"):
        open_keeper(path)
    assert path.read_bytes() == content


def test_a_damaged_journal_is_refused(tmp_path):
    opened(tmp_path / "j")
    lines = (tmp_path / "j").read_bytes().split(b"\n")
    (tmp_path / "j").write_bytes(b"\n".join([lines[0], b'{"op_code": 99}', *lines[1:]]))
    with pytest.raises(FormatError, match="damaged"):
        open_keeper(tmp_path / "j")


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(ConfigError, match="name a file"):
        open_keeper(tmp_path)


def test_reading_makes_nothing(tmp_path):
    with pytest.raises(DataError, match="no journal of trials"):
        read_trials(tmp_path / "j", "s")
    assert not list(tmp_path.iterdir())
    opened(tmp_path / "j")
    with pytest.raises(ConfigError, match=r"no study 'x' in .*; there are: 's'"):
        read_trials(tmp_path / "j", "x")


def test_a_storage_that_fails_is_one_sentence(tmp_path):
    from optuna.exceptions import StorageInternalError

    with pytest.raises(ConfigError, match="could not be read"), keeper_for(tmp_path / "j"):
        raise StorageInternalError("secret")
