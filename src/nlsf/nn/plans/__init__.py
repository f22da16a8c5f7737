"""How a model is trained fastest: its `Plan`, and what plans are made of.

A model says it in a method of its own, ``plan(dataset, rows, *, cache, dtype, progress, memory)``.
Whoever trains or applies a model asks `plan_of`, which knows a plan for models without the method.
"""

from nlsf.nn.plans.plan import Examples, Padded, Plan, PlanOptions, Signals, WholeGraph
from nlsf.nn.plans.spectral import plan_key_of, plan_of, sees_whole_graph

__all__ = [
    "Examples",
    "Padded",
    "Plan",
    "PlanOptions",
    "Signals",
    "WholeGraph",
    "plan_key_of",
    "plan_of",
    "sees_whole_graph",
]
