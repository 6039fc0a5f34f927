"""Facts about models: windows, images, reasoning, and prices.

``table.json`` is litellm's table of those that chat, as ``generate`` writes it. A row holds only
what is stated: ``context`` and ``output`` in tokens, flags, and ``price`` and ``batch`` as tiers
``[above, input, output, cache_read, cache_write, reasoning]`` in US dollars per million tokens,
which hold for requests whose prompt has more than ``above`` tokens. ``capabilities.toml`` adds what
it does not state, by family. The user's own entries (``--models``, ``--prices``) go before both.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import orjson
from pydantic import Field, JsonValue, ValidationError, model_validator

from trajudge.judges.model import Usage
from trajudge.trajectories.model import Record
from trajudge.trajectories.tokens import ImagePricing
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import read_text

# Names

# Bedrock: region, maker, model, its version there. Vertex AI: the date behind an @.
_BEDROCK = re.compile(
    r"(?:(?P<region>[a-z-]+)\.)?anthropic\.(?P<name>claude-[a-z0-9.-]+?)(?:-v\d+(?::\d+\w*)?)?"
)
_VERTEX = re.compile(r"(?P<name>claude-[a-z0-9.-]+)@(?P<date>\d{8}|default|latest)")
_REGIONAL_SURCHARGE, _SURCHARGE = 1.1, {"us-gov": 1.2}
# Asked for in any region, or where the request arrives: at the maker's own price.
_WITHOUT_SURCHARGE = {None, "global"}
_BEFORE_SURCHARGES = re.compile(r"claude-3|claude-(opus|sonnet)-4(-1)?(-\d{8})?$")
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|latest|default)$")
# How names with these prefixes stand in the table; "": without any.
_SAME_SERVICE = {
    "openai": ("",),
    "anthropic": ("",),
    "bedrock": ("", "bedrock/"),
    "vertex": ("vertex_ai/", ""),
    "vertex_ai": ("vertex_ai/", ""),
}


class ServedModel(NamedTuple):
    """A model by its maker's name in lower case, and the factor of its maker's price that Bedrock
    takes for keeping a request in one region (since Claude 4.5; as litellm's table states it)."""

    name: str
    surcharge: float = 1.0


def served_model(model: str) -> ServedModel:
    """Read ``model``, with or without ``provider/``: ``bedrock/us.anthropic.claude-opus-4-6-v1`` is
    ``claude-opus-4-6``, and so is ``vertex/claude-opus-4-6@default``."""
    bare = model.rpartition("/")[2].lower()
    if named := _BEDROCK.fullmatch(bare):
        region = named["region"]
        if region in _WITHOUT_SURCHARGE or _BEFORE_SURCHARGES.match(named["name"]):
            return ServedModel(named["name"])
        return ServedModel(named["name"], _SURCHARGE.get(region, _REGIONAL_SURCHARGE))
    if named := _VERTEX.fullmatch(bare):
        dated = named["date"].isdigit()
        return ServedModel(f"{named['name']}-{named['date']}" if dated else named["name"])
    return ServedModel(bare)


def model_name(model: str) -> str:
    """Return the maker's name of ``model``."""
    return served_model(model).name


# The table

Row = Mapping[str, Any]


@cache
def _table() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(files(__name__).joinpath("table.json").read_bytes())
    return content


def model_names() -> list[str]:
    """Return all names in the table."""
    return list(_table()["models"])


def _row(names: Iterable[str]) -> tuple[str, Row] | None:
    """Return the first row under one of the names, else without the date at its end, and the name
    under which it stands."""
    exact, models = list(names), _table()["models"]
    undated = (_VERSION.sub("", name) for name in exact)
    return next(((name, models[name]) for name in (*exact, *undated) if name in models), None)


def _row_of_service(model: str) -> tuple[str, Row] | None:
    """Find ``model`` as the service that its name stands for sells it: prices and limits of that
    row hold."""
    name = model.lower()
    provider, slash, rest = name.partition("/")
    prefixes = _SAME_SERVICE.get(provider, ()) if slash else ()
    return _row([name, *(prefix + rest for prefix in prefixes)])


def _row_of_model(model: str) -> tuple[str, Row] | None:
    """Find ``model`` at any service: its own row, else its maker's. What the model is holds there
    (window, images, reasoning), what it costs may not."""
    if found := _row_of_service(model):
        return found
    name = model_name(model)
    dated = re.sub(r"-(\d{8})$", r"@\1", name)
    return _row((name, f"vertex_ai/{dated}", f"vertex_ai/{name}", f"anthropic.{name}-v1:0"))


# Capabilities

# Tokens of a reply by default: of a model that reasons first, and of any other.
REASONING_TOKENS = 16_000
REPLY_TOKENS = 1_024


class Capability(Record):
    """Capabilities of a model.

    ``context`` and ``output`` in tokens; images by longest side and area in pixels, bytes of the
    encoded file, and by whose formula one is counted in tokens. ``temperature``: whether the model
    takes one while it reasons;
    ``default_effort``: how it reasons when no effort is named. A Claude is told to think by an
    ``effort``, by ``adaptive_thinking`` or, without that or with ``budget_thinking``, by a budget;
    ``thinks_when_told``: it does not otherwise, unless it ``always_thinks``. ``cache_minimum``: the
    tokens that a prompt must begin with alike for its provider to cache them on request.
    ``structured_output`` None: nobody states it.
    """

    context: int
    output: int
    images: bool = True
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    reasoning: bool = False
    structured_output: bool | None = None
    adaptive_thinking: bool = False
    budget_thinking: bool = False
    effort: bool = False
    thinks_when_told: bool = False
    always_thinks: bool = False
    default_effort: str | None = None
    cache_minimum: int = 1024
    image_max_side: int = 2048
    image_max_pixels: int = 2048 * 2048
    image_max_bytes: int = 5_000_000
    image_pricing: ImagePricing = "unknown"
    image_media_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp"})

    def reasons(self, effort: str | None = None, budget: int | None = None) -> bool:
        """Return True if the model reasons before it answers, with this effort and token
        budget."""
        if effort or budget:
            return effort != "none"
        told_only = self.thinks_when_told or self.default_effort == "none"
        return self.reasoning and (self.always_thinks or not told_only)

    def default_max_tokens(self, effort: str | None = None, budget: int | None = None) -> int:
        """Return the tokens of a reply where nobody names them, reasoning included."""
        if not self.reasons(effort, budget):
            return min(REPLY_TOKENS, self.output)
        wanted = max(REASONING_TOKENS, (budget or 0) + REPLY_TOKENS)
        return max(1, min(wanted, self.output, self.context // 2))

    def takes_temperature(self, effort: object = None) -> bool:
        """Return True if the model takes a temperature with this effort of reasoning."""
        return self.temperature or (effort or self.default_effort) == "none"


class ContextWindow(Record):
    """Tokens of prompt and reply together, and where the number is from: the ``table`` of known
    models, the user (``named``, or by a ``file`` of models), the model's ``server``, the
    ``litellm`` package, or nobody (``guess``)."""

    tokens: int
    source: Literal["table", "named", "file", "server", "litellm", "guess"]


@cache
def capability(model: str) -> Capability:
    """Look up ``model``, with or without ``provider/``: its row in the table, and what that does
    not state by its family (``capabilities.toml``); a careful default for the unknown."""
    name = model_name(model)
    facts = next(facts for pattern, facts in _families() if fnmatchcase(name, pattern))
    if found := _row_of_model(model):
        # Of images, the table names only models that take them or take none.
        stated = {"images": False, **found[1]}
        facts = facts | {k: v for k, v in stated.items() if k in Capability.model_fields}
    return Capability(**facts)


def is_known(model: str) -> bool:
    """Return True if the table states the window of ``model``."""
    found = _row_of_model(model)
    return found is not None and "context" in found[1]


@cache
def _families() -> list[tuple[str, dict[str, Any]]]:
    """Load the patterns in the order of the file: the first match counts."""
    content = files(__name__).joinpath("capabilities.toml").read_text(encoding="utf-8")
    return [
        (pattern, {name: value for name, value in entry.items() if name != "patterns"})
        for entry in tomllib.loads(content)["family"]
        for pattern in entry["patterns"]
    ]


# Of models that a provider's own service answers: a server of the user's has names of its own.
_MAKERS = ("gemini/", "xai/", "deepseek/", "mistral/", "dashscope/")

_OWN_NAMES = ("gpt-", "chatgpt-", "claude-", *_MAKERS)


def recorded_windows(manifest: Mapping[str, object]) -> dict[str, ContextWindow]:
    """Return those of a run's manifest, none where it was recorded before windows were."""
    windows = manifest.get("windows")
    return {
        str(model): ContextWindow.model_validate(window)
        for model, window in (windows.items() if isinstance(windows, dict) else ())
    }


def guesses(windows: Mapping[str, ContextWindow]) -> Iterator[str]:
    """Yield a sentence for every model whose window is a guess."""
    for model, window in windows.items():
        if window.source == "guess":
            unknown = f"the window of {model} is not known{_similar_name(model) or ':'}"
            yield (
                f"{unknown} {window.tokens:,} tokens are a guess, and longer prompts are cut to it "
                "(coverage says how many): name it with --context N"
            )


def _similar_name(model: str) -> str:
    """Ask back where a name is close to that of another model of its maker's."""
    if not model.startswith(_OWN_NAMES):
        return ""
    maker = model[: model.find("/") + 1]  # none: OpenAI's and Anthropic's
    of_maker = (maker,) if maker else _OWN_NAMES
    return did_you_mean(model, (name for name in model_names() if name.startswith(of_maker)))


# Prices. An unknown model has none: None, never 0.


class TokenPrices(Record):
    """US dollars per million tokens. Without a price of its own, a cached token costs ``input`` and
    one of reasoning ``output``."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    reasoning: float | None = Field(default=None, ge=0)

    def cost(self, usage: Usage) -> float:
        """Compute US dollars of the tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        thought = self.output if self.reasoning is None else self.reasoning
        reasoning = min(usage.reasoning, usage.output)
        dollars = (
            usage.input * self.input
            + usage.cache_read * read
            + usage.cache_write * write
            + (usage.output - reasoning) * self.output
            + reasoning * thought
        )
        return dollars / 1_000_000


class Tier(TokenPrices):
    """The prices of a request whose prompt has more than ``above`` tokens, all of its tokens."""

    above: int = Field(ge=1)


class Price(TokenPrices):
    """What one request costs: by the length of its prompt where there are ``tiers``. ``batch`` are
    the prices of a provider's batch interface, None where they are not known."""

    tiers: tuple[Tier, ...] = ()
    batch: Price | None = None

    @model_validator(mode="after")
    def _tiers_rise(self) -> Price:
        above = [tier.above for tier in self.tiers]
        if above != sorted(set(above)):
            raise ValueError("tiers must rise by their above")
        return self

    def cost(self, usage: Usage) -> float:
        """Compute US dollars of one request's tokens."""
        prompt = usage.prompt
        tier = next((tier for tier in reversed(self.tiers) if prompt > tier.above), None)
        return TokenPrices.cost(tier or self, usage)


class KnownPrice(Record):
    """A price, None if it is not known, and where it is from: the ``table`` (``detail`` says its
    row and edition), the user's ``file``, the model's ``server``, or ``unknown``."""

    source: str = "unknown"
    detail: str = ""
    price: Price | None = None

    def cost(self, usage: Usage) -> float | None:
        """Compute US dollars of one request, None if the price is not known."""
        return None if self.price is None else self.price.cost(usage)


def listed_price(model: str) -> KnownPrice:
    """Look up the price in the table: by the exact name at that service, else without the date at
    its end, else, for a cloud's name, by the maker's with what the cloud adds.

    The price of a family does not hold for its other models: ``gpt-4o-audio`` is not ``gpt-4o``.
    """
    found, surcharge = _row_of_service(model), 1.0
    if found is None or "price" not in found[1]:
        served = served_model(model)
        if served.name == model.lower().rpartition("/")[2]:
            return KnownPrice()
        found, surcharge = _row_of_service(served.name), served.surcharge
    if found is None or "price" not in found[1]:
        return KnownPrice()
    name, row = found
    detail = f"{name} in {_table()['source']}, {_table()['date']}"
    detail += f", times {surcharge:g}" if surcharge != 1 else ""
    batch = {"batch": Price(**_tiers(row["batch"], surcharge))} if row.get("batch") else {}
    price = Price(**_tiers(row["price"], surcharge), **batch)
    return KnownPrice(source="table", detail=detail, price=price)


def _tiers(tiers: Sequence[Sequence[float | None]], factor: float) -> dict[str, Any]:
    """Name the numbers of a row's tiers, times ``factor``; the lowest begins at 0."""
    named = [
        {
            name: price * factor if price else price
            for name, price in zip(TokenPrices.model_fields, prices, strict=False)
        }
        for _, *prices in tiers
    ]
    higher = zip(tiers[1:], named[1:], strict=True)
    return {
        **named[0],
        "tiers": tuple(Tier(above=int(tier[0] or 0), **prices) for tier, prices in higher),
    }


# The user's own entries

EntryT = TypeVar("EntryT", bound=Record)


class ModelEntry(Record):
    """What the user says of a model; None: what the table says. ``same_as`` names the model that
    answers under this name, as behind a gateway: what is known of that holds. ``parameters`` are
    those of every call to it."""

    context: int | None = Field(default=None, ge=1)
    output: int | None = Field(default=None, ge=1)
    images: bool | None = None
    reasoning: bool | None = None
    structured_output: bool | None = None
    temperature: bool | None = None
    same_as: str | None = None
    price: Price | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """Return what overrides a ``Capability``."""
        return self.model_dump(exclude={"same_as", "price", "parameters"}, exclude_none=True)


class OwnModels:
    """The entries of ``--models FILE`` (or a JSON object) and ``--prices FILE``, by model. Raises
    UserError naming the option and every mistake, a line each."""

    def __init__(self, models: str | None, prices: str | None) -> None:
        self._models, self._prices = models or "", prices or ""
        self._entries: dict[str, ModelEntry] = {}
        self._own_prices: dict[str, Price] = {}
        if self._models.lstrip().startswith("{"):
            option = "--models {...}"
            try:
                table = {"models": orjson.loads(self._models)}
            except orjson.JSONDecodeError as error:
                raise UserError(f"{option}: not JSON ({error}): mend it, or name a file") from None
            self._models = "{...}"
            self._entries = _entries(option, table, ModelEntry, "context = TOKENS")
        elif models:
            option = f"--models {models}"
            self._entries = _entries(option, _toml(option, models), ModelEntry, "context = TOKENS")
        if prices:
            option = f"--prices {prices}"
            form = "input = DOLLARS  and  output = DOLLARS  per million tokens"
            self._own_prices = _entries(option, _toml(option, prices), Price, form)

    def entry(self, model: str) -> ModelEntry:
        """Return the model's entry, an empty one where it has none."""
        return _named(self._entries, model) or ModelEntry()

    def price(self, model: str) -> KnownPrice | None:
        """Return the model's price: of ``--prices``, else of ``--models``."""
        price, file = _named(self._own_prices, model), self._prices
        if price is None:
            price, file = self.entry(model).price, self._models
        if price is None:
            return None
        return KnownPrice(source="file", detail=Path(file).name, price=price)


def _named(entries: Mapping[str, EntryT], model: str) -> EntryT | None:
    """Find an entry by the exact name, else without ``provider/``, else without the date at its
    end."""
    bare = model.rpartition("/")[2]
    undated = re.sub(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$", "", bare)
    return next((entries[name] for name in (model, bare, undated) if name in entries), None)


def _toml(option: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(Path(source)))
    except OSError as error:
        raise UserError(f"{option}: the file cannot be read ({error.strerror})") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{option}: not TOML ({error}): mend the file") from None


def _entries(
    option: str, table: Mapping[str, Any], kind: type[EntryT], form: str
) -> dict[str, EntryT]:
    models = table.get("models")
    if not isinstance(models, dict) or table.keys() - {"models", "date"}:
        raise UserError(f'{option}: holds no table [models."NAME"]: write it, and below it  {form}')
    entries: dict[str, EntryT] = {}
    mistakes: list[str] = []
    for name, fields in models.items():
        try:
            entries[name] = kind.model_validate(fields)
        except ValidationError as error:
            mistakes += (f"{option}: {name}: {mistake}" for mistake in _mistakes(error, kind))
    if mistakes:
        raise UserError("\n".join(mistakes))
    return entries


def _mistakes(error: ValidationError, kind: type[Record]) -> Iterator[str]:
    """Yield a sentence for every value that was refused."""
    for one in error.errors():
        field = ".".join(map(str, one["loc"])) or "the entry"
        if one["type"] == "missing":
            yield f"{field} is missing: add it"
        elif one["type"] == "extra_forbidden":
            yield f"{field} is no field: known are {', '.join(kind.model_fields)}"
        else:
            why = one["msg"].removeprefix("Value error, ")
            yield f"{field} is {one['input']!r:.80}: {why[:1].lower() + why[1:]}"
