"""The processes that share one training: `Group`.

`SharedBatchNorm` normalises with the statistics of all of them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from nlsf.errors import ConfigError, GroupError, NLSFError
from nlsf.nn.networks import NodeBatchNorm

T = TypeVar("T")

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for the others. One that ends is noticed at once; only a machine that
falls silent takes so long. Meanwhile the first process may measure models, which takes a while."""


@dataclass(frozen=True)
class Group:
    r"""Processes that train the same models, each on its share of every batch.

    With R examples in a batch, of which :math:`R_k` are the share of process k of P, the loss of
    the batch is :math:`L = \frac1P \sum_k L_k` where :math:`L_k = \frac{P R_k}{R}` times the mean
    over the share. Every process differentiates its own :math:`L_k`; the mean of the gradients is
    that of L, and all take the same step.

    A group of one, the default, hands everything through as it is, so that the training is
    written once.

    Attributes:
        rank: the number of this process.
        size: P, how many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    @contextmanager
    def joined(cls, timeout: timedelta = TIMEOUT) -> Iterator[Group]:
        """The group that ``torchrun`` has started this process in; one alone outside of it.

        A default group of `torch.distributed` that is there already is used, and kept.

        Args:
            timeout: how long to wait for another process before giving it up.
        """
        if dist.is_available() and dist.is_initialized():
            yield cls(dist.get_rank(), dist.get_world_size())
            return
        if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
            yield cls()
            return
        # Tensors are reduced where they lie.
        cuda = torch.cuda.is_available() and dist.is_nccl_available()
        try:
            dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=timeout)
        except (RuntimeError, ValueError) as error:
            reason = str(error).strip().split("\n")[0]
            raise GroupError(f"The processes did not find each other: {reason}") from error
        try:
            yield cls(dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Which of ``count`` examples are this process's; shares differ by one at most."""
        if count < self.size:
            raise ConfigError(
                f"{count} example(s) cannot be shared by {self.size} processes: raise "
                "training.batch_size if it is that of a batch, or start fewer processes."
            )
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def weight(self, count: int) -> float:
        r"""The :math:`P R_k / R` of this process's share of ``count`` examples."""
        mine = len(range(count)[self.share(count)])
        return self.size * mine / count

    def window(self, rows: int) -> tuple[int, int]:
        """Where ``rows`` rows of this process start among those of all, and how many those are."""
        counts = self._told(rows)
        return sum(counts[: self.rank]), sum(counts)

    def sum(self, own: Tensor) -> Tensor:
        """The sum over all processes, with the same bits in each; no gradient."""
        if self.size == 1:
            return own
        total = own.detach().clone(memory_format=torch.contiguous_format)
        with _reaching_the_others():
            dist.all_reduce(total)
        return total

    def average(self, params: Iterable[Tensor], losses: Tensor) -> Tensor:
        """Averages the gradients of the parameters, in place, and the losses, which it returns.

        All of it is one message.
        """
        if self.size == 1:
            return losses.detach()
        leaves = [p for p in params if p.grad is not None]
        parts = [losses.detach(), *(p.grad for p in leaves if p.grad is not None)]
        mean = self.sum(torch.cat([part.flatten() for part in parts])) / self.size
        for part, value in zip(parts, mean.split([part.numel() for part in parts]), strict=True):
            part.copy_(value.view_as(part))
        return parts[0]

    def join(self, own: Tensor, count: int) -> Tensor:
        """The outputs (M, count, C) of all, of which this process has its share (M, r, C)."""
        if self.size == 1:
            return own
        whole = own.new_zeros(own.shape[0], count, *own.shape[2:])
        whole[:, self.share(count)] = own
        return self.sum(whole)

    def agree(self, own: Tensor) -> Tensor:
        """The numbers of the first process, so that all decide alike on whatever machines."""
        return self.sum(own if self.first else torch.zeros_like(own))

    def each(self, call: Callable[[], T]) -> T:
        """The result of a call that all processes make; where one fails, all do."""
        if self.size == 1:
            return call()
        error: Exception | None = None
        try:
            result = call()
        except (NLSFError, OSError) as caught:
            error = caught
        told = self._told(None if error is None else str(error))
        if error is not None:
            raise error
        for rank, text in enumerate(told):
            if text is not None:
                raise NLSFError(f"Process {rank}: {text}")
        return result

    def once(self, call: Callable[[], T]) -> T:
        """The result of a call that only the first process makes; where it fails, all do."""
        if self.size == 1:
            return call()
        result: T = self._told(self.each(call if self.first else lambda: None))[0]
        return result

    def check_same(self, what: str, own: Any) -> None:
        """Refuses to go on if the processes were not started with the same."""
        if any(other != own for other in self._told(own)):
            raise ConfigError(
                f"The processes of the group do not have the same {what}: start all of them with "
                "the same command, on the same data."
            )

    def _told(self, own: Any) -> list[Any]:
        """What every process has to say, in their order."""
        if self.size == 1:
            return [own]
        said: list[Any] = [None] * self.size
        with _reaching_the_others():
            dist.all_gather_object(said, own)
        return said


@contextmanager
def _reaching_the_others() -> Iterator[None]:
    """Says in words that another process is gone: the backends say it in terms of sockets."""
    try:
        yield
    except RuntimeError as error:
        silent = "timed out" in str(error).lower() or "timeout" in str(error).lower()
        raise GroupError(
            f"Another process of the training {'does not answer' if silent else 'has ended'}; if "
            "it said why, that stands above. Start all of them again, with --resume."
        ) from error


class SharedBatchNorm(NodeBatchNorm):
    r"""``nn.BatchNorm1d`` over the whole batch, of which every process has a share.

    With :math:`n_k` rows in process k, their mean :math:`\mu_k` and variance :math:`v_k`, and
    :math:`w_k = n_k / \sum_k n_k`,

    .. math::
        \mu = \sum_k w_k \mu_k, \qquad v = \sum_k w_k \bigl( v_k + (\mu_k - \mu)^2 \bigr),

    which does not cancel, as a difference of mean squares would. One message forwards and one
    backwards, of P (2 C + 1) numbers. PyTorch's ``SyncBatchNorm`` is for graphics cards only,
    and not for `torch.func.vmap`.

    Shapes:
        - input, output: (n, C) or (n, C, L)
        - inside: as in `NodeBatchNorm`
    """

    group: Group

    @classmethod
    def of(cls, own: nn.BatchNorm1d, group: Group) -> SharedBatchNorm:
        """One with the same parameters and statistics, which all processes of a group share."""
        made = cls(own.num_features, own.eps, own.momentum, own.affine, own.track_running_stats)
        made.weight, made.bias = own.weight, own.bias
        made.running_mean, made.running_var = own.running_mean, own.running_var
        made.num_batches_tracked = own.num_batches_tracked
        made.group = group
        return made.train(own.training)

    def forward(self, x: Tensor, inside: Tensor | None = None) -> Tensor:
        """The batch, normalised; in evaluation by the running statistics."""
        if not self.training:
            return super().forward(x)
        x = x.movedim(1, -1)
        rows = torch.ones_like(x[..., :1]) if inside is None else inside.to(x).unsqueeze(-1)
        count, mean, v = _moments(x, rows)
        own, ranks = torch.cat([count, mean, v]), range(self.group.size)
        # A sum of rows that only one process fills gathers them.
        placed = torch.stack([own if k == self.group.rank else 0 * own.detach() for k in ranks])
        every: Tensor = _Sum.apply(placed, self.group)  # type: ignore[no-untyped-call]
        counts, (means, variances) = every[:, :1], every[:, 1:].chunk(2, dim=1)
        total = counts.sum()
        w = counts / total
        mean = (w * means).sum(0)
        v = (w * (variances + (means - mean).square())).sum(0)
        self.track(mean.detach(), (v * total / (total - 1)).detach())
        y = (x - mean) * (v + self.eps).rsqrt()
        if self.affine:
            y = y * self.weight + self.bias
        return (y if inside is None else y * rows).movedim(-1, 1)


def _moments(x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The number (1,) of rows that are 1 and not 0, and the means and variances (C,) over them."""
    every = tuple(range(x.ndim - 1))
    count = rows.sum(every)
    mean = (x * rows).sum(every) / count.clamp(min=1)
    return count, mean, ((x - mean).square() * rows).sum(every) / count.clamp(min=1)


def with_shared_norms(model: nn.Module, group: Group) -> nn.Module:
    """A copy of a model whose batch statistics are those of all processes; names do not change."""
    if group.size == 1:
        return model
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, part in list(parent.named_children()):
            if type(part) in (nn.BatchNorm1d, NodeBatchNorm):
                setattr(parent, name, SharedBatchNorm.of(cast("nn.BatchNorm1d", part), group))
    return model


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(own: Tensor, group: Group) -> Tensor:
        return group.sum(own)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.group = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None]:
        return ctx.group.sum(grads[0]), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, own: Tensor, group: Group) -> tuple[Tensor, int | None]:
        # All models at once: one message.
        return _Sum.apply(own, group), in_dims[0]  # type: ignore[no-untyped-call]
