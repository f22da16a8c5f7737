"""Weights averaged over the steps of a training: `WeightAverage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from nlsf.train.model_batch import ModelBatch


class WeightAverage:
    r"""A running mean of the weights of many models, which is what is validated and kept.

    .. math::
        \bar\theta_t = \bar\theta_{t-1} + \frac{1}{s t + 1 - s} (\theta_t - \bar\theta_{t-1})

    after step t, counted from 1: about the last s t steps count, a share s of the training so far
    (polynomial-decay averaging: Shamir and Zhang, ICML 2013; s = 1 is the mean of all). Running
    statistics of batch normalisations are averaged alike. Where few validation examples choose the
    epoch, single epochs differ by luck, and their mean by less.

    Args:
        batch: the models.
        share: s, from 0 to 1; with 0 the weights are taken as they are.
    """

    def __init__(self, batch: ModelBatch, share: float) -> None:
        self.batch, self.share = batch, share
        self.weights = batch.weights() if share else {}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Takes in the weights after step t."""
        rate = 1 / (self.share * step + 1 - self.share)
        for name, mean in self.weights.items():
            now = _of(self.batch, name)
            mean.lerp_(now, rate) if mean.is_floating_point() else mean.copy_(now)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the models have their averaged weights; nothing may be trained there."""
        if not self.share:
            yield
            return
        batch, before = self.batch, (self.batch.params, self.batch.buffers)
        batch.params, batch.buffers = (
            {name: self.weights.get(name, value) for name, value in part.items()} for part in before
        )
        try:
            yield
        finally:
            batch.params, batch.buffers = before

    def keep(self, index: Tensor) -> None:
        """Goes on with some of the models."""
        self.weights = {name: value[index] for name, value in self.weights.items()}

    def state(self) -> dict[str, Tensor]:
        """The averaged weights, by name; `load_state` takes them back."""
        return self.weights

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Goes on where another left off."""
        self.weights = {name: state[name].clone() for name in self.weights}


def _of(batch: ModelBatch, name: str) -> Tensor:
    return batch.params[name] if name in batch.params else batch.buffers[name]
