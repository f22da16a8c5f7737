"""Every value that a search may choose makes a model."""

import pytest

from nlsf.nn.baselines import PEERS
from nlsf.train.models import MODELS

CASES = [
    (name, key, value)
    for name, peer in PEERS.items()
    for key, values in peer.config.search.items()
    for value in values
]


@pytest.mark.parametrize("name", PEERS)
def test_there_is_something_to_search_and_nothing_twice(name):
    search = PEERS[name].config.search
    assert search
    for key, values in search.items():
        assert values, f"{key} has no choice"
        assert len(set(values)) == len(values)


@pytest.mark.parametrize(("name", "key", "value"), CASES)
def test_a_choice_is_a_setting_that_a_run_accepts(name, key, value):
    kind = MODELS[name]
    assert kind.resolve({key: value})[key] == value
    model = kind.build({key: value}, 4, 3, PEERS[name].levels[0], num_nodes=5)
    assert getattr(model.config, key) == value
