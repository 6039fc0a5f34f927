"""Models in the clouds, through the real SDKs, against a server on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.judges.adapters.faults import ERRORS
from tests.judges.adapters.requests import request
from tests.llm_replies import Incoming, Outgoing, plain
from tests.llm_server import LlmServer, always
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import Adapter
from trajudge.judges.adapters.routing import make_adapter
from trajudge.util.errors import MissingExtra, UserError

pytestmark = pytest.mark.anyio

SONNET = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
MODELS = {
    "azure": "azure/gpt-4o",
    "gemini": "gemini/gemini-2.5-flash",
    "bedrock": SONNET,
    "vertex": "vertex/claude-sonnet-4-5@20250929",
}
VARIABLES = (
    *("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    *("OPENAI_API_VERSION", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL"),
    *("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION", "ANTHROPIC_VERTEX_PROJECT_ID"),
    *("GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "ANTHROPIC_VERTEX_BASE_URL"),
)
needs_boto3 = pytest.mark.skipif(
    find_spec("boto3") is None, reason="boto3 is not installed (the extra bedrock)"
)
needs_google = pytest.mark.skipif(
    find_spec("google") is None or find_spec("google.auth") is None,
    reason="google-auth is not installed (the extra vertex)",
)
every_cloud = pytest.mark.parametrize(
    "cloud",
    [
        "azure",
        "gemini",
        pytest.param("bedrock", marks=needs_boto3),
        pytest.param("vertex", marks=needs_google),
    ],
)


class TokenServer(LlmServer):
    """Gives access tokens of Google's as well; ``tokens`` counts them."""

    tokens = 0

    def handle(self, target: str, headers: dict[str, str], body: bytes) -> Any:
        if target == "/token":
            self.tokens += 1
            token = {"access_token": "ya29.test", "expires_in": 3600, "token_type": "Bearer"}
            return Outgoing(200, orjson.dumps(token))
        return super().handle(target, headers, body)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nothing of this machine's own: no settings, no profile, no machine that gives credentials."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return monkeypatch


@pytest.fixture
def settings(environment: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Everything that is needed to ask a server at this URL."""

    def use(url: str) -> None:
        environment.setenv("AZURE_OPENAI_API_KEY", "azure-key")
        environment.setenv("OPENAI_API_VERSION", "2024-10-21")
        environment.setenv("GEMINI_API_KEY", "gemini-key")
        environment.setenv("AWS_REGION", "eu-west-1")
        environment.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
        environment.setenv("CLOUD_ML_REGION", "europe-west1")
        if find_spec("cryptography"):
            file = tmp_path / "account.json"
            file.write_text(json.dumps(service_account(url)))
            environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    return use


def service_account(url: str) -> dict[str, str]:
    """A key as Google's console gives it, whose tokens come from the server at ``url``."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "type": "service_account",
        "project_id": "my-project",
        "private_key": pem.decode(),
        "client_email": "judge@my-project.iam.gserviceaccount.com",
        "token_uri": f"{url}/token",
    }


@asynccontextmanager
async def opened(cloud: str, server: LlmServer) -> AsyncIterator[Adapter]:
    adapter, model = make_adapter(MODELS[cloud], base_url=server.url, timeout=5.0)
    assert model == MODELS[cloud]
    assert adapter.name == cloud
    try:
        yield adapter
    finally:
        await adapter.close()


async def seen_by(cloud: str, use: Callable[[str], None], **options: Any) -> Incoming:
    with TokenServer(**options) as server:
        use(server.url)
        async with opened(cloud, server) as adapter:
            sent = await adapter.send(request(MODELS[cloud], parameters={"max_tokens": 9}))
    assert sent.reply.text == "yes"
    assert sent.reply.usage is not None
    assert sent.reply.usage.cache_read == 3
    assert sent.reply.parameters == {"max_tokens": 9}
    return server.seen[0]


YES: dict[str, Any] = {"text": "yes", "cached_tokens": 3}


async def test_azure_gets_deployment_version_and_key(settings: Callable[[str], None]) -> None:
    seen = await seen_by("azure", settings, **YES)
    assert seen.path == "/openai/deployments/gpt-4o/chat/completions"
    assert seen.query == "api-version=2024-10-21"
    assert seen.headers["api-key"] == "azure-key"
    assert seen.payload["model"] == "gpt-4o"


async def test_azure_takes_a_token_of_entra(
    settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "entra")
    assert (await seen_by("azure", settings, **YES)).headers["authorization"] == "Bearer entra"


async def test_gemini_speaks_openais_protocol(settings: Callable[[str], None]) -> None:
    seen = await seen_by("gemini", settings, **YES)
    assert seen.path == "/v1beta/openai/chat/completions"
    assert seen.headers["authorization"] == "Bearer gemini-key"
    assert seen.payload["model"] == "gemini-2.5-flash"


@pytest.mark.slow
@needs_boto3
async def test_bedrock_is_asked_with_a_signature_of_the_whole_body(
    settings: Callable[[str], None],
) -> None:
    seen = await seen_by("bedrock", settings, **YES)
    assert seen.path == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke"
    assert seen.payload["anthropic_version"] == "bedrock-2023-05-31"
    assert "model" not in seen.payload
    assert signature_of(seen) in seen.headers["authorization"]


def signature_of(seen: Incoming) -> str:
    """Signature version 4 as AWS documents it, computed from the request that arrived."""
    fields = dict(
        part.strip().split("=", 1)
        for part in seen.headers["authorization"].partition(" ")[2].split(",")
    )
    _, date, region, service, _ = scope = fields["Credential"].split("/")
    assert scope == ["AKIDEXAMPLE", date, "eu-west-1", "bedrock", "aws4_request"]
    signed = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        [
            "POST",
            quote(seen.path, safe="/-_.~"),
            seen.query,
            *(f"{name}:{seen.headers[name]}" for name in signed),
            "",
            ";".join(signed),
            hashlib.sha256(seen.body).hexdigest(),
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{seen.headers['x-amz-date']}\n{'/'.join(scope[1:])}\n{digest}"
    key = b"AWS4wJalrXUtnFEMI"
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


async def test_a_bedrock_key_needs_no_boto3(
    settings: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key")
    monkeypatch.setattr("trajudge.judges.adapters.clouds.find_spec", lambda _: None)
    seen = await seen_by("bedrock", settings, **YES)
    assert seen.headers["authorization"] == "Bearer bedrock-key"


@needs_google
async def test_vertex_gets_project_region_and_one_token_for_all_calls(
    settings: Callable[[str], None],
) -> None:
    with TokenServer(**YES) as server:
        settings(server.url)
        async with opened("vertex", server) as adapter:
            for _ in range(2):
                await adapter.send(request(MODELS["vertex"], parameters={"max_tokens": 9}))
    seen = server.seen[0]
    model = "/projects/my-project/locations/europe-west1/publishers/anthropic/models/"
    assert seen.path == f"/v1{model}claude-sonnet-4-5@20250929:rawPredict"
    assert seen.headers["authorization"] == "Bearer ya29.test"
    assert seen.payload["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in seen.payload
    assert server.tokens == 1


@every_cloud
@pytest.mark.parametrize("fault", ["401", "404", "503", "overflow", "content-policy", "drop"])
async def test_errors_become_ours(cloud: str, fault: str, settings: Callable[[str], None]) -> None:
    with TokenServer(script=always(fault)) as server:
        settings(server.url)
        async with opened(cloud, server) as adapter:
            with pytest.raises(ERRORS[fault]) as raised:
                await adapter.send(request(MODELS[cloud]))
    if fault == "401":
        assert adapter.key_variable in str(raised.value)  # type: ignore[attr-defined]


@every_cloud
async def test_limits_and_retry_after_are_read(cloud: str, settings: Callable[[str], None]) -> None:
    with TokenServer(rpm=1) as server:
        settings(server.url)
        async with opened(cloud, server) as adapter:
            sent = await adapter.send(request(MODELS[cloud]))
            assert sent.limits
            assert sent.limits.requests == 1
            with pytest.raises(errors.RateLimited) as refused:
                await adapter.send(request(MODELS[cloud]))
    assert refused.value.retry_after
    assert refused.value.retry_after > 1


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Quota exceeded for metric: x, limit: 15\nPlease retry in 33.820058115s.", 33.820058115),
        ("You have exceeded the call rate limit. Please retry after 26 seconds.", 26),
        ("Limit 30000, Used 29000. Please try again in 640ms. Visit https://x.", 0.64),
        ("on requests per day (RPD). Please try again in 1h12m3.5s.", 4323.5),
        ("Rate limit reached. Please try again in 7m12s.", 432),
        ("Too many requests, please wait before trying again.", None),
    ],
)
async def test_a_wait_that_is_said_in_words_counts(
    words: str, seconds: float | None, settings: Callable[[str], None]
) -> None:
    refused = plain(429, words, "RESOURCE_EXHAUSTED")
    with LlmServer(text=refused) as server:
        settings(server.url)
        async with opened("gemini", server) as adapter:
            with pytest.raises(errors.RateLimited) as raised:
                await adapter.send(request(MODELS["gemini"]))
    assert raised.value.retry_after == (None if seconds is None else pytest.approx(seconds))


@needs_google
async def test_google_that_gives_no_token_is_a_matter_of_the_key(
    settings: Callable[[str], None],
) -> None:
    with LlmServer() as server:  # it has no /token
        settings(server.url)
        async with opened("vertex", server) as adapter:
            with pytest.raises(errors.AuthFailed, match="gcloud auth"):
                await adapter.send(request(MODELS["vertex"]))


MISSING = [
    ("azure/gpt-4o", {}, "AZURE_OPENAI_ENDPOINT"),
    ("azure/x", {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com"}, "OPENAI_API_VERSION"),
    (
        "azure/x",
        {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com", "OPENAI_API_VERSION": "v"},
        "AZURE_OPENAI_API_KEY",
    ),
    ("gemini/gemini-2.5-pro", {}, "GEMINI_API_KEY"),
    (SONNET, {}, "AWS_REGION"),
    pytest.param(SONNET, {"AWS_REGION": "us-east-1"}, "AWS_PROFILE", marks=needs_boto3),
    ("bedrock/meta.llama3-70b", {"AWS_REGION": "us-east-1"}, "--adapter litellm"),
    ("vertex/claude-opus-4-6", {}, "CLOUD_ML_REGION"),
    ("vertex/gemini-2.5-pro", {"CLOUD_ML_REGION": "global"}, "gemini/NAME"),
    pytest.param(
        "vertex/claude-opus-4-6", {"CLOUD_ML_REGION": "global"}, "gcloud", marks=needs_google
    ),
]


@pytest.mark.parametrize(("model", "named", "missing"), MISSING)
async def test_what_is_missing_is_named(
    model: str, named: dict[str, str], missing: str, environment: pytest.MonkeyPatch
) -> None:
    for name, value in named.items():
        environment.setenv(name, value)
    with pytest.raises(UserError, match=missing):
        make_adapter(model)


@pytest.mark.parametrize(
    ("model", "extra"), [(SONNET, "bedrock"), ("vertex/claude-opus-4-6", "vertex")]
)
async def test_a_missing_extra_is_named(
    model: str, extra: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("AWS_REGION", "us-east-1")
    environment.setenv("CLOUD_ML_REGION", "global")
    environment.setattr("trajudge.judges.adapters.clouds.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=rf"trajudge\[{extra}\]"):
        make_adapter(model)


async def test_a_cloud_answers_under_its_own_name(environment: pytest.MonkeyPatch) -> None:
    """So that replies of one resource are not taken for another's, and list prices hold."""
    environment.setenv("AZURE_OPENAI_ENDPOINT", "https://res.openai.azure.com/openai/v1/")
    environment.setenv("OPENAI_API_VERSION", "2024-10-21")
    environment.setenv("AWS_REGION", "us-east-1")
    environment.setenv("CLOUD_ML_REGION", "global")
    endpoints = [make_adapter(model, dry_run=True)[0].endpoint for model in MODELS.values()]
    assert endpoints == ["azure:res.openai.azure.com", "gemini", "bedrock", "vertex"]
