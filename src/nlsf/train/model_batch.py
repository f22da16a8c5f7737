"""Many models of one shape, computed as one: `ModelBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_map

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout, draw_masks, draw_padded_masks, dropout_shapes
from nlsf.train.group import Group
from nlsf.train.inputs import Inputs
from nlsf.train.shared_norm import with_shared_norms


class ModelBatch:
    """M models whose parameters are stacked along a leading dimension.

    One call computes all of them: the graph, the features and the spectrum are shared, and M small
    matrix products become one large one. Every model has a random generator of its own, which draws
    its dropout masks and the order of its examples, so that its numbers are those that it would
    have alone.

    Args:
        models: modules with the same parameter names and shapes; they may differ in dropout rates.
        inputs: what they are applied to.
        seeds: one a model, of its generator.
        group: the processes that share every call; the generators of all of them draw the same.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        inputs: Inputs,
        seeds: Sequence[int],
        group: Group | None = None,
    ) -> None:
        self.inputs = inputs
        self.group = group or Group()
        self.models = [with_shared_norms(model, self.group) for model in models]
        if len({_dropout_places(model) for model in models}) > 1:
            raise ModelError("Models trained together must have dropout in the same places.")
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.params = {k: v.requires_grad_() for k, v in _stack(models, "named_parameters").items()}
        self.buffers = _stack(models, "named_buffers")
        self._applied = _Applied(self.models[0], inputs)
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
        if not self.inputs.together:
            return self._one_by_one(state, rows, training)
        chosen = self.inputs.select(rows)
        if training and self.group.size > 1 and self.inputs.padded(chosen) is not None:
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
        applied = _Applied(self.models[m], self.inputs).train(training)
        for part in applied.modules():
            if isinstance(part, Dropout):
                part.generator = self.generators[m]
                part.window = None if self.group.size == 1 else self.group.window
        chosen = self.inputs.select(rows)
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
            chosen: what `Inputs.select` gave for this process's share of the examples.
        """
        if not _dropout_places(self._applied):
            return {}
        padded = self.inputs.padded(chosen)
        if count not in self._shapes:
            shapes = dropout_shapes(self._applied.model, lambda: self._together(state, chosen))
            # Drawn for the whole batch, so that masks do not depend on who computes a row.
            self._windows[count] = {name: self.group.window(s[0]) for name, s in shapes.items()}
            if padded is not None:
                shapes = {name: _any_rows(s, padded.width) for name, s in shapes.items()}
            self._shapes[count] = shapes
        shapes, windows = self._shapes[count], self._windows[count]
        if padded is not None:
            return draw_padded_masks(self.models, shapes, self.generators, *padded)
        pairs = zip(self.models, self.generators, strict=True)
        drawn = [draw_masks(model, shapes, generator, windows) for model, generator in pairs]
        return {name: torch.stack([masks[name] for masks in drawn]) for name in drawn[0]}


class _Applied(nn.Module):
    """A model applied to its inputs: examples in, outputs out."""

    def __init__(self, model: nn.Module, inputs: Inputs) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs

    def forward(self, chosen: Any) -> Tensor:
        return self.inputs.apply(self.model, chosen)


def _any_rows(shape: torch.Size, width: int) -> torch.Size:
    """The shape of a mask, without the number of its rows where padding decides it."""
    return torch.Size([0, *shape[1:]]) if shape[0] == width else shape


def _dropout_places(model: nn.Module) -> tuple[str, ...]:
    parts = model.named_modules()
    return tuple(name for name, part in parts if isinstance(part, Dropout) and part.p > 0)


def _stack(models: Sequence[nn.Module], what: str) -> dict[str, Tensor]:
    each = [dict(getattr(model, what)()) for model in models]
    shapes = [{name: value.shape for name, value in one.items()} for one in each]
    if any(other != shapes[0] for other in shapes):
        raise ModelError("Models trained together must have the same parameters and shapes.")
    return {name: torch.stack([one[name].detach() for one in each]) for name in each[0]}
