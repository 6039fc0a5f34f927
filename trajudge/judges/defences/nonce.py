"""Tags of the material with an ending that nobody could write beforehand: the option ``nonce``.

The ending is derived from a hash of the seed and of the messages of the call, so that the same
request has the same bytes: the cache answers it, and an interrupted run goes on. It protects from
tags that were written into a page, a thought or an answer before the request existed, however well
they are disguised: text cannot hold a hash of itself. It does not protect from an instruction that
needs no tag, nor from an attacker who knows the seed *and* every other byte of the request, and can
search for a text that holds its own ending (40 bits).
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import takewhile

from trajudge.judges.defences.messages import ChangingClient, before_material, notices
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, Message, ModelClient, Part, Text
from trajudge.trajectories.model import Trajectory

_BYTES = 5  # 8 letters in base 32


def nonce_of(purpose: str, seed: int, messages: Sequence[Message]) -> str:
    """Derive eight letters and digits from the messages up to the user's first turn."""
    digest = sha256(f"{purpose}\0{seed}".encode())
    for content in _contents(messages):
        digest.update(b"\0" + content.encode(errors="surrogatepass"))
    return b32encode(digest.digest()[:_BYTES]).decode().lower()


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    before = list(takewhile(lambda one: one.role != "user", messages))
    for message in messages[: len(before) + 1]:
        for part in message.parts:
            yield part.text if isinstance(part, Text) else part.sha256


class NonceJudge(DefendedJudge):
    """A judge whose ``tags``, those of its prompts, carry a nonce around the material."""

    def __init__(self, judge: Judge, seed: int, tags: frozenset[str]) -> None:
        super().__init__(judge, "nonce", str(seed), notices().hash)
        self._seed = seed
        names = "|".join(sorted(tags, key=lambda tag: (-len(tag), tag)))
        self._tags = re.compile(rf"(</?(?:{names}))(?![\w-])")

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that ends the tags of every call in a nonce."""
        return ChangingClient(ask, self._ended)

    def _ended(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Change what the user's turns hold. Untrusted text has no tag of the prompt, for it was
        neutralised: all that are left are ours."""
        nonce = nonce_of("nonce", self._seed, messages)
        changed = [
            message.model_copy(
                update={"parts": tuple(self._ended_part(part, nonce) for part in message.parts)}
            )
            if message.role == "user"
            else message
            for message in messages
        ]
        return before_material(changed, notices().render("nonce", nonce=nonce))

    def _ended_part(self, part: Part, nonce: str) -> Part:
        if not isinstance(part, Text):
            return part
        return Text(text=self._tags.sub(rf"\1-{nonce}", part.text))
