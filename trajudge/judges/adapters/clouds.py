"""Models where a cloud serves them: Azure, Bedrock, Vertex and Gemini, through the openai and
anthropic SDKs, with the credentials that the clouds' own libraries find.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlsplit

from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.base import key_from
from trajudge.judges.adapters.errors import AuthFailed, Unreachable
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.adapters.sdk import HttpResult, root_cause
from trajudge.judges.models import ContextWindow
from trajudge.util.errors import MissingExtra, UserError

TokenProvider = Callable[[], Awaitable[str]]

"""Returns the token that is good now; the openai SDK calls it before every request."""

_AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable
_BEDROCK_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 - the name of a variable
_GOOGLE_SIGN_IN = "gcloud auth application-default login,  or set GOOGLE_APPLICATION_CREDENTIALS"


def _setting(*variables: str) -> str:
    """Return the first of the environment's ``variables`` that is set, "" if none is."""
    return next(filter(None, (os.environ.get(name, "").strip() for name in variables)), "")


def _required(value: str, model: str, variable: str, example: str) -> str:
    """Return ``value``. Raises UserError if it is empty, with an ``example`` of the variable."""
    if not value:
        raise UserError(
            f"{variable} is not set, and {model!r} cannot be asked without it: "
            f"export {variable}={example}"
        )
    return value


def is_installed() -> bool:
    """Return True if azure-identity is."""
    return find_spec("azure") is not None and find_spec("azure.identity") is not None


def entra_tokens() -> TokenProvider:
    """Return what gives tokens of the default credential (a managed identity, a service principal,
    ``az login``), each kept until shortly before it expires.

    The provider raises AuthFailed where no credential gives one, and Unreachable.
    """
    identity, exceptions = import_module("azure.identity"), import_module("azure.core.exceptions")
    scope = "https://cognitiveservices.azure.com/.default"
    fetch = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), scope)
    turn = asyncio.Lock()

    async def token() -> str:
        async with turn:  # all calls at once would each fetch one
            try:
                return str(await asyncio.to_thread(fetch))
            except exceptions.ClientAuthenticationError as error:
                reason = str(error).strip().splitlines()[0]
                raise AuthFailed(
                    f"Microsoft Entra gives no token ({reason}): az login,  or export "
                    "AZURE_OPENAI_API_KEY=..."
                ) from None
            except exceptions.AzureError as error:
                raise Unreachable(
                    f"cannot reach Microsoft Entra for a token: {root_cause(error)}"
                ) from None

    return token


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
        example = "https://RESOURCE.openai.azure.com  or name the endpoint with --base-url"
        return _required("", model, self.url_variable, example)

    @staticmethod
    def _root(url: str) -> str:
        """Return the URL of the resource, whichever of its paths the user copied."""
        return url.partition("/openai")[0].rstrip("/") + "/openai"

    def _own_endpoint(self) -> str | None:
        host = urlsplit(self._url).hostname or ""
        is_own = host.endswith((".azure.com", ".azure.us", ".azure.cn"))
        return f"azure:{host}" if is_own else None

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        example = "2024-10-21  or a later version that the resource has"
        version = _setting("OPENAI_API_VERSION")
        self._version = _required(version, model, "OPENAI_API_VERSION", example)
        self._token = _setting(_AZURE_TOKEN)
        given = self._token_provider or self._token or _setting(self.key_variable)
        needs_key = own_service and not dry_run and not given
        if needs_key and is_installed():
            self._token_provider, needs_key = entra_tokens(), False
        self._key = key_from(self.key_variable, own_service=needs_key, model=model)
        if self._token_provider:
            self.key_variable = "the identity that Microsoft Entra gave the token"
        elif self._token:
            self.key_variable = _AZURE_TOKEN

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


class GeminiAdapter(OpenAIAdapter):
    """Chat completions of Gemini. Raises UserError if the key is missing."""

    name = "gemini"
    service = "gemini"
    own_url = "https://generativelanguage.googleapis.com/v1beta/openai"
    url_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variable = "GEMINI_API_KEY"

    @staticmethod
    def _root(url: str) -> str:
        return url if urlsplit(url).path else url + "/v1beta/openai"


class BedrockAdapter(AnthropicAdapter):
    """Anthropic's messages in Bedrock's InvokeModel. Credentials are those that boto3 finds
    (variables, profile, role), or a Bedrock API key.

    Raises UserError if region or credentials are missing or the model is not Claude, and
    MissingExtra if boto3 is needed and not installed.
    """

    name = "bedrock"
    service = "bedrock"
    client = "AsyncAnthropicBedrock"
    url_variable = "ANTHROPIC_BEDROCK_BASE_URL"
    key_variable = "AWS_ACCESS_KEY_ID"

    def _service_url(self, model: str) -> str:
        return f"https://bedrock-runtime.{self._region(model)}.amazonaws.com"

    def _own_endpoint(self) -> str | None:
        return self.service if self._where.endswith(".amazonaws.com:443") else None

    @staticmethod
    def _region(model: str) -> str:
        """Return the region of the environment or of the profile. Raises UserError."""
        region = _setting("AWS_REGION", "AWS_DEFAULT_REGION")
        if not region and find_spec("boto3"):
            region = import_module("boto3").Session().region_name or ""
        return _required(region, model, "AWS_REGION", "us-east-1")

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        if "anthropic." not in model and "arn:" not in model:
            raise UserError(
                f"--model {model}: bedrock/ asks Claude through Anthropic's SDK: write "
                "bedrock/us.anthropic.claude-…, or ask other models with --adapter litellm"
            )
        self._aws_region = self._region(model)
        if _setting(_BEDROCK_TOKEN):
            self.key_variable = _BEDROCK_TOKEN
        elif not dry_run:
            self._check_credentials(model)

    @staticmethod
    def _check_credentials(model: str) -> None:
        if find_spec("boto3") is None:
            raise MissingExtra("boto3", "bedrock", f"the model {model!r}")
        exceptions = import_module("botocore.exceptions")
        try:
            known = import_module("boto3").Session().get_credentials()
        except exceptions.BotoCoreError as error:
            raise UserError(f"--model {model}: no credentials for AWS: {error}") from None
        if known is None:
            raise UserError(
                f"{model!r} cannot be asked without credentials for AWS: set AWS_PROFILE, "
                f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or {_BEDROCK_TOKEN}"
            )

    def _credentials(self) -> dict[str, Any]:
        return {"aws_region": self._aws_region, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK rewrites a body that it encodes; ours is encoded.
        model = quote(str(body.pop("model")), safe=":")
        return f"/model/{model}/invoke", {"anthropic_version": "bedrock-2023-05-31", **body}

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        if _setting(_BEDROCK_TOKEN):
            return await super()._post(body)
        exceptions = import_module("botocore.exceptions")
        try:
            return await super()._post(body)
        except exceptions.HTTPClientError as error:
            raise Unreachable(f"cannot reach AWS for credentials: {root_cause(error)}") from None
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            raise AuthFailed(
                f"no credentials for AWS: {error}: sign in anew, or check AWS_PROFILE"
            ) from None


class VertexAdapter(AnthropicAdapter):
    """Anthropic's messages in Vertex AI's rawPredict, with Google's default credentials.

    Raises UserError if region, project or credentials are missing or the model is not Claude, and
    MissingExtra if google-auth is not installed.
    """

    name = "vertex"
    service = "vertex"
    client = "AsyncAnthropicVertex"
    url_variable = "ANTHROPIC_VERTEX_BASE_URL"
    key_variable = "GOOGLE_APPLICATION_CREDENTIALS"

    def _service_url(self, model: str) -> str:
        region = self._region(model)
        host = {
            "global": "aiplatform.googleapis.com",
            "us": "aiplatform.us.rep.googleapis.com",
            "eu": "aiplatform.eu.rep.googleapis.com",
        }.get(region, f"{region}-aiplatform.googleapis.com")
        return f"https://{host}/v1"

    @staticmethod
    def _region(model: str) -> str:
        region = _setting("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION")
        return _required(region, model, "CLOUD_ML_REGION", "global  or the region that serves it")

    @staticmethod
    def _root(url: str) -> str:
        return url if urlsplit(url).path else url + "/v1"

    def _own_endpoint(self) -> str | None:
        return self.service if self._where.endswith(".googleapis.com:443") else None

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        if not model.rpartition("/")[2].startswith("claude-"):
            raise UserError(
                f"--model {model}: vertex/ asks Claude through Anthropic's SDK: write "
                "vertex/claude-…, gemini/NAME for Gemini, or ask with --adapter litellm"
            )
        self._google_region = self._region(model)
        self._google: Any = None
        project = ""
        if not dry_run:
            self._google, project = self._default_credentials(model)
        variable = "ANTHROPIC_VERTEX_PROJECT_ID"
        self._project = _setting(variable, "GOOGLE_CLOUD_PROJECT") or project
        if not dry_run:
            _required(self._project, model, variable, "my-project")

    @staticmethod
    def _default_credentials(model: str) -> tuple[Any, str]:
        """Find Google's default credentials and their project. Raises UserError and
        MissingExtra."""
        if find_spec("google") is None or find_spec("google.auth") is None:
            raise MissingExtra("google-auth", "vertex", f"the model {model!r}")
        exceptions = import_module("google.auth.exceptions")
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        try:
            credentials, project = import_module("google.auth").default(scopes=scopes)
        except exceptions.GoogleAuthError as error:
            reason = str(error).partition(". ")[0].splitlines()[0].rstrip(".")
            raise UserError(
                f"{model!r} cannot be asked without Google's credentials ({reason}): "
                f"{_GOOGLE_SIGN_IN}"
            ) from None
        return credentials, project or ""

    def _credentials(self) -> dict[str, Any]:
        asks = {"region": self._google_region, "project_id": self._project}
        return {**asks, "credentials": self._google, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK rewrites a body that it encodes; ours is encoded.
        model = quote(str(body.pop("model")), safe="@")
        location = f"/projects/{quote(self._project, safe=':')}/locations/{self._google_region}"
        path = f"{location}/publishers/anthropic/models/{model}:rawPredict"
        return path, {"anthropic_version": "vertex-2023-10-16", **body}

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        # All calls at once would each fetch a token.
        async with self._fetching:
            if not self._google.valid:
                await self._fetch_token()
        return await super()._post(body)

    @cached_property
    def _fetching(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _fetch_token(self) -> None:
        """Fetch an access token. Raises AuthFailed and Unreachable."""
        exceptions = import_module("google.auth.exceptions")
        transport = import_module("google.auth.transport.requests").Request()
        try:
            await asyncio.to_thread(self._google.refresh, transport)
        except exceptions.TransportError as error:
            raise Unreachable(f"cannot reach Google for a token: {root_cause(error)}") from None
        except exceptions.GoogleAuthError as error:
            raise AuthFailed(f"Google gives no token ({error}): {_GOOGLE_SIGN_IN}") from None
