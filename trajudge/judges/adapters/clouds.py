"""Models where a cloud serves them: Azure, Bedrock, Vertex and Gemini, through the openai and
anthropic SDKs.
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
from trajudge.judges.adapters.context_windows import ContextWindow
from trajudge.judges.adapters.errors import AuthFailed, CallFailed, Unreachable
from trajudge.judges.adapters.openai import OpenAIAdapter
from trajudge.judges.adapters.sdk import HttpResult, root_cause
from trajudge.util.errors import MissingExtra, UserError

TokenProvider = Callable[[], Awaitable[str]]

"""Returns the token that is good now; the openai SDK calls it before every request."""

_SCOPE = "https://cognitiveservices.azure.com/.default"

_SIGN_IN = "az login,  or export AZURE_OPENAI_API_KEY=..."


def is_installed() -> bool:
    """Return True if azure-identity is."""
    return find_spec("azure") is not None and find_spec("azure.identity") is not None


def entra_tokens() -> TokenProvider:
    """Return what gives tokens of the default credential (a managed identity, a service principal,
    ``az login``), each kept until shortly before it expires.

    The provider raises AuthFailed where no credential gives one, and Unreachable.
    """
    identity, exceptions = import_module("azure.identity"), import_module("azure.core.exceptions")
    fetch = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _SCOPE)
    turn = asyncio.Lock()

    async def token() -> str:
        async with turn:  # all calls at once would each fetch one
            try:
                return str(await asyncio.to_thread(fetch))
            except exceptions.ClientAuthenticationError as error:
                reason = str(error).strip().splitlines()[0]
                raise AuthFailed(f"Microsoft Entra gives no token ({reason}): {_SIGN_IN}") from None
            except exceptions.AzureError as error:
                raise Unreachable(
                    f"cannot reach Microsoft Entra for a token: {root_cause(error)}"
                ) from None

    return token


def setting(*variables: str) -> str:
    """Return the first of the environment's ``variables`` that is set, "" if none is."""
    return next(filter(None, (os.environ.get(name, "").strip() for name in variables)), "")


def required(value: str, model: str, *, missing: str, fix: str) -> str:
    """Return ``value``. Raises UserError if it is empty, saying what is ``missing`` to ask
    ``model``, and the ``fix``."""
    if not value:
        raise UserError(f"{missing} is not set, and {model!r} cannot be asked without it: {fix}")
    return value


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


VERSION = "bedrock-2023-05-31"

_BEDROCK_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 - the name of a variable


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
        return f"https://bedrock-runtime.{_region(model)}.amazonaws.com"

    def _own_endpoint(self) -> str | None:
        return self.service if self._where.endswith(".amazonaws.com:443") else None

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        if "anthropic." not in model and "arn:" not in model:
            raise UserError(
                f"--model {model}: bedrock/ asks Claude through Anthropic's SDK: write "
                "bedrock/us.anthropic.claude-…, or ask other models with --adapter litellm"
            )
        self._region = _region(model)
        if setting(_BEDROCK_TOKEN):
            self.key_variable = _BEDROCK_TOKEN
        elif not dry_run:
            _check_credentials(model)

    def _credentials(self) -> dict[str, Any]:
        return {"aws_region": self._region, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK rewrites a body that it encodes; ours is encoded.
        model = quote(str(body.pop("model")), safe=":")
        return f"/model/{model}/invoke", {"anthropic_version": VERSION, **body}

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        if setting(_BEDROCK_TOKEN):
            return await super()._post(body)
        exceptions = import_module("botocore.exceptions")
        try:
            return await super()._post(body)
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            raise _unsigned(error, exceptions.HTTPClientError) from None


def _region(model: str) -> str:
    """Return the region of the environment or of the profile. Raises UserError."""
    region = setting("AWS_REGION", "AWS_DEFAULT_REGION")
    if not region and find_spec("boto3"):
        region = import_module("boto3").Session().region_name or ""
    return required(region, model, missing="AWS_REGION", fix="export AWS_REGION=us-east-1")


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


def _unsigned(error: Exception, unreachable: type[Exception]) -> CallFailed:
    """Make the error of a request that could not be signed."""
    if isinstance(error, unreachable):
        return Unreachable(f"cannot reach AWS for credentials: {root_cause(error)}")
    return AuthFailed(f"no credentials for AWS: {error}: sign in anew, or check AWS_PROFILE")


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


VERTEX_VERSION = "vertex-2023-10-16"

_VERTEX_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

_REGIONS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}

_VERTEX_SIGN_IN = "gcloud auth application-default login,  or set GOOGLE_APPLICATION_CREDENTIALS"


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
        region = _vertex_region(model)
        return f"https://{_REGIONS.get(region, f'{region}-aiplatform.googleapis.com')}/v1"

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
        self._region = _vertex_region(model)
        self._google: Any = None
        project = ""
        if not dry_run:
            self._google, project = _default_credentials(model)
        project = setting("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT") or project
        if not dry_run:
            required(
                project,
                model,
                missing="ANTHROPIC_VERTEX_PROJECT_ID",
                fix="export ANTHROPIC_VERTEX_PROJECT_ID=my-project",
            )
        self._project = project

    def _credentials(self) -> dict[str, Any]:
        asks = {"region": self._region, "project_id": self._project}
        return {**asks, "credentials": self._google, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK rewrites a body that it encodes; ours is encoded.
        model = quote(str(body.pop("model")), safe="@")
        place = f"/projects/{quote(self._project, safe=':')}/locations/{self._region}"
        path = f"{place}/publishers/anthropic/models/{model}:rawPredict"
        return path, {"anthropic_version": VERTEX_VERSION, **body}

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
            raise AuthFailed(f"Google gives no token ({error}): {_VERTEX_SIGN_IN}") from None


def _vertex_region(model: str) -> str:
    """Return the region of the environment. Raises UserError."""
    return required(
        setting("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"),
        model,
        missing="CLOUD_ML_REGION",
        fix="export CLOUD_ML_REGION=global  or the region that serves it",
    )


def _default_credentials(model: str) -> tuple[Any, str]:
    """Find Google's default credentials and their project. Raises UserError and MissingExtra."""
    if find_spec("google") is None or find_spec("google.auth") is None:
        raise MissingExtra("google-auth", "vertex", f"the model {model!r}")
    exceptions = import_module("google.auth.exceptions")
    try:
        credentials, project = import_module("google.auth").default(scopes=[_VERTEX_SCOPE])
    except exceptions.GoogleAuthError as error:
        reason = str(error).partition(". ")[0].splitlines()[0].rstrip(".")
        raise UserError(
            f"{model!r} cannot be asked without Google's credentials ({reason}): {_VERTEX_SIGN_IN}"
        ) from None
    return credentials, project or ""
