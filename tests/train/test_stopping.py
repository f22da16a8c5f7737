import math

import pytest
import torch

from nlsf.train.loop.fit import EarlyStopping

NAN = math.nan


def numbers(epochs, models, seed):
    """Metrics with many ties, as accuracies have, and losses with some."""
    generator = torch.Generator().manual_seed(seed)
    metric = torch.randint(0, 5, (epochs, models), generator=generator) / 4
    loss = torch.randint(0, 12, (epochs, models), generator=generator) / 10
    return metric.double(), loss.double()


def best_epoch(monitor, metric, loss, warmup):
    """By brute force, of one model: the first of the best, counted from 1."""
    keys = {
        epoch: (-m, value) if monitor == "metric" else (value,)
        for epoch, (m, value) in enumerate(zip(metric, loss, strict=True), start=1)
        if epoch > warmup and not math.isnan(value) and not math.isnan(m)
    }
    return min(keys, key=lambda epoch: (keys[epoch], epoch), default=0)


@pytest.mark.parametrize("monitor", ["metric", "loss"])
@pytest.mark.parametrize("warmup", [0, 1, 7])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_best_epoch_is_that_of_brute_force(monitor, warmup, share):
    for seed in range(20):
        metric, loss = numbers(30, 4, seed)
        broken = torch.rand(loss.shape, generator=torch.Generator().manual_seed(seed)) < share
        loss[broken] = NAN
        stopping = EarlyStopping(4, 1000, monitor, warmup)
        told = torch.zeros(4, dtype=torch.int64)
        for epoch in range(1, 31):
            better = stopping.update(epoch, metric[epoch - 1], loss[epoch - 1])
            told[better] = epoch
            seen = slice(0, epoch)
            expected = [
                best_epoch(monitor, metric[seen, m].tolist(), loss[seen, m].tolist(), warmup)
                for m in range(4)
            ]
            assert stopping.epoch.tolist() == told.tolist() == expected


def test_a_diverged_model_is_not_good_because_it_guesses_well():
    stopping = EarlyStopping(1, 5, "metric")
    assert stopping.update(1, torch.tensor([0.2]), torch.tensor([1.0])).all()
    assert not stopping.update(2, torch.tensor([0.9]), torch.tensor([NAN])).any()


def test_an_infinite_loss_is_better_than_none():
    stopping = EarlyStopping(1, 5, "loss")
    assert stopping.update(1, torch.tensor([0.2]), torch.tensor([math.inf])).all()
    assert not stopping.update(2, torch.tensor([0.2]), torch.tensor([math.inf])).any()
    assert stopping.update(3, torch.tensor([0.1]), torch.tensor([50.0])).all()


@pytest.mark.parametrize("warmup", [0, 6])
@pytest.mark.parametrize("patience", [1, 4])
@pytest.mark.parametrize("last_best", [1, 3, 9])
def test_it_waits_for_patience_epochs(warmup, patience, last_best):
    stopping = EarlyStopping(1, patience, "loss", warmup)
    for epoch in range(1, 40):
        stopping.update(epoch, torch.zeros(1), torch.tensor([max(0, last_best - epoch) * 1.0]))
        if stopping.stopped(epoch).all():
            break
    best = last_best if last_best > warmup else warmup + 1
    assert int(stopping.epoch) == best
    assert epoch == best + patience


@pytest.mark.parametrize("warmup", [0, 6])
def test_a_model_without_any_number_stops_too(warmup):
    stopping = EarlyStopping(1, 4, "metric", warmup)
    ended = []
    for epoch in range(1, 20):
        stopping.update(epoch, torch.tensor([0.5]), torch.tensor([NAN]))
        ended.append(bool(stopping.stopped(epoch)))
    assert ended.index(True) + 1 == warmup + 4


@pytest.mark.parametrize("monitor", ["metric", "loss"])
def test_models_that_go_on_and_states_that_are_handed_on(monitor):
    metric, loss = numbers(30, 5, 3)
    straight, some = (EarlyStopping(5, 6, monitor, 2) for _ in range(2))
    index = torch.tensor([4, 1])
    for epoch in range(1, 31):
        row, losses = metric[epoch - 1], loss[epoch - 1]
        wanted = straight.update(epoch, row, losses)
        if epoch <= 9:
            found = some.update(epoch, row, losses)
            assert torch.equal(found, wanted)
            assert torch.equal(some.stopped(epoch), straight.stopped(epoch))
        else:
            found = some.update(epoch, row[index], losses[index])
            assert torch.equal(found, wanted[index])
            assert torch.equal(some.stopped(epoch), straight.stopped(epoch)[index])
        if epoch == 9:
            some.keep(index)
        if epoch == 15:
            state = some.state()
            some = EarlyStopping(2, 6, monitor, 2)
            some.load_state(state)


def test_single_precision_numbers_are_compared_as_they_are():
    stopping = EarlyStopping(1, 5, "loss")
    stopping.update(1, torch.zeros(1), torch.tensor([0.1], dtype=torch.float32))
    assert not stopping.update(2, torch.zeros(1), torch.tensor([0.1], dtype=torch.float32)).any()
