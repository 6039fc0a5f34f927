"""Requests on their way to a model: cached, deduplicated, rate limited, retried, within a budget.

``Engine`` puts the parts together; a judge reaches it through an ``EngineClient``. A judge knows no
cache, no retry and no limit, and an adapter knows none either.
"""

from __future__ import annotations

from trajudge.judges.engine.budget import Budget, BudgetSpent, Price
from trajudge.judges.engine.clients import DryRunClient, DryRunRoute, EngineClient, ModelRoute
from trajudge.judges.engine.engine import Engine, EngineReply
from trajudge.judges.engine.engines import EngineLookup, Engines
from trajudge.judges.engine.expected import Estimate
from trajudge.judges.engine.limiting.limiter import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.engine.store.payments import Payments

__all__ = [
    "Budget",
    "BudgetSpent",
    "Cache",
    "DryRunClient",
    "DryRunRoute",
    "Engine",
    "EngineClient",
    "EngineLookup",
    "EngineReply",
    "Engines",
    "Estimate",
    "Limiter",
    "ModelRoute",
    "Payments",
    "Price",
    "Retry",
]
