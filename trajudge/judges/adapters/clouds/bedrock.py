"""Claude on Amazon Bedrock through the anthropic SDK, which signs the requests:
``bedrock/us.anthropic.claude-…``, or an ARN."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from trajudge.judges.adapters.anthropic import AnthropicAdapter
from trajudge.judges.adapters.clouds.settings import required, setting
from trajudge.judges.adapters.errors import AuthFailed, CallFailed, Unreachable
from trajudge.judges.adapters.sdk import HttpResult, root_cause
from trajudge.trajectories.util.errors import MissingExtra, UserError

VERSION = "bedrock-2023-05-31"
_TOKEN = "AWS_BEARER_TOKEN_BEDROCK"  # noqa: S105 - the name of a variable


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
        if setting(_TOKEN):
            self.key_variable = _TOKEN
        elif not dry_run:
            _check_credentials(model)

    def _credentials(self) -> dict[str, Any]:
        return {"aws_region": self._region, "base_url": self._url}

    def _address(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # The SDK rewrites a body that it encodes; ours is encoded.
        model = quote(str(body.pop("model")), safe=":")
        return f"/model/{model}/invoke", {"anthropic_version": VERSION, **body}

    async def _post(self, body: dict[str, Any]) -> HttpResult:
        if setting(_TOKEN):
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
            f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or {_TOKEN}"
        )


def _unsigned(error: Exception, unreachable: type[Exception]) -> CallFailed:
    """Make the error of a request that could not be signed."""
    if isinstance(error, unreachable):
        return Unreachable(f"cannot reach AWS for credentials: {root_cause(error)}")
    return AuthFailed(f"no credentials for AWS: {error}: sign in anew, or check AWS_PROFILE")
