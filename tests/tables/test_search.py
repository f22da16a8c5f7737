import itertools
import math
import signal
import time

import numpy as np
import optuna
import pytest
import torch

from nlsf.display.progress import Progress
from nlsf.errors import ConfigError
from nlsf.tables.tune.keeper import ERROR, open_keeper
from nlsf.tables.tune.objective import TUNING_SEED, Objective
from nlsf.tables.tune.search import _pruner, tune
from nlsf.tables.tune.space import Space
from nlsf.tables.tune.trials import Tuning, key, read_trials
from processes import Process
from tables.tuning_worker import SPACE, TABLE, Halting, run, work
from train.small import graph_data, node_data


def search(tmp_path, table=TABLE, space=SPACE, tuning=None, name="study.journal", **options):
    return tune(
        table,
        space,
        tuning or Tuning(3, splits=2),
        storage=tmp_path / name,
        study="s",
        cache=False,
        **options,
    )


def results(trials):
    return [(key(trial.point), trial.value, trial.state) for trial in trials]


def interrupt():
    raise KeyboardInterrupt


def test_the_defaults_are_the_first_trial(tmp_path):
    tuned = search(tmp_path)
    first = tuned.trials[0]
    assert first.point == {
        "training.lr": 0.01,
        "model.hidden_channels": 64,
        "model.dropout": 0.5,
    }
    assert (first.number, first.state, first.epochs) == (0, "complete", 3)
    assert tuned.complete
    assert tuned.default == first.point
    assert tuned.metric == "accuracy"
    assert tuned.value == max(t.value for t in tuned.trials if t.state == "complete")
    assert tuned.value >= first.value


def test_a_default_that_is_spelled_out_in_part_is_recognised(tmp_path):
    table = {**TABLE, "model": {"name": "value"}}
    starts = ({"name": "heat"}, {"name": "ppr", "t": 9.0})
    objective = Objective(table, Space({"model.start": starts}), splits=1, training={})
    assert objective.default == {"model.start": {"name": "ppr", "t": 9.0}}
    assert len(objective.space.choices["model.start"]) == 2


def test_the_same_call_makes_the_same_trials(tmp_path):
    one = search(tmp_path, tuning=Tuning(6, splits=1), name="a")
    two = search(tmp_path, tuning=Tuning(6, splits=1), name="b")
    assert results(one.trials) == results(two.trials)


def test_it_goes_on_where_it_was_stopped_as_if_it_had_not_been(tmp_path):
    whole = run(tmp_path / "whole", 6)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", 6, Halting(2, interrupt))
    kept = read_trials(tmp_path / "parts", "s")
    assert [trial.state for trial in kept] == ["complete", "complete", "waiting"]
    again = run(tmp_path / "parts", 6)
    assert again.complete
    assert results(again.trials) == results(whole.trials)
    assert len({key(trial.point) for trial in again.trials}) == len(again.trials) == 6


@pytest.mark.parametrize("lr", [0.01, 1e30], ids=["complete", "failed"])
def test_an_interrupt_after_the_result_was_written_does_not_double_the_point(
    tmp_path, monkeypatch, lr
):
    from optuna import Study

    tell, told = Study.tell, []

    def tell_then_interrupt(study, trial, *args, **options):
        ended = tell(study, trial, *args, **options)
        told.append(ended.state)
        if len(told) == 2:
            raise KeyboardInterrupt
        return ended

    space = Space({"training.lr": (lr,), "model.dropout": (0.0, 0.5)})
    whole = search(tmp_path, space=space, tuning=Tuning(4, splits=1), name="whole")
    monkeypatch.setattr(Study, "tell", tell_then_interrupt)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, space=space, tuning=Tuning(4, splits=1))
    monkeypatch.undo()
    again = search(tmp_path, space=space, tuning=Tuning(4, splits=1))
    assert len(told) == 3, "the interrupt came while the second trial was told"
    assert results(again.trials) == results(whole.trials)
    assert len({key(trial.point) for trial in again.trials}) == len(again.trials)


def test_more_trials_can_be_asked_for_later(tmp_path):
    before = run(tmp_path / "j", 3)
    after = run(tmp_path / "j", 5)
    assert results(after.trials)[:3] == results(before.trials)
    assert len(after.trials) == 5


def test_no_point_is_tried_twice_and_a_small_space_ends(tmp_path):
    space = Space({"training.lr": (0.1, 0.01), "model.dropout": (0.0, 0.5)})
    tuned = search(tmp_path, space=space, tuning=Tuning(20, splits=1))
    assert tuned.complete
    assert {key(t.point) for t in tuned.trials} == {
        key(dict(zip(space.choices, values, strict=True)))
        for values in itertools.product(*space.choices.values())
    }
    assert len(tuned.trials) == 4


def test_a_model_without_epochs_has_one_trial(tmp_path):
    table = {"data": TABLE["data"], "model": {"name": "majority"}}
    tuned = search(tmp_path, table=table, space=Space())
    assert (tuned.point, len(tuned.trials), tuned.complete) == ({}, 1, True)
    assert 0 < tuned.value < 1


def test_test_labels_are_out_of_reach(tmp_path):
    rng = np.random.default_rng(0)
    nodes, parts = 120, np.repeat([0, 1, 2], 40)
    y = rng.integers(3, size=nodes)
    arrays = {
        "edges": rng.integers(nodes, size=(400, 2)),
        "x": rng.normal(size=(nodes, 5)) + y[:, None],
        **{f"{name}_mask": parts == i for i, name in enumerate(("train", "val", "test"))},
    }
    found = []
    for shift in (0, 1):
        path = tmp_path / str(shift) / "graph.npz"
        path.parent.mkdir()
        labels = np.where(parts == 2, (y + shift) % 3, y)
        np.savez(path, y=labels, **arrays)
        table = {**TABLE, "data": {"name": str(path)}, "model": {"name": "gcn"}}
        found.append(search(path.parent, table=table, tuning=Tuning(4, splits=2)))
    assert results(found[0].trials) == results(found[1].trials)
    assert len({trial.value for trial in found[0].trials}) > 1


def test_labels_of_no_part_are_wiped_out():
    objective = Objective(TABLE, SPACE, splits=1, training={})
    split, y = objective._splits[0], objective._dataset.y
    assert (y[split.test] == -1).all()
    assert (y[split.train] >= 0).all()


def test_tuning_splits_are_not_the_reported_ones():
    objective = Objective(TABLE, SPACE, splits=2, training={})
    assert [split.seed for split in objective._splits] == [TUNING_SEED, TUNING_SEED + 1]


def test_inputs_are_prepared_once_for_what_reads_the_same():
    table = {**TABLE, "model": {"name": "value"}}
    space = Space({"model.self_loops": (True, False), "training.lr": (0.1, 0.01)})
    prepared = []
    objective = Objective(table, space, splits=1, training={}, cache=False)
    for loops, lr in itertools.product((True, False), (0.1, 0.01)):
        list(objective.train({"model.self_loops": loops, "training.lr": lr}, prepared.append))
    assert sum(text.startswith("Eigen") for text in prepared) == 2


def test_inputs_that_hold_norms_are_prepared_for_each_norm(monkeypatch):
    """A pooling filter of few channels reads norms that were computed once."""
    table = {**TABLE, "data": {"name": "shapes"}, "model": {"name": "pooling"}}
    given = (graph_data(), table, "60-20-20", None)
    monkeypatch.setattr("nlsf.tables.tune.objective.data_of", lambda table: given)
    space = Space({"model.norm": (2.0, 1.0)})
    objective = Objective(table, space, splits=1, training={}, cache=False)
    both = [objective._plan(objective._job({"model.norm": p})) for p in (2.0, 1.0)]
    assert not torch.equal(both[0].prepared[0].known_norms, both[1].prepared[0].known_norms)


def test_a_plan_is_shared_only_with_models_that_it_suits(monkeypatch):
    """Sparse features that are filtered without an encoder are filtered model by model."""
    data = node_data()
    x = data.graphs[0].x
    data.graphs[0].x = torch.where(x > x.quantile(0.8), x, 0.0)
    model = {"name": "value", "place": "hidden", "input_dropout": 0.0}
    given = (data, {**TABLE, "model": model}, "60-20-20", None)
    monkeypatch.setattr("nlsf.tables.tune.objective.data_of", lambda table: given)
    space = Space({"model.encoder": ("linear", "none"), "model.dropout": (0.1, 0.5)})
    objective = Objective(given[1], space, splits=1, training={}, cache=False)
    plans = {
        (encoder, dropout): objective._plan(
            objective._job({"model.encoder": encoder, "model.dropout": dropout})
        )
        for encoder, dropout in itertools.product(("linear", "none"), (0.1, 0.5))
    }
    assert [plan.together for plan in plans.values()] == [True, True, False, False]
    assert plans["linear", 0.1] is plans["linear", 0.5]
    assert plans["none", 0.1] is plans["none", 0.5]


@pytest.mark.parametrize(("place", "stops"), [(0.1, True), (0.4, False), (0.9, False)])
def test_the_pruner_stops_the_lowest_quarter(place, stops):
    study = optuna.create_study(direction="maximize", pruner=_pruner(20))
    for value in np.linspace(0, 1, 21):
        trial = study.ask()
        trial.report(value, 15)
        study.tell(trial, value)
    trial = study.ask()
    trial.report(place, 15)
    assert trial.should_prune() == stops


def test_the_value_is_the_mean_of_the_validation_metric(tmp_path):
    from nlsf.train import train

    tuned = search(tmp_path, space=Space({"training.lr": (0.01,)}), tuning=Tuning(1, splits=3))
    seeds = [TUNING_SEED + i for i in range(3)]
    rows = train("csbm", {**TABLE, "seeds": seeds}, output=tmp_path / "run", cache=False).rows
    assert tuned.value == pytest.approx(np.mean([row["val_accuracy"] for row in rows]))


def test_a_failed_trial_has_its_reason_and_the_others_go_on(tmp_path):
    table = {**TABLE, "model": {"name": "value", "place": "scores"}}
    space = Space({"model.encoder": ("none", "linear", "mlp")})
    tuned = search(tmp_path, table=table, space=space, tuning=Tuning(3, splits=1))
    (failed,) = [trial for trial in tuned.trials if trial.state == "failed"]
    assert failed.point == {"model.encoder": "none"}
    assert failed.error == "Class scores need an encoder: say place='hidden' or encoder='linear'."
    assert failed.value is None
    assert tuned.complete


def test_a_loss_that_is_not_finite_is_a_failure(tmp_path):
    space = Space({"training.lr": (1e30,)})
    tuned = search(tmp_path, space=space, tuning=Tuning(2, splits=1))
    assert [trial.state for trial in tuned.trials] == ["complete", "failed"]
    assert "training loss of seed" in tuned.trials[1].error


def test_if_all_fail_the_first_reason_is_quoted(tmp_path):
    table = {**TABLE, "training": {"epochs": 3, "lr": 1e30}}
    space = Space({"model.dropout": (0.0, 0.5)})
    with pytest.raises(ConfigError, match=r"All 2 trials failed; the first: The training loss"):
        search(tmp_path, table=table, space=space, tuning=Tuning(2, splits=1))


def test_trials_that_fall_behind_are_pruned_but_never_the_defaults(tmp_path):
    table = {**TABLE, "training": {"epochs": 60, "patience": 60}}
    space = Space({"training.lr": (0.01, 0.02, 0.03, 0.05, 0.04, 1e-6, 2e-6, 3e-6, 4e-6)})
    tuned = search(tmp_path, table=table, space=space, tuning=Tuning(9, splits=1))
    pruned = [trial for trial in tuned.trials if trial.state == "pruned"]
    assert pruned
    assert all(30 <= trial.epochs < 60 and trial.value < tuned.value for trial in pruned)
    assert tuned.trials[0].state == "complete"


def test_no_trial_begins_after_the_deadline(tmp_path):
    late = search(tmp_path, deadline=time.monotonic())
    assert not late.complete
    assert math.isnan(late.value)
    assert late.point["training.lr"] == 0.01
    assert [trial.state for trial in late.trials] == ["waiting"]
    assert search(tmp_path).complete


def test_two_processes_share_the_trials(tmp_path):
    journal = tmp_path / "j"
    workers = [Process(tmp_path, work, journal, 10, name=name) for name in "ab"]
    for worker in workers:
        assert worker.end(120) == 0, worker.errors
        assert worker.output == "done\n"
    trials = read_trials(journal, "s")
    assert [trial.state for trial in trials].count("complete") >= 5
    assert {trial.state for trial in trials} <= {"complete", "pruned"}
    assert len(trials) == len({key(trial.point) for trial in trials}) == 10
    assert not list(tmp_path.glob("*.worker"))


def test_the_point_of_a_killed_worker_is_tried_again(tmp_path):
    journal = tmp_path / "j"
    worker = Process(tmp_path, work, journal, 4, 2)
    assert worker.wait_for(lambda: worker.output == "blocked\n"), worker.errors
    (lost,) = [trial for trial in read_trials(journal, "s") if trial.state == "running"]
    assert lost.worker.endswith(f":{worker.pid}")
    assert worker.signal(signal.SIGKILL) == -signal.SIGKILL
    tuned = run(journal, 4)
    assert tuned.complete
    assert len(tuned.trials) == 4
    assert [key(t.point) for t in tuned.trials].count(key(lost.point)) == 1
    assert {trial.state for trial in tuned.trials} == {"complete"}
    assert results(tuned.trials) == results(run(tmp_path / "whole", 4).trials)


def test_a_living_worker_keeps_its_trial(tmp_path):
    journal = tmp_path / "j"
    worker = Process(tmp_path, work, journal, 3, 1)
    try:
        assert worker.wait_for(lambda: worker.output == "blocked\n"), worker.errors
        tuned = search(
            tmp_path, tuning=Tuning(3, splits=2), name="j", deadline=time.monotonic() + 4
        )
        assert not tuned.complete
        assert [trial.state for trial in tuned.trials] == ["complete", "running", "complete"]
    finally:
        worker.signal(signal.SIGKILL)


def test_a_torn_last_line_is_cut_off(tmp_path):
    before = run(tmp_path / "j", 2)
    with (tmp_path / "j").open("ab") as file:
        file.write(b'{"op_code": 4, "study')
    after = run(tmp_path / "j", 3)
    assert results(after.trials)[:2] == results(before.trials)
    assert len(read_trials(tmp_path / "j", "s")) == 3


def test_a_bug_ends_tuning_and_its_trial_has_the_reason(tmp_path):
    class Broken(Progress):
        def noted(self, phase):
            raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError):
        search(tmp_path, display=Broken())
    keeper = open_keeper(tmp_path / "study.journal")
    (trial,) = keeper.storage.get_all_trials(0)
    assert trial.user_attrs[ERROR] == "ZeroDivisionError: oh"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": {**TABLE, "training": {"epochs": 4}}}, "another settings"),
        ({"space": Space({"training.lr": (0.1,)})}, "another space"),
        ({"tuning": Tuning(3, splits=1)}, "another tuning"),
        ({"tuning": Tuning(3, splits=2, training={"patience": 5})}, "another tuning"),
    ],
)
def test_another_spec_under_the_same_name_is_refused(tmp_path, change, said):
    search(tmp_path, deadline=time.monotonic())
    with pytest.raises(ConfigError, match=said):
        search(tmp_path, **change)


def test_the_place_of_the_data_is_no_part_of_the_spec(tmp_path):
    search(tmp_path, deadline=time.monotonic())
    data = {**TABLE["data"], "root": str(tmp_path), "offline": True}
    assert search(tmp_path, table={**TABLE, "data": data, "seeds": 5}).complete


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"trials": 0}, "tuning.trials must be a number from 1"),
        ({"trials": 1.5}, "tuning.trials"),
        ({"splits": 0}, "tuning.splits"),
        ({"training": {"patiens": 5}}, r"\[tuning.training\] 'patiens'. Did you mean 'patience'"),
    ],
)
def test_bad_tuning_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        Tuning(**options)


def test_unknown_models_and_keys_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match=r"no model 'appmp'. Did you mean 'appnp'"):
        search(tmp_path, table={**TABLE, "model": {"name": "appmp"}})
    with pytest.raises(ConfigError, match=r"no key of mlp in the space 'model\.heads'"):
        search(tmp_path, space=Space({"model.heads": (1, 2)}))
    assert not list(tmp_path.iterdir())
