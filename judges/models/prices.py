"""Prices of calls. An unknown model has no price: None, never 0."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from trajudge.judges.model import Usage
from trajudge.judges.models.names import served_model
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.errors import UserError

_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


class Price(Record):
    """US dollars per million tokens. Without a price of its own, a cached token costs ``input``."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)

    def times(self, factor: float) -> Price:
        """Return all prices multiplied by ``factor``."""
        if factor == 1:
            return self
        prices = self.model_dump(exclude_none=True)
        return Price(**{name: price * factor for name, price in prices.items()})


class PriceTable:
    """The dated table in ``prices.toml``, overridden by the user's own file."""

    def __init__(self, models: dict[str, Price], *, date: str) -> None:
        self._models = models
        self.date = date

    def price(self, model: str) -> Price | None:
        """Look up a price by the exact name, else by its maker's (what the cloud adds included),
        else without the date at its end.

        The price of a family does not hold for its other models: ``gpt-4o-audio`` is not
        ``gpt-4o``.
        """
        if model in self._models:
            return self._models[model]
        bare = model.rpartition("/")[2]
        if known := self._models.get(bare) or self._models.get(_VERSION.sub("", bare)):
            return known
        name, surcharge = served_model(model)
        price = self._models.get(name) or self._models.get(_VERSION.sub("", name))
        return price.times(surcharge) if price else None

    def cost(self, usage: Usage, model: str) -> float | None:
        """Compute US dollars of the tokens, None if the model's price is not known."""
        price = self.price(model)
        if price is None:
            return None
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        dollars = (
            usage.input * price.input
            + usage.cache_read * read
            + usage.cache_write * write
            + usage.output * price.output
        )
        return dollars / 1_000_000


def load_prices(path: Path | None = None, *, built_in: bool = True) -> PriceTable:
    """Load the built-in table, overridden by the user's file of the same form: ``[models."NAME"]``
    with ``input`` and ``output``. Without ``built_in`` only the user's file counts: a model of that
    name on another server has another price.

    Raises UserError naming the file and what is wrong in it.
    """
    table = tomllib.loads(files("trajudge.judges.models").joinpath("prices.toml").read_text())
    models, date = _models(table) if built_in else {}, str(table["date"])
    if path is None:
        return PriceTable(models, date=date)
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8"))
        models |= _models(own)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--prices {path}: the file cannot be read ({error})") from None
    except (tomllib.TOMLDecodeError, ValidationError, KeyError, TypeError, AttributeError) as error:
        line = str(error).splitlines()[0]
        raise UserError(
            f'--prices {path} is not a price table ({line}): write  [models."NAME"]  with  '
            "input = DOLLARS  and  output = DOLLARS  per million tokens"
        ) from None
    return PriceTable(models, date=f"{date}, with {path.name}")


def _models(table: dict[str, Any]) -> dict[str, Price]:
    return {name: Price(**fields) for name, fields in table["models"].items()}
