"""Training: many seeds as one batch of models, with checkpoints, and test labels out of reach.

The way of a run: settings (`RunConfig`) become data, splits and models (`Job`), which are prepared
as the model says (`nlsf.nn.plans`) and trained together (`Fit`); what is selected on
validation examples is then measured on test examples, once (`train`).
"""

from nlsf.data.dataset import Lesson
from nlsf.train.loop.fit import Fit
from nlsf.train.loop.group import Group
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.predict import Prediction, predict
from nlsf.train.run.train import Interrupted, RunResult, resume, train
from nlsf.train.settings.config import RunConfig, TrainingConfig
from nlsf.train.settings.models import MODELS, ModelKind, register_model

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
    "register_model",
    "resume",
    "train",
]
