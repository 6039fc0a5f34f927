"""Access tokens of Microsoft Entra that renew themselves, by azure-identity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec

from trajudge.judges.adapters.errors import AuthFailed, Unreachable
from trajudge.judges.adapters.sdk import root_cause

TokenProvider = Callable[[], Awaitable[str]]
"""Returns the token that is good now; the openai SDK calls it before every request."""

_SCOPE = "https://cognitiveservices.azure.com/.default"
_SIGN_IN = "az login,  or export AZURE_OPENAI_API_KEY=..."


def is_installed() -> bool:
    """Tell whether azure-identity is."""
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
