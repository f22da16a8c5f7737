"""Many models of one shape as one: `ModelBatch`, `BatchAdam`, `WeightAverage`.

They are computed, stepped and averaged together, each with its own settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_map

from nlsf.errors import ModelError
from nlsf.nn.dropout import (
    Dropout,
    active_dropouts,
    draw_masks,
    draw_padded_masks,
    dropout_shapes,
)
from nlsf.nn.plans import Plan
from nlsf.train.loop.group import Group, with_shared_norms


class ModelBatch:
    """M models whose parameters are stacked along a leading dimension.

    One call computes all of them: the graph, the features and the spectrum are shared, and M small
    matrix products become one large one. Every model has a random generator of its own for its
    dropout masks and the order of its examples. So its numbers are those that it would have alone.

    Args:
        models: modules with the same parameter names and shapes; they may differ in dropout rates.
        plan: how they are applied.
        seeds: one a model, of its generator.
        group: the processes that share every call; the generators of all of them draw the same.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        plan: Plan,
        seeds: Sequence[int],
        group: Group | None = None,
    ) -> None:
        self.plan = plan
        self.group = group or Group()
        self.models = [with_shared_norms(model, self.group) for model in models]
        places = {tuple(active_dropouts(model)) for model in models}
        if len(places) > 1:
            raise ModelError("Models trained together must have dropout in the same places.")
        self._drops = any(places)
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.params = {k: v.requires_grad_() for k, v in _stack(models, "named_parameters").items()}
        self.buffers = _stack(models, "named_buffers")
        self._applied = _Applied(self.models[0], plan)
        self._shapes: dict[int, dict[str, torch.Size]] = {}
        self._windows: dict[int, dict[str, tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self.models)

    def outputs(self, rows: Tensor, *, training: bool) -> Tensor:
        """The outputs of all models: each at its own rows.

        Args:
            rows: (M, R), examples of each model.
            training: whether dropout and batch statistics act. They see the whole batch, so in
                training the rows are those of all processes of the group, the same in each.

        Returns:
            (M, R, C); in training those of this process's share of the rows.
        """
        count = rows.shape[1]
        rows = rows[:, self.group.share(count)] if training else rows
        state = {f"model.{k}": v for k, v in {**self.params, **self.buffers}.items()}
        if not self.plan.together:
            return self._one_by_one(state, rows, training)
        chosen = self.plan.select(rows)
        if training and self.group.size > 1 and self.plan.padded(chosen) is not None:
            # Each model has a window of its own in the nodes of all processes.
            return self._one_by_one(state, rows, training)
        self._applied.train(training)
        if training:
            masks = self._masks(count, state, chosen)
            state |= {f"model.{name}": mask for name, mask in masks.items()}
        return self._together(state, chosen)

    def _together(self, state: Mapping[str, Tensor], chosen: Any) -> Tensor:
        """All models in one call."""

        def one(tensors: dict[str, Tensor], examples: Any) -> Any:
            return functional_call(self._applied, tensors, (examples,))

        # What is no tensor is the same for all models.
        each = tree_map(lambda part: 0 if isinstance(part, Tensor) else None, chosen)
        out: Tensor = vmap(one, in_dims=(0, each))(dict(state), chosen)
        return out

    def _one_by_one(self, state: Mapping[str, Tensor], rows: Tensor, training: bool) -> Tensor:
        return torch.stack([self._alone(m, state, rows[m], training) for m in range(len(self))])

    def _alone(self, m: int, state: Mapping[str, Tensor], rows: Tensor, training: bool) -> Tensor:
        """One model, which draws its masks on the way: their shapes differ from batch to batch."""
        applied = _Applied(self.models[m], self.plan).train(training)
        for part in applied.modules():
            if isinstance(part, Dropout):
                part.generator = self.generators[m]
                part.window = None if self.group.size == 1 else self.group.window
        chosen = self.plan.select(rows)
        out: Tensor = functional_call(applied, {k: v[m] for k, v in state.items()}, (chosen,))
        return out

    def permutations(self, size: int) -> Tensor:
        """A random order of ``size`` examples for every model: (M, size)."""
        return torch.stack([torch.randperm(size, generator=g) for g in self.generators])

    def keep(self, index: Tensor) -> None:
        """Goes on with some of the models."""
        chosen = index.tolist()
        self.models = [self.models[i] for i in chosen]
        self.generators = [self.generators[i] for i in chosen]
        self.params = {k: v.detach()[index].requires_grad_() for k, v in self.params.items()}
        self.buffers = {k: v[index] for k, v in self.buffers.items()}

    def weights(self) -> dict[str, Tensor]:
        """A copy of all parameters and buffers that a model's ``state_dict`` has: (M, ...)."""
        both = {**self.params, **self.buffers}
        return {name: both[name].detach().clone() for name in self.models[0].state_dict()}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Takes them back."""
        with torch.no_grad():
            for name, value in weights.items():
                (self.params if name in self.params else self.buffers)[name].copy_(value)

    def generator_states(self) -> Tensor:
        """The states of the random generators, (M, bytes)."""
        return torch.stack([g.get_state() for g in self.generators])

    def load_generator_states(self, states: Tensor) -> None:
        """Takes them back."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state.clone())

    def _masks(self, count: int, state: Mapping[str, Tensor], chosen: Any) -> dict[str, Tensor]:
        """The dropout masks of one step, drawn by every model's own generator.

        Args:
            count: R, the examples of each model; the shapes of masks depend on nothing else, but
                for the numbers of rows that are padded.
            state: parameters and buffers.
            chosen: what `Plan.select` gave for this process's share of the examples.
        """
        if not self._drops:
            return {}
        padded = self.plan.padded(chosen)
        if count not in self._shapes:
            shapes = dropout_shapes(self._applied.model, lambda: self._together(state, chosen))
            # Drawn for the whole batch, so that masks do not depend on who computes a row.
            self._windows[count] = {name: self.group.window(s[0]) for name, s in shapes.items()}
            if padded is not None:
                # The number of rows where padding decides it is each model's own.
                shapes = {
                    name: torch.Size([0, *s[1:]]) if s[0] == padded.width else s
                    for name, s in shapes.items()
                }
            self._shapes[count] = shapes
        shapes, windows = self._shapes[count], self._windows[count]
        if padded is not None:
            return draw_padded_masks(self.models, shapes, self.generators, *padded)
        pairs = zip(self.models, self.generators, strict=True)
        drawn = [draw_masks(model, shapes, generator, windows) for model, generator in pairs]
        return {name: torch.stack([masks[name] for masks in drawn]) for name in drawn[0]}


class _Applied(nn.Module):
    """A model applied by its plan: examples in, outputs out."""

    def __init__(self, model: nn.Module, plan: Plan) -> None:
        super().__init__()
        self.model = model
        self.plan = plan

    def forward(self, chosen: Any) -> Tensor:
        return self.plan.apply(self.model, chosen)


def _stack(models: Sequence[nn.Module], what: str) -> dict[str, Tensor]:
    each = [dict(getattr(model, what)()) for model in models]
    shapes = [{name: value.shape for name, value in one.items()} for one in each]
    if any(other != shapes[0] for other in shapes):
        raise ModelError("Models trained together must have the same parameters and shapes.")
    return {name: torch.stack([one[name].detach() for one in each]) for name in each[0]}


class BatchAdam:
    r"""Adam on parameters with a leading dimension, one slice a model.

    .. math::
        g \leftarrow g + w_m \theta, \quad m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        \theta \leftarrow \theta - \eta_m \frac{\hat m}{\sqrt{\hat v} + \epsilon}

    Every operation is elementwise, so a model's numbers do not depend on its neighbours. PyTorch's
    own Adam has one learning rate a tensor; here it, and the weight decay, may differ along the
    leading dimension.

    Args:
        params: stacked parameters by name, (M, ...), leaves that require a gradient.
        lr: the learning rates of every parameter: (M,).
        weight_decay: its weight decays: (M,).
        betas: the decay rates of the moments.
        eps: the :math:`\epsilon` of the formula.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        lr: Mapping[str, Sequence[float]],
        weight_decay: Mapping[str, Sequence[float]],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.params = dict(params)
        self.lr = {name: _column(lr[name], p) for name, p in params.items()}
        self.decay = {name: _column(weight_decay[name], p) for name, p in params.items()}
        self.betas, self.eps = betas, eps
        self.first = {name: torch.zeros_like(p) for name, p in params.items()}
        self.second = {name: torch.zeros_like(p) for name, p in params.items()}
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """One update from the gradients, which are then forgotten."""
        self.steps += 1
        b1, b2 = self.betas
        for name, p in self.params.items():
            if p.grad is None:
                continue
            g = torch.addcmul(p.grad, self.decay[name], p)
            m, v = self.first[name], self.second[name]
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            scale = self.lr[name] / (1 - b1**self.steps)
            p -= scale * m / ((v / (1 - b2**self.steps)).sqrt_() + self.eps)
            p.grad = None

    def keep(self, params: Mapping[str, Tensor], index: Tensor) -> None:
        """Goes on with some of the models: ``params`` are their stacked parameters."""
        self.params = dict(params)
        for store in (self.lr, self.decay, self.first, self.second):
            for name, value in store.items():
                store[name] = value[index]

    def state(self) -> dict[str, Tensor]:
        """The moments, by name; `load_state` takes them back."""
        first = {f"first.{name}": m for name, m in self.first.items()}
        return {**first, **{f"second.{name}": v for name, v in self.second.items()}}

    def load_state(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Goes on where another left off."""
        self.first = {name: state[f"first.{name}"].clone() for name in self.params}
        self.second = {name: state[f"second.{name}"].clone() for name in self.params}
        self.steps = steps


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    """One number a model, in a shape that multiplies a stacked parameter."""
    column = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    return column.reshape(-1, *[1] * (like.ndim - 1))


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
            now = (self.batch.params if name in self.batch.params else self.batch.buffers)[name]
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
