"""The models of a run that need no epochs: `solved`."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from nlsf.train.display import Display
from nlsf.train.job import Job


def solved(
    job: Job, group: list[int], display: Display
) -> tuple[dict[str, Tensor], list[dict[str, Any]]] | None:
    """The selected state and the facts of each model, as a training gives them.

    Args:
        job: the data, and the model's name.
        group: the numbers of the models.
        display: is told about each.

    Returns:
        The outputs (M, n, C) of all examples, by the name of the model's one buffer, and the
        facts; ``None`` for models that have to be trained.
    """
    outputs, facts = [], []
    for number in group:
        began = time.perf_counter()
        found = job.solution(number)
        if found is None:
            return None
        seconds = time.perf_counter() - began
        outputs.append(found)
        facts.append({"best_epoch": 0, "epochs": 0, "seconds": seconds, "together": 1})
        display.message(
            f"{job.config.data.name}, {job.config.model['name']}: seed {job.config.seeds[number]} "
            f"solved in {seconds:.2f} s"
        )
    return {"outputs": torch.stack(outputs)}, facts
