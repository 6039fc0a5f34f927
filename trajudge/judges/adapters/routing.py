"""Choice of the adapter for ``--model``: by its name, by ``--base-url``, or the user's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from hashlib import sha256
from importlib import import_module
from ipaddress import ip_address
from types import ModuleType
from urllib.parse import urlsplit

from trajudge.judges.adapters.base import Adapter, AdapterResponse
from trajudge.judges.adapters.local import is_local, local_model
from trajudge.judges.adapters.scripted import from_file
from trajudge.judges.model import Reply, Request
from trajudge.judges.models import Capability, model_names
from trajudge.trajectories.plugins import PluginPoint, refuse_async, user_code_errors
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import read_regular

Send = Callable[[Request], Awaitable[AdapterResponse]]

DOOR = PluginPoint(group="trajudge.adapters", option="--adapter")


def adapter_factory(name: str) -> Callable[..., Adapter]:
    """Return what makes a user's adapter. Raises UserError if there is none of that name."""
    module = DOOR.module(name)
    make = getattr(module, "adapter", None)
    if not callable(make):
        raise UserError(
            f"--adapter {name}: defines no adapter: write  def adapter(model, *, base_url, "
            "timeout, max_connections, dry_run)"
        )
    refuse_async(f"--adapter {name}", make, "def adapter(model, *, base_url, ...)")

    def checked(model: str, **settings: object) -> Adapter:
        with user_code_errors(f"--adapter {name}: adapter() failed", make, "correct it"):
            made = make(model, **settings)
        if isinstance(made, type):
            raise UserError(
                f"--adapter {name}: adapter() gave the class {made.__name__}: end it with  return "
                f"{made.__name__}(...)"
            )
        for part in ("send", "close"):
            if not inspect.iscoroutinefunction(getattr(made, part, None)):
                raise UserError(f"--adapter {name}: has no  async def {part}: see Adapter")
        for part in ("name", "endpoint"):
            if not isinstance(getattr(made, part, None), str):
                raise UserError(f"--adapter {name}: has no {part}, a str: see Adapter")
        made.endpoint = f"{made.endpoint}#{_digest(module)}"
        made.send = _explained(name, made.send)
        adapter: Adapter = made
        return adapter

    return checked


def _digest(module: ModuleType | None) -> str:
    """Return a hash of the file in which a module stands."""
    known: str | None = getattr(module, "__digest__", None)
    file = getattr(module, "__file__", None)
    if known is None and file:
        known = sha256(read_regular(file)).hexdigest()
    return (known or "")[:16]


def _explained(name: str, send: Callable[[Request], Awaitable[object]]) -> Send:
    """Return ``send`` as it ends a run in one sentence where the user's code has a mistake: an
    exception that is none of ``judges.adapters.errors``, or something else than a response."""
    mend = "raise an error of judges/adapters/errors.py; what was judged before is kept"
    logged: set[str] = set()  # of calls that are under way at once every one fails

    @wraps(send)
    async def guarded(request: Request) -> AdapterResponse:
        with user_code_errors(f"--adapter {name}: send failed", send, mend, logged):
            sent = await send(request)
        if not isinstance(sent, AdapterResponse) or not isinstance(sent.reply, Reply):
            raise UserError(
                f"--adapter {name}: send gave {type(sent).__name__} where a response belongs: end "
                "it with  return AdapterResponse(Reply(text=..., model=...))"
            )
        return sent

    return guarded


_OPENAI = re.compile(r"(gpt-|chatgpt-|o\d)")

_CLASSES = {
    "openai": "openai.OpenAIAdapter",
    "anthropic": "anthropic.AnthropicAdapter",
    "litellm": "litellm.LiteLLMAdapter",
    "http": "openai.HttpAdapter",
    "azure": "clouds.AzureAdapter",
    "bedrock": "clouds.BedrockAdapter",
    "vertex": "clouds.VertexAdapter",
    "gemini": "clouds.GeminiAdapter",
    "local": "local.LocalAdapter",
}

# What names these adapters before a slash is no provider of litellm's.
CLOUDS = ("azure", "bedrock", "vertex", "gemini")

NAMES = (*_CLASSES, "scripted")


def route(model: str, *, adapter: str | None = None, base_url: str | None = None) -> str:
    """Choose the adapter's name: the explicit one wins, then the model's name, then ``base_url``.

    OpenAI's protocol is spoken without its SDK to a server on this machine, whose answers may come
    faster than the SDK takes them.

    Raises UserError naming the value and the options.
    """
    if not model.strip():
        raise UserError("--model is empty: name a model, like gpt-4o")
    if adapter is not None:
        check_adapter(adapter)
        return adapter
    provider, _, name = model.partition("/")
    if named := _by_prefix(model, base_url):
        return named
    if base_url and is_loopback(base_url):
        return "http"
    if base_url or _OPENAI.match(model):
        return "openai"
    if provider and name:
        return "litellm"
    raise UserError(
        f"the model {model!r} names no known provider{_suggestion(model) or ':'} write "
        f"gpt-…, o3…, claude-…, provider/name, local:FILE or add --base-url URL for a local server "
        f"or --adapter {'|'.join(NAMES)}"
    )


def _by_prefix(model: str, base_url: str | None) -> str:
    """Return the adapter that the beginning of a model's name names, "" if it names none."""
    provider, _, name = model.partition("/")
    if is_local(model) and not base_url:
        return "local"
    if name and provider in CLOUDS:
        return provider
    return "anthropic" if model.startswith("claude-") else ""


def _suggestion(model: str) -> str:
    """Suggest a known name; of several that differ by the service, one that needs no litellm."""

    def is_ours(name: str) -> bool:
        cloud = name.partition("/")[0] in CLOUDS and "/" in name
        return cloud or name.startswith("claude-") or bool(_OPENAI.match(name))

    known = sorted((n for n in model_names() if "/" in n or is_ours(n)), key=is_ours)
    return did_you_mean(model, known)


def is_loopback(url: str) -> bool:
    """Return True if ``url`` names this machine."""
    host = ""
    try:
        host = urlsplit(url).hostname or ""
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def check_adapter(name: str) -> None:
    """Raise UserError for a name that is none of ours, no installed adapter and no file's, and for
    one of ours that a package brings, too."""
    if name in NAMES:
        DOOR.refuse_namesake(name)
    elif not DOOR.knows(name):
        known = DOOR.names(NAMES)
        close = did_you_mean(name, known)
        raise UserError(
            f"--adapter {name!r} is unknown{close or ':'} choose from {', '.join(known)}, or name "
            "a Python file"
        )


def make_adapter(
    model: str,
    *,
    adapter: str | None = None,
    base_url: str | None = None,
    script: str | None = None,
    timeout: float = 300.0,
    max_connections: int = 256,
    dry_run: bool = False,
    known: Capability | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[Adapter, str]:
    """Make the adapter, and return it with the model's name as it goes into requests.

    ``timeout`` in seconds for one attempt; ``script`` is the file of the scripted adapter; a
    ``dry_run`` needs no key; ``known`` is what is known of the model, by default what the table
    says, and ``headers`` go out with every request. No SDK is imported before the first request.
    Raises UserError (a missing key, a wrong URL, an unknown adapter) and MissingExtra.
    """
    name = route(model, adapter=adapter, base_url=base_url)
    if headers and name not in _CLASSES:
        raise UserError(f"--extra-headers: adapter {name!r} takes none: leave the option out")
    if name == "scripted":
        return from_file(script), model
    ours = {"known": known, "headers": headers} if name in _CLASSES else {}
    made = _class(name)(
        model,
        base_url=base_url,
        timeout=timeout,
        max_connections=max_connections,
        dry_run=dry_run,
        **ours,
    )
    return made, local_model(model)[1] if name == "local" else model


def _class(name: str) -> Callable[..., Adapter]:
    if name not in _CLASSES:
        return adapter_factory(name)
    module, _, kind = _CLASSES[name].rpartition(".")
    made: Callable[..., Adapter] = getattr(
        import_module(f"trajudge.judges.adapters.{module}"), kind
    )
    return made
