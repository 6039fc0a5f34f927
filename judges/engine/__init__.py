"""Requests on their way to a model: cached, deduplicated, rate limited, retried, within a budget.

``Engine`` puts the parts together; a judge reaches it through an ``EngineClient``. A judge knows no
cache, no retry and no limit, and an adapter knows none either.
"""

from __future__ import annotations

from trajudge.judges.engine.budget import Budget, BudgetSpent, Price
from trajudge.judges.engine.clients import DryRunClient, DryRunRoute, EngineClient, ModelRoute
from trajudge.judges.engine.engine import Answer, Engine, Estimate
from trajudge.judges.engine.engines import Engines
from trajudge.judges.engine.limiting.gate import Gate
from trajudge.judges.engine.retry import Retry
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.engine.store.payments import Payments

__all__ = [
    "Answer",
    "Budget",
    "BudgetSpent",
    "Cache",
    "DryRunClient",
    "DryRunRoute",
    "Engine",
    "EngineClient",
    "Engines",
    "Estimate",
    "Gate",
    "ModelRoute",
    "Payments",
    "Price",
    "Retry",
]
