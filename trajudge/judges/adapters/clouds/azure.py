"""Azure OpenAI through the openai SDK: ``azure/DEPLOYMENT``."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

from trajudge.judges.adapters.base import key_from
from trajudge.judges.adapters.clouds.entra import TokenProvider, entra_tokens, is_installed
from trajudge.judges.adapters.clouds.settings import required, setting
from trajudge.judges.adapters.context_windows import ContextWindow
from trajudge.judges.adapters.openai import OpenAIAdapter

_HOSTS = (".azure.com", ".azure.us", ".azure.cn")
_TOKEN = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable


class AzureAdapter(OpenAIAdapter):
    """Chat completions of a deployment. Its name is taken for the model's, whose window, price and
    parameters it has.

    Who asks: ``token_provider``, the token of the environment, the key, and without any of them the
    default credential of Microsoft Entra where azure-identity is installed; tokens of the first and
    the last renew themselves. Raises UserError if the endpoint, the API version or the key is
    missing.
    """

    name = "azure"
    client = "AsyncAzureOpenAI"
    url_variable = "AZURE_OPENAI_ENDPOINT"
    key_variable = "AZURE_OPENAI_API_KEY"

    def __init__(
        self, model: str, *, token_provider: TokenProvider | None = None, **options: Any
    ) -> None:
        self._token_provider = token_provider
        super().__init__(model, **options)

    def _service_url(self, model: str) -> str:
        return required(
            "",
            model,
            missing=self.url_variable,
            fix=f"export {self.url_variable}=https://RESOURCE.openai.azure.com  or name the "
            "endpoint with --base-url",
        )

    @staticmethod
    def _root(url: str) -> str:
        """Return the URL of the resource, whichever of its paths the user copied."""
        return url.partition("/openai")[0].rstrip("/") + "/openai"

    def _own_endpoint(self) -> str | None:
        host = urlsplit(self._url).hostname or ""
        return f"azure:{host}" if host.endswith(_HOSTS) else None

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        self._version = required(
            setting("OPENAI_API_VERSION"),
            model,
            missing="OPENAI_API_VERSION",
            fix="export OPENAI_API_VERSION=2024-10-21  or a later version that the resource has",
        )
        self._token = setting(_TOKEN)
        given = self._token_provider or self._token or setting(self.key_variable)
        needs_key = own_service and not dry_run and not given
        if needs_key and is_installed():
            self._token_provider = entra_tokens()
            needs_key = False
        self._key = key_from(self.key_variable, own_service=needs_key, model=model)
        if self._token_provider:
            self.key_variable = "the identity that Microsoft Entra gave the token"
        elif self._token:
            self.key_variable = _TOKEN

    def _credentials(self) -> dict[str, Any]:
        asks: dict[str, Any] = {"api_key": self._key}
        if self._token_provider:
            asks = {"azure_ad_token_provider": self._token_provider}
        elif self._token:
            asks = {"azure_ad_token": self._token}
        return {**asks, "base_url": self._url, "api_version": self._version}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK puts the deployment into the path of a body that it encodes; ours is encoded.
        return f"/deployments/{quote(str(body['model']), safe='')}{self.path}", body

    def _served_models(self) -> list[str]:
        """Return none: a resource lists its models, and not its deployments."""
        return []

    def context_window(self, model: str) -> ContextWindow | None:
        """Return None: a resource lists its models without windows."""
        return None
