import torch
from torch.func import grad, vmap

from nlsf.spectral.kernels.transforms import holds_everywhere, is_vmapped


def test_a_condition_is_asked_of_all_members_together():
    seen = []

    def look(x):
        seen.append((is_vmapped(x), holds_everywhere(x > 0)))
        return x

    x = torch.ones(3, 2)
    look(x)
    vmap(look)(x)
    vmap(vmap(look))(x)
    grad(lambda x: look(x).sum())(x)
    x[2, 1] = -1
    look(x)
    vmap(look)(x)
    vmap(vmap(look))(x)
    grad(lambda x: look(x).sum())(x)
    wrapped = [False, True, True, True]
    assert seen == [(w, True) for w in wrapped] + [(w, False) for w in wrapped]


def test_where_members_cannot_be_looked_into_the_answer_is_no(monkeypatch):
    monkeypatch.delattr(torch.func, "debug_unwrap", raising=False)
    seen = []
    vmap(lambda x: seen.append(holds_everywhere(x > 0)) or x)(torch.ones(3, 2))
    assert seen == [False]
    assert holds_everywhere(torch.ones(3) > 0)
