"""Parameters that a model does not support, learned from its answers at run time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pydantic import JsonValue

from trajudge.judges.adapters.protocols.error_body import ErrorBody
from trajudge.judges.adapters.protocols.failures import refused_parameter

_OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class UnsupportedParameters:
    """Parameters to leave out, or to send under their other name, by model."""

    def __init__(self) -> None:
        self._refused: defaultdict[str, set[str]] = defaultdict(set)

    def apply(self, model: str, parameters: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the parameters that will really be sent."""
        refused = self._refused[model]
        effective: dict[str, JsonValue] = {}
        for wanted, value in parameters.items():
            name = _OTHER_NAME.get(wanted, wanted) if wanted in refused else wanted
            if name not in refused:
                effective[name] = value
        return effective

    def learn(
        self, model: str, status: int, error: ErrorBody, sent: Mapping[str, JsonValue]
    ) -> bool:
        """Learn from an error; True if it names a parameter that was sent and will be left out from
        now on.

        Every call that returns True makes the next request different, so the loop ends.
        """
        if status not in {400, 422}:
            return False
        name = refused_parameter(error, sent.keys())
        if name is None:
            return False
        self._refused[model].add(name)
        return True
