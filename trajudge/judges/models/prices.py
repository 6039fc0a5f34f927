"""Prices of calls. An unknown model has no price: None, never 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from trajudge.judges.model import Usage
from trajudge.judges.models.names import served_model
from trajudge.judges.models.table import edition, row_of_service
from trajudge.trajectories.model import Record

_NAMES = ("input", "output", "cache_read", "cache_write", "reasoning")


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
        if not self.tiers:
            return TokenPrices.cost(self, usage)
        prompt = usage.input + usage.cache_read + usage.cache_write
        tier = next((tier for tier in reversed(self.tiers) if prompt > tier.above), None)
        return TokenPrices.cost(tier or self, usage)

    def times(self, factor: float) -> Price:
        """Return all prices multiplied by ``factor``."""
        if factor == 1:
            return self

        def scaled(prices: TokenPrices) -> dict[str, Any]:
            return {name: price * factor for name in _NAMES if (price := getattr(prices, name))}

        tiers = tuple(tier.model_copy(update=scaled(tier)) for tier in self.tiers)
        batch = self.batch and self.batch.times(factor)
        return self.model_copy(update={**scaled(self), "tiers": tiers, "batch": batch})


class PriceSource(Record):
    """Where a model's price is from: the ``table`` (``detail`` says its row and edition), the
    user's ``file``, the model's ``server``, or ``unknown``."""

    source: str
    detail: str = ""


class RecordedPrice(PriceSource):
    """A price as the manifest of a run records it. ``price`` None: it was not known, or an earlier
    release recorded its source alone."""

    price: Price | None = None


class KnownPrice(Record):
    """A price, None if it is not known, and where it is from."""

    price: Price | None = None
    source: PriceSource = PriceSource(source="unknown")

    @property
    def recorded(self) -> RecordedPrice:
        """Return what the manifest of a run records."""
        return RecordedPrice(source=self.source.source, detail=self.source.detail, price=self.price)

    def cost(self, usage: Usage) -> float | None:
        """Compute US dollars of one request, None if the price is not known."""
        return None if self.price is None else self.price.cost(usage)


def listed_price(model: str) -> KnownPrice:
    """Look up the price in the table: by the exact name at that service, else without the date at
    its end, else, for a cloud's name, by the maker's with what the cloud adds.

    The price of a family does not hold for its other models: ``gpt-4o-audio`` is not ``gpt-4o``.
    """
    found, surcharge = row_of_service(model), 1.0
    if found is None or "price" not in found.row:
        served = served_model(model)
        if served.name == model.lower().rpartition("/")[2]:
            return KnownPrice()
        found, surcharge = row_of_service(served.name), served.surcharge
    if found is None or "price" not in found.row:
        return KnownPrice()
    detail = f"{found.name} in {edition()}" + (f", times {surcharge:g}" if surcharge != 1 else "")
    price = _price(found.row).times(surcharge)
    return KnownPrice(price=price, source=PriceSource(source="table", detail=detail))


def _price(row: Mapping[str, Any]) -> Price:
    batch = row.get("batch")
    fields = {"batch": Price(**_fields(batch))} if batch else {}
    return Price(**_fields(row["price"]), **fields)


def _fields(tiers: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """Name the numbers of a row's tiers; the lowest begins at 0."""
    (_, *first), *higher = tiers
    return {**_named(first), "tiers": tuple(_tiers(higher))}


def _tiers(tiers: Sequence[Sequence[float | None]]) -> Iterator[Tier]:
    for above, *prices in tiers:
        yield Tier(above=int(above or 0), **_named(prices))


def _named(prices: Sequence[float | None]) -> dict[str, Any]:
    return dict(zip(_NAMES, prices, strict=False))
