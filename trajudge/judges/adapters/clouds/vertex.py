"""Claude on Google's Vertex AI through the anthropic SDK: ``vertex/claude-…``."""

from __future__ import annotations

import asyncio
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlsplit

from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.clouds.settings import required, setting
from trajudge.judges.adapters.errors import AuthFailed, Unreachable
from trajudge.judges.adapters.sdk import HttpResult, root_cause
from trajudge.trajectories.util.errors import MissingExtra, UserError

VERSION = "vertex-2023-10-16"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_REGIONS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
_SIGN_IN = "gcloud auth application-default login,  or set GOOGLE_APPLICATION_CREDENTIALS"


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
        region = _region(model)
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
        self._region = _region(model)
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
        return path, {"anthropic_version": VERSION, **body}

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
            raise AuthFailed(f"Google gives no token ({error}): {_SIGN_IN}") from None


def _region(model: str) -> str:
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
        credentials, project = import_module("google.auth").default(scopes=[_SCOPE])
    except exceptions.GoogleAuthError as error:
        reason = str(error).partition(". ")[0].splitlines()[0].rstrip(".")
        raise UserError(
            f"{model!r} cannot be asked without Google's credentials ({reason}): {_SIGN_IN}"
        ) from None
    return credentials, project or ""
