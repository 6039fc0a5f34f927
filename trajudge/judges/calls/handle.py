"""A model ready to be asked: adapter, engine, prices, and what calls would cost."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from trajudge.judges.adapters.base import Adapter, MarksPrompts, TakesReasoning
from trajudge.judges.adapters.context_windows import ContextWindow
from trajudge.judges.adapters.protocols.reasoning import NAMES
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.calls.estimates import expected_usage, most_usage
from trajudge.judges.calls.image_limits import image_limits
from trajudge.judges.calls.parameters import read_parameters
from trajudge.judges.calls.prices import find_price
from trajudge.judges.calls.readiness import wait_until_ready
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.calls.windows import find_window
from trajudge.judges.engine import (
    Budget,
    Cache,
    DryRunClient,
    DryRunRoute,
    Engine,
    EngineClient,
    EngineLookup,
    Engines,
    Limiter,
    ModelRoute,
    Payments,
    Retry,
)
from trajudge.judges.model import Request, Usage
from trajudge.judges.models.capabilities import Capability, capability
from trajudge.judges.models.own import OwnModels
from trajudge.judges.models.prices import KnownPrice
from trajudge.judges.prompting.auxiliary_model import AuxiliaryModel
from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.trajectories.tokens import ImagePricing
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.local.cache import cache_folder


@dataclass(frozen=True)
class ModelHandle:
    """``known.context`` is the ``window``'s; ``parameters`` are those of every call; ``adapter``
    knows the provider; ``others`` are the models beside the judge's own, by role
    (``captioner``)."""

    model: str
    adapter: Adapter
    known: Capability
    window: ContextWindow
    parameters: Mapping[str, JsonValue]
    priced: KnownPrice
    calls: CallConfig
    others: Mapping[str, ModelHandle] = field(default_factory=dict)

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run's manifest says of the model."""
        return {
            "model": self.model,
            "endpoint": self.adapter.endpoint,
            "parameters": dict(self.parameters),
            "windows": {model: window.model_dump() for model, window in self.windows.items()},
            "prices": {
                model: handle.priced.recorded.model_dump() for model, handle in self.handles.items()
            },
        }

    @property
    def windows(self) -> dict[str, ContextWindow]:
        """Of all models, by name."""
        return {model: handle.window for model, handle in self.handles.items()}

    @property
    def images(self) -> ImageLimits:
        return image_limits(self.known)

    @property
    def pricing(self) -> ImagePricing:
        """By whose formula an image is counted in tokens."""
        return self.known.image_pricing

    @property
    def gives_logprobs(self) -> bool:
        """Whether token probabilities may be had; of most servers only the reply tells."""
        return self.adapter.name not in {"anthropic", "bedrock", "vertex"}

    @property
    def max_prompt_tokens(self) -> int:
        return max(1, self.known.context - self.max_tokens)

    @property
    def max_tokens(self) -> int:
        """Tokens of a reply at most, what the model thinks included."""
        limit = self.parameters["max_tokens"]
        return limit if isinstance(limit, int) else self.known.output

    @cached_property
    def least_tokens(self) -> int:
        """Tokens that no judge's own limit of a reply goes below: ``max_tokens`` where the model
        reasons within them, else none."""
        effort, budget = (self.parameters.get(name) for name in NAMES)
        reasons = self.known.reasons(
            str(effort) if effort else None, budget if isinstance(budget, int) else None
        )
        return self.max_tokens if reasons else 0

    def reader(self, role: str) -> AuxiliaryModel:
        """Return the model of that role as a judge's options name it; the judge's own by
        default."""
        handle = self.others.get(role, self)
        return AuxiliaryModel(
            model=None if handle is self else handle.model,
            max_prompt_tokens=handle.max_prompt_tokens,
            images=handle.images,
        )

    @cached_property
    def handles(self) -> dict[str, ModelHandle]:
        """All models by name, this one first."""
        return {handle.model: handle for handle in (self, *self.others.values())}

    def price(self, model: str, usage: Usage) -> float | None:
        """Return US dollars, None if the price is not known."""
        return self.handles[model].priced.cost(usage)

    def batch_price(self, model: str, usage: Usage) -> float | None:
        """Return US dollars through the provider's batch interface, None if they are not known."""
        price = self.handles[model].priced.price
        return price.batch.cost(usage) if price and price.batch else None

    def estimate(self, request: Request) -> Usage:
        """Return the usage to expect of a request: its tokens by our count, an assumed reply."""
        return expected_usage(request, self.pricing, self.max_tokens)

    def worst_case(self, request: Request) -> Usage:
        """Return the most that a request can take."""
        usage = most_usage(request, self.pricing, self.known.output)
        if isinstance(self.adapter, MarksPrompts):  # to write the cache costs more than to read
            return Usage(cache_write=usage.input, output=usage.output)
        return usage

    def open_cache(self) -> Cache:
        return Cache(cache_path(self.calls.cache))

    def open_engines(
        self,
        spent: float,
        payments: Payments | None = None,
        *,
        prompts_repeat: bool = False,
    ) -> Engines:
        """Open the engines of one session; ``spent`` dollars went to earlier ones, ``payments``
        takes down what this one pays, and ``prompts_repeat`` where each is asked several times."""
        calls = self.calls
        for handle in self.handles.values():
            if isinstance(handle.adapter, MarksPrompts):
                handle.adapter.prompts_repeat = prompts_repeat
        budget = Budget(self.price, calls.max_cost, spent, payments)
        for model in self.handles:
            budget.require_price(model)
        return Engines(
            {model: handle.adapter for model, handle in self.handles.items()},
            cache=self.open_cache(),
            limiter=self._limiter,
            retry=Retry(np.random.default_rng(calls.seed)),
            budget=budget,
        )

    def _limiter(self, endpoint: str) -> Limiter:
        calls = self.calls
        return Limiter(concurrency=calls.concurrency, rpm=calls.rpm, tpm=calls.tpm)

    def ask(
        self,
        engines: EngineLookup,
        sample: int,
        *,
        refresh: Container[str],
        since: float = inf,
    ) -> EngineClient:
        """Make the ``ask`` of one judgment; ``refresh`` and ``since`` as of ``EngineClient``."""
        own, *others = [handle._route(engines[model]) for model, handle in self.handles.items()]
        return EngineClient(own, others, sample, refresh=refresh, since=since)

    def _route(self, engine: Engine) -> ModelRoute:
        """Return how this model is reached with an engine, the same for all judgments of a run."""
        if engine not in self._routes:
            self._routes.clear()
            self._routes[engine] = ModelRoute(
                engine,
                self.model,
                self.parameters,
                self.estimate,
                self.worst_case,
                self.least_tokens,
            )
        return self._routes[engine]

    @cached_property
    def _routes(self) -> dict[Engine, ModelRoute]:
        return {}

    def dry_ask(self, cache: Cache, sample: int, *, batch: bool = False) -> DryRunClient:
        """Make an ``ask`` that only prices, by the prices of batches if that is asked for."""
        own, *others = (
            DryRunRoute(
                handle.adapter.endpoint,
                model,
                handle.parameters,
                handle.estimate,
                handle.least_tokens,
            )
            for model, handle in self.handles.items()
        )
        price = self.batch_price if batch else self.price
        return DryRunClient(own, others, sample, price=price, cache=cache)


def single_model(named: str, calls: CallConfig) -> ModelHandle:
    """Make one model from the options of its calls. Raises UserError for what cannot work."""
    own = OwnModels(calls.models, calls.prices)
    entry = own.entry(named)
    known = capability(entry.same_as or named).model_copy(update=entry.facts)
    asked = read_parameters(calls, known, entry.parameters)
    adapter, model = make_adapter(
        named,
        adapter="scripted" if calls.script and not calls.adapter else calls.adapter,
        base_url=calls.base_url,
        timeout=calls.timeout,
        max_connections=calls.concurrency,
        script=calls.script,
        dry_run=calls.dry_run,
        known=known,
        headers=asked.headers,
    )
    if calls.wait and adapter.endpoint.startswith("http") and not calls.dry_run:
        wait_until_ready(adapter.endpoint.partition("#")[0], calls.wait)
    if isinstance(adapter, TakesReasoning):
        adapter.told(asked.parameters, model)
    folder = cache_path(calls.cache).parent
    of_file = entry.context or (known.context if entry.same_as else None)
    window = find_window(model, adapter, calls, folder, of_file=of_file)
    priced = own.price(named) or find_price(named, adapter, folder)
    known = known.model_copy(update={"context": window.tokens})
    handle = ModelHandle(model, adapter, known, window, asked.parameters, priced, calls)
    if handle.max_tokens >= window.tokens:
        raise UserError(
            f"{named}: its window of {window.tokens:,} tokens has no room for a prompt beside "
            f"--max-tokens {handle.max_tokens}: lower --max-tokens, or raise --context"
        )
    return handle


def cache_path(named: str | None) -> Path:
    """Return ``--cache``, ``TRAJUDGE_CACHE``, or a file in the user's cache folder."""
    if named:
        return Path(named)
    return Path(os.environ.get("TRAJUDGE_CACHE") or cache_folder() / "replies.sqlite")
