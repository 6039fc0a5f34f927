"""Names of models as the clouds that serve them spell them."""

from __future__ import annotations

import re
from typing import NamedTuple

# Bedrock: region, maker, model, its version there. Vertex AI: the date behind an @.
_BEDROCK = re.compile(
    r"(?:(?P<region>[a-z-]+)\.)?anthropic\.(?P<name>claude-[a-z0-9.-]+?)(?:-v\d+(?::\d+\w*)?)?"
)
_VERTEX = re.compile(r"(?P<name>claude-[a-z0-9.-]+)@(?P<date>\d{8}|default|latest)")
_SURCHARGE = {"us-gov": 1.2}
_REGIONAL_SURCHARGE = 1.1
# Asked for in any region, or where the request arrives: at the maker's own price.
_WITHOUT_SURCHARGE = {None, "global"}
_BEFORE_SURCHARGES = re.compile(r"claude-3|claude-(opus|sonnet)-4(-1)?(-\d{8})?$")


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
