"""Gemini through the openai SDK, by the endpoint of Google's that speaks OpenAI's protocol:
``gemini/NAME``."""

from __future__ import annotations

from urllib.parse import urlsplit

from trajudge.judges.adapters.openai import OpenAIAdapter

_PATH = "/v1beta/openai"


class GeminiAdapter(OpenAIAdapter):
    """Chat completions of Gemini. Raises UserError if the key is missing."""

    name = "gemini"
    service = "gemini"
    own_url = f"https://generativelanguage.googleapis.com{_PATH}"
    url_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variable = "GEMINI_API_KEY"

    @staticmethod
    def _root(url: str) -> str:
        return url if urlsplit(url).path else url + _PATH
