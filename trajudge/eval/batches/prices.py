"""Prices of batches: those that their own run records, whoever collects them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trajudge.eval.store.run_folder import MANIFEST, read_manifest
from trajudge.judges.batch.records import BatchRow
from trajudge.judges.model import Usage
from trajudge.judges.models.prices import Price, RecordedPrice, listed_price
from trajudge.util.errors import UserError


class RunPrices:
    """Prices of runs by their folders, each manifest read once. Where a folder is gone, or an
    earlier release made it, the prices of the table hold if its own did."""

    def __init__(self) -> None:
        self._price = cache(_recorded)

    def dollars(self, row: BatchRow, usage: Usage) -> float | None:
        """Return the dollars of a line of a batch, None if its run knows no price. Raises UserError
        for a manifest that cannot be read."""
        price = self._price(row.run, row.model)
        return None if price is None else (price.batch or price).cost(usage)


def _recorded(run: str, model: str) -> Price | None:
    prices = _prices(Path(run))
    if model not in prices:
        return listed_price(model).price
    try:
        recorded = RecordedPrice.model_validate(prices[model])
    except ValidationError as error:
        raise UserError(
            f"{Path(run) / MANIFEST}: the price of {model} cannot be read: start the run's own "
            "command again, which writes it anew"
        ) from error
    if recorded.price is None and recorded.source == "table":
        return listed_price(model).price
    return recorded.price


def _prices(folder: Path) -> Mapping[str, Any]:
    if not (folder / MANIFEST).is_file():
        return {}
    prices = read_manifest(folder).get("prices")
    return prices if isinstance(prices, dict) else {}
