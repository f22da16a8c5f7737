"""Training: many seeds as one batch of models, with checkpoints, and test labels out of reach.

The way of a run: settings (`RunConfig`) become data, splits and models (`Job`), which are prepared
as the model allows (`nlsf.train.inputs_for`) and trained together (`Fit`); what is selected on
validation examples is then measured on test examples, once (`train`).
"""

from nlsf.data.dataset import Lesson
from nlsf.train.config import RunConfig, TrainingConfig
from nlsf.train.fit import Fit
from nlsf.train.group import Group
from nlsf.train.models import MODELS, ModelKind
from nlsf.train.predict import Prediction, predict
from nlsf.train.run import Interrupted, RunResult, resume, train
from nlsf.train.run_folder import RunFolder

__all__ = [
    "MODELS",
    "Fit",
    "Group",
    "Interrupted",
    "Lesson",
    "ModelKind",
    "Prediction",
    "RunConfig",
    "RunFolder",
    "RunResult",
    "TrainingConfig",
    "predict",
    "resume",
    "train",
]
