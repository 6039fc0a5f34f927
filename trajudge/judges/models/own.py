"""The user's own entries, which go before the table: ``--models FILE`` and ``--prices FILE``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import Field, JsonValue, ValidationError

from trajudge.judges.models.prices import KnownPrice, Price, PriceSource
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")

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
    """The entries of both options, by model; ``models`` is a file or a JSON object, ``prices`` a
    file. Raises UserError naming the option and every mistake, a line each."""

    def __init__(self, models: str | None, prices: str | None) -> None:
        self._entries = _read_models(models) if models else {}
        self._prices = _read_prices(prices) if prices else {}
        self._models_file = _name(models) if models else ""
        self._prices_file = Path(prices).name if prices else ""

    def entry(self, model: str) -> ModelEntry:
        """Return the model's entry, an empty one where it has none."""
        return _named(self._entries, model) or ModelEntry()

    def price(self, model: str) -> KnownPrice | None:
        """Return the model's price: of ``--prices``, else of ``--models``."""
        if price := _named(self._prices, model):
            return _of_file(price, self._prices_file)
        price = self.entry(model).price
        return None if price is None else _of_file(price, self._models_file)


def _of_file(price: Price, file: str) -> KnownPrice:
    return KnownPrice(price=price, source=PriceSource(source="file", detail=file))


def _named(entries: Mapping[str, EntryT], model: str) -> EntryT | None:
    """Find an entry by the exact name, else without ``provider/``, else without the date at its
    end."""
    bare = model.rpartition("/")[2]
    names = (model, bare, _VERSION.sub("", bare))
    return next((entries[name] for name in names if name in entries), None)


def _read_models(source: str) -> dict[str, ModelEntry]:
    option = f"--models {'{...}' if _is_json(source) else source}"
    if _is_json(source):
        try:
            table = {"models": orjson.loads(source)}
        except orjson.JSONDecodeError as error:
            raise UserError(f"{option}: not JSON ({error}): mend it, or name a file") from None
    else:
        table = _toml(option, source)
    return _entries(option, table, ModelEntry, "context = TOKENS")


def _read_prices(source: str) -> dict[str, Price]:
    option = f"--prices {source}"
    form = "input = DOLLARS  and  output = DOLLARS  per million tokens"
    return _entries(option, _toml(option, source), Price, form)


def _is_json(source: str) -> bool:
    return source.lstrip().startswith("{")


def _name(source: str) -> str:
    return "{...}" if _is_json(source) else Path(source).name


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
