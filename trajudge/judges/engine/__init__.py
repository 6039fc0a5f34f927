"""Requests on their way to a model: cached, deduplicated, rate limited, retried, within a budget.

``engine.Engine`` puts the parts together; a judge reaches it through an ``EngineClient``. A judge
knows no cache, no retry and no limit, and an adapter knows none either.
"""
