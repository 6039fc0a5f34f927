"""A word that every reply must end in, and an instruction that no honest one follows: the option
``canary``.

Both words are derived from the seed and the messages, as a nonce is. A reply that writes the
planted word has followed an instruction of the material, one without its own word may have been
written to another form than ours: neither is parsed for a verdict, and the judgment is
``unparsable`` with its reason. A run whose prompts changed since cannot be parsed again, for its
words are others. It does not catch a reply that obeys an attack and keeps to the form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

from trajudge.judges.client import BaseClient, CallArgs, pass_on
from trajudge.judges.defences.messages import before_material, notices
from trajudge.judges.defences.nonce import nonce_of
from trajudge.judges.defences.wrapping import DefendedJudge
from trajudge.judges.model import Judge, ModelClient, Reply
from trajudge.judges.replies import ReplyParseError, check_reply
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.thoughts import split_thoughts

_LINE = re.compile(
    r"^[^\w\n]{0,8}check[^\w\n]{1,8}(\w{1,40})[^\w\n]{0,8}$\n?", re.IGNORECASE | re.MULTILINE
)
_FIELD = re.compile(r'(?<!\\)"check"\s{0,8}:\s{0,8}"(\w{1,40})"')


class CanaryJudge(DefendedJudge):
    """A judge whose replies are checked before they are parsed."""

    def __init__(self, judge: Judge, seed: int) -> None:
        super().__init__(judge, "canary", str(seed), notices().hash)
        self._seed = seed

    def client(self, trajectory: Trajectory, ask: ModelClient) -> ModelClient:
        """Return a client that asks for the word and checks it."""
        return _CanaryClient(ask, self._seed)


class _CanaryClient(BaseClient):
    def __init__(self, ask: ModelClient, seed: int) -> None:
        self._ask, self._seed = ask, seed

    async def answer(self, call_args: CallArgs) -> Reply:
        """Raise ReplyParseError for a reply without its word, or with the planted one, and what
        ``check_reply`` raises."""
        messages = call_args.messages
        word, planted = (nonce_of(name, self._seed, messages) for name in ("canary", "planted"))
        text = notices().render("canary", word=word, planted=planted)
        assume = call_args.assume and f"{call_args.assume}\nCheck: {word}"
        reply = await pass_on(
            self._ask,
            call_args._replace(messages=before_material(messages, text), assume=assume),
        )
        check_reply(reply)
        _check(reply, word, planted, call_args.parameters)
        return reply.model_copy(update={"text": _LINE.sub("", reply.text)})


def _check(reply: Reply, word: str, planted: str, parameters: Mapping[str, JsonValue]) -> None:
    """Raise ReplyParseError unless the reply outside of its reasoning holds the one word."""
    text = split_thoughts(reply.text, reasoning=True).answer
    words = {found.lower() for found in _LINE.findall(text)}
    if "response_format" in parameters:
        words |= {found.lower() for found in _FIELD.findall(text)}
    if planted in words:
        raise ReplyParseError("canary: the reply follows an instruction in the material", reply)
    if words != {word}:
        raise ReplyParseError("canary: the reply lacks the word that was asked for", reply)
