"""A model ready to be asked: its adapter, engine, window, prices and parameters, and what calls
would cost.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from http.client import HTTPException
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request as UrlRequest
from urllib.request import build_opener

import numpy as np
import orjson
from pydantic import BaseModel, JsonValue

from trajudge.judges.adapters.base import (
    Adapter,
    MarksPrompts,
    ReportsContextWindow,
    ReportsPrice,
    ReportsSlots,
    TakesReasoning,
)
from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.adapters.failures import read_error, shown
from trajudge.judges.adapters.routing import make_adapter
from trajudge.judges.adapters.sdk import no_answer, place_of
from trajudge.judges.adapters.wire import BODY, HEADERS, NAMES, without_secrets
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.engine.budget import Budget, Payments
from trajudge.judges.engine.cache import Cache
from trajudge.judges.engine.engine import DryRunClient, Engine, EngineClient, Engines, ModelRoute
from trajudge.judges.engine.limits import Limiter
from trajudge.judges.engine.retry import Retry
from trajudge.judges.model import Picture, Request, Text, Usage
from trajudge.judges.models import (
    Capability,
    ContextWindow,
    KnownPrice,
    OwnModels,
    Price,
    capability,
    is_known,
    listed_price,
)
from trajudge.judges.prompting import AuxiliaryModel, ImageLimits
from trajudge.trajectories.tokens import (
    ImagePricing,
    count_tokens,
    counting_for,
    encoding_of,
    image_tokens,
    likely_tokens,
)
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular, write_bytes
from trajudge.util.machine import cache_folder
from trajudge.util.masking import remember_headers

R = TypeVar("R", bound=BaseModel)

# What a judgment's reply was seen to take, with room: for predictions and the token limit.
EXPECTED_OUTPUT = 400

MESSAGE_OVERHEAD = 4

# Factors of the worst case: a text of 20 kB takes up to 1.09 times our count
# (benchmarks.token_estimates), and other tokenizers than OpenAI's may take half as much again.
COUNT_MARGIN = 1.2

GUESS_MARGIN = 1.6


def expected_usage(request: Request, pricing: ImagePricing, max_tokens: int) -> Usage:
    """Return the usage to expect of a request: its tokens, and an assumed reply of at most
    ``max_tokens``."""
    texts, pictures = _parts(request)
    with counting_for(encoding_of(request.model)):
        tokens = sum(map(likely_tokens, texts))
    tokens += MESSAGE_OVERHEAD * len(request.messages) + _image_tokens(pictures, pricing)
    return Usage(input=tokens, output=min(EXPECTED_OUTPUT, max_tokens))


def most_usage(request: Request, pricing: ImagePricing, longest_reply: int) -> Usage:
    """Return the most that a request can take: its prompt and a margin (of a tokenizer that is not
    public a wide one), and an answer as long as the request allows, else of ``longest_reply``
    tokens."""
    encoding = encoding_of(request.model)
    texts, pictures = _parts(request)
    if schema := request.parameters.get("response_format"):
        texts.append(json.dumps(schema))
    with counting_for(encoding):
        counted = sum(map(count_tokens, texts))
    tokens = (
        MESSAGE_OVERHEAD * (1 + len(request.messages))
        + ceil(counted * (COUNT_MARGIN if encoding else GUESS_MARGIN))
        + _image_tokens(pictures, pricing)
    )
    limit = request.parameters.get("max_tokens")
    return Usage(input=tokens, output=limit if isinstance(limit, int) else longest_reply)


def _parts(request: Request) -> tuple[list[str], list[Picture]]:
    """Return the texts and the pictures of a prompt."""
    parts = [part for message in request.messages for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return texts, [part for part in parts if isinstance(part, Picture)]


def _image_tokens(pictures: Iterable[Picture], pricing: ImagePricing) -> int:
    return sum(image_tokens(one.width, one.height, pricing) for one in pictures)


# What an adapter makes of the request itself.
_OURS = {"model", "messages", "system", "stream"}


class CallParameters(NamedTuple):
    """``parameters`` go into requests, manifests and cache keys; ``headers`` are those that are
    sent, of which ``parameters`` hold what is no secret."""

    parameters: dict[str, JsonValue]
    headers: dict[str, str]


def read_parameters(
    calls: CallConfig, known: Capability, entry: Mapping[str, JsonValue]
) -> CallParameters:
    """Return the parameters of every call: those of the options, and before them the model's own
    (``entry``). Raises UserError for extras that cannot be added."""
    given: dict[str, JsonValue] = {
        **calls.parameters,
        BODY: _object("--extra-body", calls.extra_body),
        HEADERS: _object("--extra-headers", calls.extra_headers),
    }
    joined = given | dict(entry)
    parameters: dict[str, JsonValue] = {
        name: value for name, value in joined.items() if value not in (None, {})
    }
    effort, budget = parameters.get("reasoning_effort"), parameters.get("thinking_budget")
    if "max_tokens" not in parameters:
        limit = known.default_max_tokens(
            str(effort) if effort else None, budget if isinstance(budget, int) else None
        )
        parameters["max_tokens"] = limit
    headers = _headers(parameters.pop(HEADERS, {}))
    remember_headers(headers)
    if headers:
        parameters[HEADERS] = without_secrets(headers)
    _check_body(_mapping("--extra-body", parameters.get(BODY, {})))
    return CallParameters(parameters, headers)


def _object(option: str, text: str | None) -> dict[str, JsonValue]:
    """Read the JSON object of an option. Raises UserError."""
    if text is None:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return _mapping(option, value)


def _mapping(option: str, value: JsonValue) -> dict[str, JsonValue]:
    """Check that it is an object. Raises UserError."""
    if not isinstance(value, dict):
        raise UserError(f'{option}: must be a JSON object such as {{"name": "value"}}')
    return value


def _headers(value: JsonValue) -> dict[str, str]:
    """Check names and values of headers; a refused value is not shown, it may be a secret."""
    headers = _mapping("--extra-headers", value)
    for name, text in headers.items():
        if not isinstance(text, str) or not text.isprintable() or not name.isprintable():
            raise UserError(f"--extra-headers: the value of {name!r} must be text on one line")
    return {name: str(text) for name, text in headers.items()}


def _check_body(body: Mapping[str, JsonValue]) -> None:
    if named := _OURS & body.keys():
        raise UserError(f"--extra-body: {min(named)!r} is the judge's own: leave it out")


def find_window(
    model: str, adapter: Adapter, calls: CallConfig, folder: Path, *, of_file: int | None = None
) -> ContextWindow:
    """Return the window to cut prompts to: ``of_file`` is that of the user's own entry, and
    ``folder`` keeps what servers reported.

    Raises UserError if nobody knows the model's window and its server cannot be reached.
    """
    if calls.context is not None:
        return ContextWindow(tokens=calls.context, source="named")
    if of_file is not None:
        return ContextWindow(tokens=of_file, source="file")
    table = ContextWindow(
        tokens=capability(model).context, source="table" if is_known(model) else "guess"
    )
    if not isinstance(adapter, ReportsContextWindow):
        return table
    place = f"{adapter.endpoint} {model}"
    try:
        ask = partial(adapter.context_window, model)
        return _reported(folder / "windows.json", place, ask, ContextWindow) or table
    except Unreachable as failure:
        if table.source == "guess" and not calls.dry_run:
            raise UserError(
                f"{failure}, and the window of {model!r} is not known: start the server, or name "
                "the window with --context N"
            ) from failure
        return table


def _reported(file: Path, place: str, ask: Callable[[], R | None], kind: type[R]) -> R | None:
    """Return what a server reports, and where it is out of reach what it did earlier, which
    ``file`` keeps. Raises Unreachable if it never did."""
    kept: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        content = orjson.loads(read_regular(file))
        kept = content if isinstance(content, dict) else {}
    try:
        found = ask()
    except Unreachable:
        if place not in kept:
            raise
        return kind.model_validate(kept[place]) if isinstance(kept[place], dict) else None
    content = found and found.model_dump(exclude_defaults=True)
    if place not in kept or kept[place] != content:
        with suppress(OSError):  # a full or read-only disk is the cache's to report
            file.parent.mkdir(parents=True, exist_ok=True)
            kept[place] = content
            write_bytes(file, orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    return found


def find_price(model: str, adapter: Adapter, folder: Path) -> KnownPrice:
    """Return the table's price where the maker's or the cloud's own service answers; on another
    server the model has another, which that may list. ``folder`` keeps what servers reported."""
    if not adapter.endpoint.startswith("http") and (listed := listed_price(model)).price:
        return listed
    if not isinstance(adapter, ReportsPrice):
        return KnownPrice()
    ask = partial(adapter.reported_price, model)
    price = None
    with suppress(Unreachable):
        price = _reported(folder / "prices.json", f"{adapter.endpoint} {model}", ask, Price)
    if price is None:
        return KnownPrice()
    return KnownPrice(source="server", detail=adapter.endpoint, price=price)


PATIENCE = 5.0  # seconds for each question

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0

_LOADING = {502, 503, 504}


def wait_until_ready(url: str, seconds: float) -> None:
    """Return when the server whose protocol is at ``url`` has loaded its model.

    vLLM and SGLang refuse connections until then; llama.cpp, and a gateway before them, answer 503.
    Notes on standard error say why it waits. Raises UserError after ``seconds``.
    """
    started = time.monotonic()
    said = ""
    for pause in _pauses():
        reason = why_not_ready(url)
        waited = time.monotonic() - started
        if not reason:
            if said:
                sys.stderr.write(f"note: {place_of(url)} is ready after {waited:.0f} s\n")
            return
        if waited + pause > seconds:
            raise UserError(
                f"--wait {seconds:g}: {reason}: start the server, or give it more seconds"
            )
        if reason != said:
            sys.stderr.write(f"note: waiting for the server, {seconds:g} s at most: {reason}\n")
            said = reason
        time.sleep(pause)


def why_not_ready(url: str) -> str:
    """Return why the server cannot be asked now, "" if it can: what it says of its health (where it
    has such an address), and whether it lists its models."""
    root = url.removesuffix("/v1")
    return _trouble(f"{root}/health") or _trouble(f"{url}/models")


def _trouble(url: str) -> str:
    place = place_of(url)
    try:
        with build_opener().open(UrlRequest(url), timeout=PATIENCE):  # noqa: S310 - http(s) only
            return ""
    except HTTPError as error:
        if error.code not in _LOADING:
            return ""
        words = shown(read_error(error.read(2000)).message)
        return f"{place} answered {error.code}" + (f" ({words})" if words else "")
    except URLError as error:
        reason = error.reason
        return str(no_answer(reason if isinstance(reason, Exception) else error, place))
    except (OSError, HTTPException) as error:
        return str(no_answer(error, place))


def _pauses() -> Iterator[float]:
    """Yield seconds between two questions, each twice the last up to the longest."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


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
            "prices": {model: handle.priced.model_dump() for model, handle in self.handles.items()},
        }

    @property
    def windows(self) -> dict[str, ContextWindow]:
        """Of all models, by name."""
        return {model: handle.window for model, handle in self.handles.items()}

    @property
    def images(self) -> ImageLimits:
        """Limits of the pictures that the model is shown."""
        known = self.known
        return ImageLimits(
            max_side=known.image_max_side,
            max_pixels=known.image_max_pixels,
            max_bytes=known.image_max_bytes,
            media_types=known.image_media_types,
            pricing=known.image_pricing,
        )

    @property
    def pricing(self) -> ImagePricing:
        """By whose formula an image is counted in tokens."""
        return self.known.image_pricing

    @property
    def gives_logprobs(self) -> bool:
        """Whether token probabilities may be had; of most servers only the reply tells."""
        return self.adapter.name not in {"anthropic", "bedrock", "vertex"}

    @property
    def gives_structured_output(self) -> bool:
        """Whether an answer may be asked for by a JSON schema: where the model is known to take
        one, and of a server of OpenAI's protocol, which is asked without once it refuses."""
        if self.known.structured_output is not None:
            return self.known.structured_output
        return self.adapter.name in {"http", "openai", "local"}

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

    def check_prices(self) -> None:
        """Raise UserError where dollars are limited and the price of a model is not known."""
        budget = Budget(self.price, self.calls.max_cost)
        for model in self.handles:
            budget.require_price(model)

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
        self.check_prices()
        budget = Budget(self.price, calls.max_cost, spent, payments)
        return Engines(
            {model: handle.adapter for model, handle in self.handles.items()},
            cache=self.open_cache(),
            limiter=self._limiter,
            retry=Retry(np.random.default_rng(calls.seed)),
            budget=budget,
        )

    def _limiter(self, endpoint: str) -> Limiter:
        calls = self.calls
        at_once = calls.concurrency
        if "concurrency" not in calls.model_fields_set:  # more would only wait in the server
            at_once = min([at_once, *self._slots(endpoint)])
        return Limiter(concurrency=at_once, rpm=calls.rpm, tpm=calls.tpm)

    def _slots(self, endpoint: str) -> Iterator[int]:
        """Yield how many requests the server of an endpoint says that it answers at once."""
        for model, handle in self.handles.items():
            if handle.adapter.endpoint == endpoint and isinstance(handle.adapter, ReportsSlots):
                with suppress(Unreachable):
                    if slots := handle.adapter.slots(model):
                        yield slots

    def ask(
        self,
        engines: Mapping[str, Engine],
        sample: int,
        *,
        refresh: Container[str],
        since: float = inf,
    ) -> EngineClient:
        """Make the ``ask`` of one judgment; ``refresh`` and ``since`` as of ``EngineClient``."""
        own, *others = self._routes
        return EngineClient(engines, own, others, sample, refresh=refresh, since=since)

    @cached_property
    def _routes(self) -> list[ModelRoute]:
        """How the models are reached, this one first."""
        return [
            ModelRoute(
                handle.adapter.endpoint,
                model,
                handle.parameters,
                handle.estimate,
                handle.worst_case,
                handle.least_tokens,
            )
            for model, handle in self.handles.items()
        ]

    def dry_ask(self, cache: Cache, sample: int, *, batch: bool) -> DryRunClient:
        """Make an ``ask`` that only prices, by the prices of batches if that is asked for."""
        own, *others = self._routes
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
        adapter.reasoning_fields(asked.parameters, model)
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


_WINDOWS = {
    "table": "by the table",
    "named": "by --context",
    "file": "by --models",
    "server": "by its server",
    "litellm": "by litellm",
    "guess": "a guess",
}


def known_facts(handle: ModelHandle) -> str:
    """Say the model's window, limit of a reply and price, each with its source."""
    window = handle.window
    return (
        f"{handle.model}: window {window.tokens:,} tokens ({_WINDOWS[window.source]}), "
        f"replies up to {handle.max_tokens:,}, {_price(handle.priced)}"
    )


def _price(known: KnownPrice) -> str:
    price = known.price
    if price is None:
        return "price unknown (name it with --models or --prices)"
    dearer = f", more above {price.tiers[0].above:,} tokens" if price.tiers else ""
    return (
        f"${price.input:g} in and ${price.output:g} out per million tokens{dearer} "
        f"({known.source}: {known.detail})"
    )
