"""What a model's server does not take, learned from its answers at run time: parameters, and
messages of several texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pydantic import JsonValue

from trajudge.judges.adapters.failures import ErrorBody, is_about_parts, refused_parameter

_OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class UnsupportedParameters:
    """Parameters to leave out, or to send under their other name, by model; and models whose server
    wants the texts of a message joined."""

    def __init__(self) -> None:
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        self._joined = set[str]()

    def joins_texts(self, model: str) -> bool:
        """Return True if several texts of a message go as one."""
        return model in self._joined

    def shown(self, model: str) -> dict[str, JsonValue]:
        """Return what a reply's parameters say of how its prompt went out."""
        return {"text_parts": "joined"} if model in self._joined else {}

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
        now on, or says that texts are to be joined, as they will be.

        Every call that returns True makes the next request different, so the loop ends.
        """
        if status not in {400, 422}:
            return False
        if is_about_parts(status, error) and model not in self._joined:
            self._joined.add(model)
            return True
        name = refused_parameter(error, sent.keys())
        if name is None:
            return False
        self._refused[model].add(name)
        return True
