"""How a run's requests reach a model: each one once, in turn, kept on the disk, within the limits.

``Engine`` puts the parts together; ``Asking`` is what a judge sees of it. A judge knows no cache,
no retry and no limit, and an adapter knows none either.
"""

from __future__ import annotations

from trajudge.judges.engine.asking import Asking, DryLine, DryRun, Line
from trajudge.judges.engine.budget import Budget, BudgetSpent, Price
from trajudge.judges.engine.engine import Answer, Engine, Estimate
from trajudge.judges.engine.engines import Engines
from trajudge.judges.engine.limiting.gate import Gate
from trajudge.judges.engine.retry import Retry
from trajudge.judges.engine.store.cache import Cache
from trajudge.judges.engine.store.payments import Payments

__all__ = [
    "Answer",
    "Asking",
    "Budget",
    "BudgetSpent",
    "Cache",
    "DryLine",
    "DryRun",
    "Engine",
    "Engines",
    "Estimate",
    "Gate",
    "Line",
    "Payments",
    "Price",
    "Retry",
]
