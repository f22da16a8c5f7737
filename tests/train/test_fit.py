import dataclasses
from functools import cache

import pytest
import torch

from nlsf.data.dataset import Lesson
from nlsf.data.metrics import measure
from nlsf.data.protocols import draw
from nlsf.errors import ModelError
from nlsf.nn import GraphClassifier, NodeClassifier
from nlsf.nn.plans import Signals, plan_of
from nlsf.nn.plans.spectral import LabelledRows, PreparedSet
from nlsf.train.loop.fit import Fit, evaluate
from nlsf.train.run import folder
from nlsf.train.settings.config import TrainingConfig
from train.small import BANDS, graph_data, node_data, regression_data, signal_data

F64 = torch.float64
EXACT = {"rtol": 1e-8, "atol": 1e-9}
SEEDS = [5, 0, 12]
# The first one does not move, so that it is the first to leave.
SETTINGS = [
    {"lr": 0.0, "weight_decay": 0.0},
    {"lr": 0.05, "weight_decay": 1e-2, "psi_lr": 0.1, "psi_weight_decay": 0.1},
    {"lr": 0.01, "weight_decay": 0.0, "decoder_weight_decay": 0.1},
]
RATES = [0.5, 0.2, 0.6]
PLAIN = {"input_dropout": 0.0, "dropout": 0.0}
POOL = {"level": "pooling", "head": (5,)}

CASES = {
    "attention": (NodeClassifier, node_data, {}, {}),
    "attention, hidden": (NodeClassifier, node_data, {"place": "hidden"}, {}),
    "linear": (NodeClassifier, node_data, {"encoder": "linear"}, {}),
    "index": (NodeClassifier, node_data, {"branches": "index"}, {}),
    "value": (NodeClassifier, node_data, {"branches": "value"}, {"monitor": "loss"}),
    "sparse": (NodeClassifier, lambda: node_data(sparse=True), {}, {"warmup": 2}),
    "sparse linear": (NodeClassifier, lambda: node_data(sparse=True), {"encoder": "linear"}, {}),
    "rows": (NodeClassifier, node_data, {"encoder": "linear", **PLAIN}, {}),
    "rows, batches": (NodeClassifier, node_data, {"encoder": "linear", **PLAIN}, {"batch_size": 7}),
    "two layers": (NodeClassifier, node_data, {"num_layers": 2, "place": "hidden"}, {}),
    "regression": (NodeClassifier, regression_data, {}, {}),
    "graph": (GraphClassifier, graph_data, {"head": (5,)}, {}),
    "graph, batches": (GraphClassifier, graph_data, {"head": (5,)}, {"batch_size": 7}),
    "pooling": (GraphClassifier, graph_data, POOL, {"warmup": 5}),
    "pooling, batches": (GraphClassifier, graph_data, POOL, {"batch_size": 10}),
    "pooling, standardised": (
        GraphClassifier,
        graph_data,
        {**POOL, "node_norm": True},
        {"batch_size": 10, "average": 0.5},
    ),
    "averaged": (NodeClassifier, node_data, {}, {"average": 0.3}),
    "signals": (GraphClassifier, signal_data, {"head": (5,)}, {"batch_size": 7}),
    "signals, pooling": (GraphClassifier, signal_data, POOL, {}),
    "signals, pooling, batches": (GraphClassifier, signal_data, POOL, {"batch_size": 7}),
}


@cache
def data_of(case):
    return CASES[case][1]()


@cache
def inputs_of(case):
    return plan_of(model_of(case, 0), data_of(case), cache=False, dtype=F64)


def model_of(case, number):
    kind, _, fields, _ = CASES[case]
    dataset, rate = data_of(case), RATES[number]
    names = ("input_dropout", "dropout") if kind is NodeClassifier else ("dropout",)
    sizes = {"in_channels": dataset.num_features, "out_channels": dataset.num_outputs}
    torch.manual_seed(SEEDS[number])
    dropout = dict.fromkeys(names, rate)
    model = kind(**{**sizes, "hidden_channels": 6, **BANDS, **dropout, **fields})
    return model.to(F64)


def lesson_of(dataset, seed):
    split = draw(dataset, "40-30-30", seed)
    y = dataset.y.to(F64) if dataset.is_regression else dataset.y
    return Lesson(split.train, y[split.train], split.val, y[split.val])


def fit_of(case, numbers=(0, 1, 2), **change):
    dataset = data_of(case)
    common = {"epochs": 10, "patience": 3, **CASES[case][3], **change}
    return Fit(
        [model_of(case, n) for n in numbers],
        inputs_of(case),
        [lesson_of(dataset, SEEDS[n]) for n in numbers],
        [TrainingConfig(**common, **SETTINGS[n]) for n in numbers],
        [SEEDS[n] for n in numbers],
        dataset.metric,
    )


def rows_of(fit):
    rows = []
    while not fit.finished:
        rows += fit.step()
    return rows


@pytest.mark.parametrize("case", CASES)
def test_models_together_have_the_numbers_that_they_have_alone(case):
    together = fit_of(case)
    rows = rows_of(together)
    metric = f"val_{together.metric}"
    for number in range(3):
        alone = fit_of(case, (number,))
        own = [row for row in rows if row["model"] == number]
        expected = rows_of(alone)
        assert len(own) == len(expected)
        for found, wanted in zip(own, expected, strict=True):
            assert found.keys() == wanted.keys()
            assert (found["epoch"], found["best"]) == (wanted["epoch"], wanted["best"])
            if together.metric == "accuracy":
                assert found[metric] == wanted[metric]
            for name in ("train_loss", "val_loss", metric):
                assert found[name] == pytest.approx(wanted[name], rel=1e-9, abs=1e-9)
        assert together.best_epoch[number] == alone.best_epoch[0]
        assert together.last_epoch[number] == alone.last_epoch[0]
        for name, value in alone.best.items():
            torch.testing.assert_close(together.best[name][number], value[0], **EXACT)
    # They are different models, and one of them leaves before the others.
    assert len({row["train_loss"] for row in rows if row["epoch"] == 1}) == 3
    assert len(set(together.last_epoch.tolist())) > 1


def test_the_cases_take_all_ways():
    kinds = {case: type(inputs_of(case)) for case in CASES}
    assert {kinds["rows"], kinds["rows, batches"]} == {LabelledRows}
    assert {kinds["graph"], kinds["signals"]} == {PreparedSet}
    assert kinds["pooling"] is PreparedSet
    assert kinds["signals, pooling"] is Signals


@pytest.mark.parametrize("case", ["attention", "sparse", "rows, batches", "pooling, batches"])
def test_the_best_weights_have_the_best_score(case):
    fit, dataset = fit_of(case, warmup=0), data_of(case)
    rows = rows_of(fit)
    for number in range(3):
        own = [row for row in rows if row["model"] == number]
        best = min(own, key=lambda row: (-row["val_accuracy"], row["val_loss"]))
        assert fit.best_epoch[number] == best["epoch"]
        assert [row["epoch"] for row in own if row["best"]][-1] == best["epoch"]
        assert fit.last_epoch[number] == own[-1]["epoch"]
        assert fit.best_metric[number] == best["val_accuracy"]
        model = model_of(case, number)
        model.load_state_dict({name: value[number] for name, value in fit.best.items()})
        lesson = lesson_of(dataset, SEEDS[number])
        output = evaluate(model, fit.batch.plan, lesson.val)
        assert measure("accuracy", output, lesson.val_y) == best["val_accuracy"]
    mean = sum(fit.best_metric.tolist()) / 3
    assert fit.best_score() == pytest.approx(mean)


@cache
def undisturbed(case):
    """A fit that ran to its end, and its rows."""
    fit = fit_of(case)
    return fit, rows_of(fit)


@pytest.mark.parametrize("case", ["attention", "sparse linear", "pooling, batches", "signals"])
@pytest.mark.parametrize("stop", [3, "left", "end"])
def test_a_fit_goes_on_from_a_file(tmp_path, case, stop):
    (straight, expected), first = undisturbed(case), fit_of(case)
    rows = []
    while not first.finished and (stop == "end" or first.epoch != stop):
        rows += first.step()
        if stop == "left" and 0 < len(first.active) < 3:
            break
    assert stop != "left" or not first.finished
    folder.save(tmp_path / "c", *first.state())
    second = fit_of(case)
    # What the state does not hold must not matter.
    torch.manual_seed(99)
    second.load_state(*folder.load(tmp_path / "c"))
    assert second.finished == first.finished
    assert rows + rows_of(second) == expected
    for name in ("best_epoch", "last_epoch", "best_metric", "active"):
        assert torch.equal(getattr(second, name), getattr(straight, name))
    for name, value in straight.best.items():
        assert torch.equal(second.best[name], value)


def test_a_state_is_taken_up_again_and_again(tmp_path):
    straight, one = fit_of("rows, batches"), fit_of("rows, batches")
    expected, rows = rows_of(straight), []
    while not one.finished:
        rows += one.step()
        folder.save(tmp_path / "c", *one.state())
        one = fit_of("rows, batches")
        one.load_state(*folder.load(tmp_path / "c"))
    assert rows == expected
    assert all(torch.equal(one.best[name], value) for name, value in straight.best.items())


def test_the_epochs_are_a_limit():
    fit = fit_of("attention", epochs=3, patience=100)
    rows = rows_of(fit)
    assert [row["epoch"] for row in rows] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert fit.last_epoch.tolist() == [3, 3, 3]


def test_other_schedules_are_not_trained_together():
    models = [model_of("value", n) for n in (0, 1)]
    lessons = [lesson_of(data_of("value"), SEEDS[n]) for n in (0, 1)]
    settings = [TrainingConfig(patience=3), TrainingConfig(patience=4)]
    with pytest.raises(ModelError, match="must agree in all but rates and decays"):
        Fit(models, inputs_of("value"), lessons, settings, [0, 1], "accuracy")


def test_epochs_of_the_warm_up_are_not_kept():
    fit = fit_of("attention", warmup=5)
    rows = rows_of(fit)
    assert not any(row["best"] for row in rows if row["epoch"] <= 5)
    assert (fit.best_epoch > 5).all()
    # The model that does not move waits from the first epoch that counts.
    assert fit.last_epoch[0] == 6 + 3


def test_the_models_themselves_are_not_trained():
    fit = fit_of("graph, batches")
    before = [{k: v.clone() for k, v in m.state_dict().items()} for m in fit.batch.models]
    models = list(fit.batch.models)
    fit.run()
    for model, old in zip(models, before, strict=True):
        assert all(torch.equal(value, old[name]) for name, value in model.state_dict().items())


def test_a_model_that_diverges_keeps_what_it_had():
    fit = fit_of("attention", (1,), epochs=12, patience=12)
    for _ in range(4):
        fit.step()
    epoch, best = int(fit.best_epoch), {k: v.clone() for k, v in fit.best.items()}
    with torch.no_grad():
        for p in fit.batch.params.values():
            p.fill_(torch.nan)
    # The largest of many NaNs is the first: by now that would be right every time.
    fit.lessons.val_y.zero_()
    rows = rows_of(fit)
    assert {row["val_accuracy"] for row in rows} == {1.0}
    assert not any(row["best"] for row in rows)
    assert fit.best_epoch.tolist() == [epoch]
    assert all(torch.equal(fit.best[name], value) for name, value in best.items())


def test_every_example_is_seen_once_in_an_epoch_of_batches():
    fit = fit_of("rows, batches")
    seen, outputs = [], fit.batch.outputs

    def recorded(rows, *, training):
        if training:
            seen.append(rows)
        return outputs(rows, training=training)

    fit.batch.outputs = recorded
    fit.step()
    sizes = [part.shape[1] for part in seen]
    assert (sum(sizes), max(sizes), min(sizes)) == (24, 6, 6)  # four even parts of at most 7
    order = torch.cat(seen, dim=1)
    for number in range(3):
        wanted = lesson_of(node_data(), SEEDS[number]).train
        assert torch.equal(order[number].sort().values, wanted)
        assert not torch.equal(order[number], wanted)


def test_a_lesson_holds_nothing_to_test_on():
    dataset = node_data()
    lesson = lesson_of(dataset, 0)
    assert (len(lesson.train), len(lesson.val)) == (24, 18)
    assert [f.name for f in dataclasses.fields(lesson)] == ["train", "train_y", "val", "val_y"]
    test = draw(dataset, "40-30-30", 0).test
    assert not torch.isin(test, torch.cat([lesson.train, lesson.val])).any()


def test_evaluation_in_parts_is_evaluation_at_once(monkeypatch):
    inputs, model = inputs_of("pooling"), model_of("pooling", 0)
    rows = torch.randperm(30)
    whole = evaluate(model.train(), inputs, rows)
    assert not model.training
    monkeypatch.setattr(inputs, "at_once", 4)
    torch.testing.assert_close(evaluate(model, inputs, rows), whole, **EXACT)
    fit = fit_of("pooling")
    losses = [row["val_loss"] for row in fit.step()]
    monkeypatch.undo()
    expected = [row["val_loss"] for row in fit_of("pooling").step()]
    assert losses == pytest.approx(expected, rel=1e-9)
