"""Requests on their way to a model: cached, deduplicated, rate limited, retried, within a budget.

``Engine`` puts the parts together; a judge reaches it through an ``EngineClient``. A judge knows no
cache, no retry and no limit, and an adapter knows none either.
"""

from __future__ import annotations

from trajudge.judges.engine.budget import Budget, BudgetSpent, Estimate, Payments, Price
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import (
    DryRunClient,
    Engine,
    EngineClient,
    EngineReply,
    Engines,
    ModelRoute,
)
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry

__all__ = [
    "Budget",
    "BudgetSpent",
    "Cache",
    "DryRunClient",
    "Engine",
    "EngineClient",
    "EngineReply",
    "Engines",
    "Estimate",
    "Limiter",
    "ModelRoute",
    "Payments",
    "Price",
    "Retry",
]
