"""The four stages of WebForge (section 3): plan, generate, refine, validate.

Each is a function of a specification and a seeded generator. A model may be asked in ``plan``: it
chooses among scenarios and words their goals, and whatever breaks a rule is dropped with its
reason; ground truth and verification are never a model's. Without one the templates do it all.
``pipeline`` runs the stages until there are as many cases as were asked for.
"""

from __future__ import annotations

from trajudge.environments.stages.model import (
    GenerationPlan,
    Produced,
    Proposal,
    SuiteSpecification,
)
from trajudge.environments.stages.pipeline import produce
from trajudge.environments.stages.plan import plan
from trajudge.environments.stages.validate import Valid, Validate

__all__ = [
    "GenerationPlan",
    "Produced",
    "Proposal",
    "SuiteSpecification",
    "Valid",
    "Validate",
    "plan",
    "produce",
]
