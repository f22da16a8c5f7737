"""The models that a run has selected, and their file: `Selected`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from nlsf.train.job import Job, fingerprint
from nlsf.train.origin import check_origin, check_spec, origin
from nlsf.train.run_folder import RunFolder


class Selected:
    """The weights that were selected so far, one set a seed."""

    def __init__(self) -> None:
        self.weights: dict[int, dict[str, Tensor]] = {}
        self.facts: dict[int, dict[str, Any]] = {}
        self.metrics_size = 0

    def holds(self, group: list[int]) -> bool:
        """Whether these models are trained already."""
        return all(number in self.weights for number in group)

    def add(
        self, group: list[int], weights: Mapping[str, Tensor], facts: list[dict[str, Any]]
    ) -> None:
        """Takes in the models of a group, stacked."""
        for i, number in enumerate(group):
            self.weights[number] = {name: value[i] for name, value in weights.items()}
            self.facts[number] = facts[i]

    def write(self, folder: RunFolder, job: Job) -> None:
        """Writes ``model.safetensors``."""
        tensors = {f"{n}.{k}": v for n, one in self.weights.items() for k, v in one.items()}
        self.metrics_size = folder.metrics_size()
        meta = {
            "facts": {str(number): facts for number, facts in self.facts.items()},
            "metrics_size": self.metrics_size,
            "graph": fingerprint(job.dataset, signals=False),
            "classes": list(job.dataset.classes),
            "channels": [job.dataset.num_features, job.dataset.num_outputs],
            "level": job.dataset.level,
            **origin(folder, job),
        }
        folder.save_model(tensors, meta)

    @classmethod
    def read(cls, folder: RunFolder, job: Job | None = None) -> Selected:
        """What a run has selected until now.

        Args:
            folder: of the run.
            job: what goes on with it; models of other data are then refused.
        """
        selected = cls()
        if not (folder.path / "model.safetensors").exists():
            return selected
        tensors, meta = folder.load_model()
        if job is None:
            check_spec(meta, folder)
        else:
            check_origin(meta, folder, job)
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            selected.weights.setdefault(int(number), {})[name] = value
        selected.facts = {int(number): facts for number, facts in meta["facts"].items()}
        selected.metrics_size = meta["metrics_size"]
        return selected
