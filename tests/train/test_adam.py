import pytest
import torch

from nlsf.train.loop.model_batch import BatchAdam

F64 = torch.float64
SHAPES = {"weight": (3, 4), "bias": (4,), "scale": ()}
LR = [0.05, 0.001, 0.3]
DECAY = {"weight": [0.0, 0.1, 0.01], "bias": [0.0, 0.0, 0.0], "scale": [0.2, 0.0, 1.0]}


def start(models):
    generator = torch.Generator().manual_seed(0)
    every = {n: torch.randn(3, *s, generator=generator, dtype=F64) for n, s in SHAPES.items()}
    return {name: value[models].requires_grad_() for name, value in every.items()}


def objective(params, models):
    """The losses (M,) of bowls that are narrow in some directions and differ between models."""
    total = 0
    for name, p in params.items():
        flat = p.reshape(len(models), -1)
        width = torch.arange(1, flat.shape[1] + 1, dtype=F64) ** 2
        target = torch.tensor(models, dtype=F64)[:, None] - len(name)
        total = total + (width * (flat - target).square()).sum(1) + flat.sin().sum(1)
    return total


def optimiser(params, models):
    lr = {name: [LR[m] for m in models] for name in SHAPES}
    decay = {name: [DECAY[name][m] for m in models] for name in SHAPES}
    return BatchAdam(params, lr, decay)


def steps(adam, models, count):
    for _ in range(count):
        objective(adam.params, models).sum().backward()
        adam.step()


def values(params):
    return {name: value.detach().clone() for name, value in params.items()}


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("model", [0, 1, 2])
def test_one_model_is_the_adam_of_torch(model):
    ours, theirs = start([model]), start([model])
    groups = [
        {"params": [theirs[n]], "lr": LR[model], "weight_decay": DECAY[n][model]} for n in SHAPES
    ]
    reference = torch.optim.Adam(groups)
    adam = optimiser(ours, [model])
    for _ in range(20):
        steps(adam, [model], 1)
        reference.zero_grad()
        objective(theirs, [model]).sum().backward()
        reference.step()
        for name in SHAPES:
            torch.testing.assert_close(ours[name], theirs[name], rtol=1e-13, atol=1e-13)
    assert not torch.allclose(ours["weight"], start([model])["weight"])


def test_models_do_not_feel_each_other():
    together = start([0, 1, 2])
    steps(optimiser(together, [0, 1, 2]), [0, 1, 2], 20)
    for m in range(3):
        alone = start([m])
        steps(optimiser(alone, [m]), [m], 20)
        assert_equal({n: p[m : m + 1] for n, p in values(together).items()}, values(alone))


def test_some_models_go_on_as_if_nothing_had_happened():
    params = start([0, 1, 2])
    adam = optimiser(params, [0, 1, 2])
    steps(adam, [0, 1, 2], 7)
    index = torch.tensor([2, 0])
    adam.keep({n: p.detach()[index].requires_grad_() for n, p in params.items()}, index)
    steps(adam, [2, 0], 9)
    straight = start([0, 1, 2])
    steps(optimiser(straight, [0, 1, 2]), [0, 1, 2], 16)
    assert_equal(values(adam.params), {n: p[index] for n, p in values(straight).items()})


def test_a_state_that_is_handed_on():
    straight, first = start([0, 1, 2]), start([0, 1, 2])
    steps(optimiser(straight, [0, 1, 2]), [0, 1, 2], 16)
    old = optimiser(first, [0, 1, 2])
    steps(old, [0, 1, 2], 7)
    second = {n: p.requires_grad_() for n, p in values(first).items()}
    new = optimiser(second, [0, 1, 2])
    new.load_state(old.state(), old.steps)
    # Each has its own moments from here on.
    steps(old, [0, 1, 2], 3)
    steps(new, [0, 1, 2], 9)
    assert_equal(values(second), values(straight))


def test_gradients_are_forgotten_and_what_has_none_stays():
    params = start([0, 1])
    before = values(params)
    adam = optimiser(params, [0, 1])
    params["weight"].square().sum().backward()
    adam.step()
    assert params["weight"].grad is None
    assert not torch.equal(params["weight"], before["weight"])
    assert torch.equal(params["bias"], before["bias"])
