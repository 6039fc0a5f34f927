from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.judges.adapters.requests import request
from tests.llm_server import LlmServer, always
from tests.tables import table
from trajudge.judges.adapters import errors
from trajudge.judges.adapters.base import clean_url
from trajudge.judges.adapters.local import is_local, local_model, shown_model
from trajudge.judges.adapters.routing import is_loopback, make_adapter, route
from trajudge.util.errors import UserError

URL = "http://127.0.0.1:9/v1"


@table(
    "model adapter expected base_url",
    """
    gpt-4o                                  |           | openai    |
    chatgpt-4o-latest                       |           | openai    |
    o3-mini                                 |           | openai    |
    claude-sonnet-4-5                       |           | anthropic |
    claude-sonnet-4-5                       |           | anthropic | http://127.0.0.1:9/v1
    claude-sonnet-4-5                       | openai    | openai    | http://127.0.0.1:9/v1
    qwen                                    |           | http      | http://127.0.0.1:9/v1
    gpt-4o                                  |           | http      | http://127.0.0.1:9/v1
    Qwen/Qwen3-8B                           |           | http      | http://localhost:8000/v1
    qwen                                    |           | http      | http://[::1]:8000
    qwen                                    | openai    | openai    | http://127.0.0.1:9/v1
    Qwen/Qwen3-8B                           |           | openai    | http://10.0.0.7:8000/v1
    qwen                                    |           | openai    | https://localhost.example.com/v1
    qwen                                    |           | openai    | http://[no url
    openai/gpt-4o                           |           | litellm   |
    qwen                                    | anthropic | anthropic | http://127.0.0.1:9/v1
    azure/my-deployment                     |           | azure     |
    bedrock/us.anthropic.claude-opus-4-6-v1 |           | bedrock   |
    vertex/claude-opus-4-6                  |           | vertex    | http://127.0.0.1:9/v1
    gemini/gemini-2.5-flash                 |           | gemini    | http://127.0.0.1:9/v1
    bedrock/meta.llama3-70b                 | litellm   | litellm   |
    vertex_ai/gemini-2.5-pro                |           | litellm   |
    """,
)
def test_who_answers(model: str, adapter: str, expected: str, base_url: str) -> None:
    assert route(model, adapter=adapter or None, base_url=base_url or None) == expected


def test_a_name_of_nobody_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match=r"^the model 'qwen' names no known.*--base-url"):
        route("qwen")
    with pytest.raises(UserError, match=r"'opnai'.*mean 'openai'\?.*openai, anthropic"):
        route("gpt-4o", adapter="opnai")
    with pytest.raises(UserError, match="empty"):
        route(" ")
    with pytest.raises(UserError, match=r"^--adapter 'zzz' is unknown: choose from"):
        route("gpt-4o", adapter="zzz")
    with pytest.raises(UserError, match=r"^the model 'zzz' names no known provider: write"):
        route("zzz")
    for half in ("/zzz", "zzz/"):
        with pytest.raises(UserError, match=f"^the model '{half}' names no known provider"):
            route(half)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://localhost", True),
        ("http://a.localhost:8000/v1", True),
        ("http://notlocalhost", False),
        ("http://127.3.2.1", True),
        ("http://0.0.0.0:8000", True),
        ("http://[::]:8000", True),
        ("http://10.0.0.7", False),
        ("nothing", False),
    ],
)
def test_what_is_this_machine(url: str, own: bool) -> None:
    assert is_loopback(url) is own


def test_a_url_is_shown_as_it_is_asked() -> None:
    assert clean_url("https://Host.example:8000/v1/") == "https://host.example:8000/v1"
    assert clean_url("http://[::1]/") == "http://[::1]"
    for url in ("ftp://host/v1", "http://", "host:8000", "http://host:port", "//host"):
        with pytest.raises(UserError, match=r"is not a URL: give one like"):
            clean_url(url)
    for url in ("http://user@host/v1", "http://host/v1?key=x"):
        with pytest.raises(UserError, match=r"^--base-url http://host/v1: a user, a password or a"):
            clean_url(url)


def test_a_local_model_is_named_by_its_file() -> None:
    names = ["local", "local:/a/b.gguf", "locally", "gpt-4o"]
    assert [is_local(name) for name in names] == [True, True, False, False]
    assert local_model("local:/a/b.gguf") == (Path("/a/b.gguf"), "local:b")
    assert [shown_model(name) for name in names] == ["local", "local:b", "locally", "gpt-4o"]


def test_a_script_is_needed_by_the_scripted_adapter() -> None:
    with pytest.raises(UserError, match="--script"):
        make_adapter("any", adapter="scripted")
    with pytest.raises(UserError, match="--extra-headers: adapter 'scripted' takes none"):
        make_adapter("any", adapter="scripted", headers={"a": "b"})


@pytest.mark.parametrize("model", ["gpt-4o", "claude-x", "openai/gpt-4o"])
def test_no_sdk_is_imported_before_the_first_request(model: str) -> None:
    code = (
        "import sys; from trajudge.judges.adapters.routing import make_adapter\n"
        f"try: make_adapter({model!r}, base_url=None, dry_run=True)\n"
        "except Exception as error: assert type(error).__name__ == 'MissingExtra', error\n"
        "assert not {'openai', 'anthropic', 'litellm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gtp-4o", "'gpt-4o'"),
        ("cluade-sonnet-4-5", "'claude-sonnet-4-5'"),
        ("gemini-2.5-pro", "'gemini/gemini-2.5-pro'"),
    ],
)
def test_a_mistyped_model_gets_a_suggestion(typed: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"did you mean {meant}"):
        route(typed)


@pytest.mark.anyio
async def test_a_model_that_is_not_served_gets_the_closest_that_is() -> None:
    models = [{"id": "Qwen/Qwen3-8B-Instruct"}, {"id": "llama"}]
    with LlmServer(models=models, script=always("404")) as server:
        adapter, model = make_adapter("qwen3-8b-instruct", base_url=f"{server.url}/v1")
        with pytest.raises(errors.UnknownModel, match=r"mean 'Qwen/Qwen3-8B-Instruct'\?"):
            await adapter.send(request(model))
        await adapter.close()
