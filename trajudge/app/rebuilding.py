"""The prompt exactly as it was sent: made again, and held to the hash that the run recorded.

The judge is run on the trajectory with the recorded replies in place of a model. A request is the
one that was sent if its hash is that of the recorded call; then, and only then, it says "same".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from trajudge.app.recorded_judge import Manifest, NotRebuilt, RemadeJudge, asked_model, remake
from trajudge.judges.judging import FAILURES, CallArgs, NotRecorded, ReplayClient
from trajudge.judges.methods.panel import PanelMember
from trajudge.judges.model import Call, Judgment, Message, Reply, Request, Text, Verdict
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError

Sameness = Literal["same", "differs", "cannot be rebuilt"]

# A line of our prompts: so many steps are left out in front of the one that follows.
_ELISION = re.compile(
    r'^\[\.\.\. (\d{1,6}) (?:steps|changes) left out \.\.\.\]\n(?:<[a-z]+ number=")?(\d{1,6})', re.M
)
_STOPS = (*FAILURES, UserError, ValueError, LookupError)


class RebuiltCall(NamedTuple):
    """A request as this release makes it; ``number`` is that of the recorded call, from 1. ``same``
    tells whether its hash is the recorded one."""

    number: int
    call: Call
    messages: tuple[Message, ...]
    model: str
    hash: str
    same: bool


class MemberVerdict(NamedTuple):
    """What one judge of a panel or a cascade said, read again from its replies; ``failure`` says
    why it gave no verdict."""

    label: str
    verdict: Verdict
    failure: str


class RebuiltPrompt(NamedTuple):
    """``sentence`` explains the ``outcome``. ``unseen`` are the first and the last step that were
    left out of the prompt, None where none was; ``needs`` is what the judge is shown, None where
    that is not known."""

    outcome: Sameness
    sentence: str
    calls: tuple[RebuiltCall, ...] = ()
    members: tuple[MemberVerdict, ...] = ()
    unseen: tuple[int, int] | None = None
    needs: Needs | None = None


class _PromptRecorder(ReplayClient):
    """Replays a judgment's replies and keeps the requests that they answer."""

    def __init__(self, judgment: Judgment, manifest: Manifest) -> None:
        super().__init__(judgment, lambda request: None)
        self._manifest, self._sample = manifest, judgment.sample
        self._numbers = {id(call): at for at, call in enumerate(judgment.calls, start=1)}
        self.rebuilt: list[RebuiltCall] = []

    async def answer(self, call_args: CallArgs) -> Reply:
        """Keep the request, then answer it. Raises as ``ReplayClient``."""
        recorded = self._left[call_args.stage]
        if recorded:
            requests = self._requests(call_args)
            hashes = {request.hash for request in requests}
            # Calls of one stage are made at once; the replies have to be those of their requests.
            at = next((at for at, call in enumerate(recorded) if call.request in hashes), 0)
            known = recorded[at]
            del recorded[at]
            recorded.appendleft(known)
            made = next((one for one in requests if one.hash == known.request), requests[0])
            self.rebuilt.append(
                RebuiltCall(
                    number=self._numbers[id(known)],
                    call=known,
                    messages=made.messages,
                    model=made.model,
                    hash=made.hash,
                    same=made.hash == known.request,
                )
            )
        return await super().answer(call_args)

    def _requests(self, call_args: CallArgs) -> list[Request]:
        """Make the request with each set of parameters that the run may have sent."""
        asked = asked_model(self._manifest, call_args.model)
        requests = []
        for parameters in asked.parameters:
            own = {**parameters, **call_args.parameters}
            # A model that thinks within its limit gets no lower one.
            for limit in dict.fromkeys((own.get("max_tokens"), parameters.get("max_tokens"))):
                changed = {**own, "max_tokens": limit} if limit is not None else own
                requests.append(
                    Request(
                        endpoint=asked.endpoint,
                        model=asked.model,
                        messages=tuple(call_args.messages),
                        parameters=changed,
                        sample=self._sample,
                    )
                )
        return requests


def rebuild(
    manifest: Manifest, judgment: Judgment, trajectory: Trajectory | None, why_absent: str = ""
) -> RebuiltPrompt:
    """Make the prompts of a judgment again; ``why_absent`` says why there is no trajectory. Nothing
    is asked and nothing is raised: what goes wrong is said."""
    try:
        remade = remake(manifest)
    except NotRebuilt as error:
        return RebuiltPrompt("cannot be rebuilt", f"{error}.")
    if not judgment.calls and not remade.members:
        return RebuiltPrompt("cannot be rebuilt", "no model was asked.", needs=remade.needs)
    if trajectory is None:
        return RebuiltPrompt("cannot be rebuilt", why_absent, needs=remade.needs)
    recorder = _PromptRecorder(judgment, manifest)
    members, problem = asyncio.run(_run(remade, trajectory, recorder))
    rebuilt = tuple(sorted(recorder.rebuilt, key=lambda each: each.number))
    outcome, sentence = _compared(manifest, judgment, remade, rebuilt, problem)
    return RebuiltPrompt(outcome, sentence, rebuilt, members, _unseen(rebuilt), remade.needs)


async def _run(
    remade: RemadeJudge, trajectory: Trajectory, recorder: _PromptRecorder
) -> tuple[tuple[MemberVerdict, ...], str]:
    """Run the judge, of a composed one its members; return what they said, and what stopped it."""
    if remade.members:
        said = [await _said(member, trajectory, recorder) for member in remade.members]
        return tuple(each for each in said if each is not None), ""
    try:
        await remade.judge(trajectory, recorder)
    except NotRecorded as error:
        return (), str(error)
    except _STOPS as error:
        return (), "" if recorder.is_complete else str(error)
    return (), ""


async def _said(
    member: PanelMember, trajectory: Trajectory, recorder: _PromptRecorder
) -> MemberVerdict | None:
    """Return what a member said; None for one that was not asked."""
    was_asked = any(call.stage.startswith(f"{member.label} ") for call in recorder.calls)
    try:
        return MemberVerdict(member.label, await member.verdict(trajectory, recorder), "")
    except NotRecorded as error:
        return MemberVerdict(member.label, Verdict(), str(error)) if was_asked else None
    except _STOPS as error:
        return MemberVerdict(member.label, Verdict(), str(error))


def _compared(
    manifest: Manifest,
    judgment: Judgment,
    remade: RemadeJudge,
    rebuilt: Sequence[RebuiltCall],
    problem: str,
) -> tuple[Sameness, str]:
    missing = len(judgment.calls) - len(rebuilt)
    if not judgment.calls:
        return "cannot be rebuilt", "no model was asked."
    if rebuilt and not missing and all(each.same for each in rebuilt):
        requests = "the request has" if len(rebuilt) == 1 else f"all {len(rebuilt)} requests have"
        return "same", f"{requests} the hash that the run recorded."
    if not rebuilt:
        return "cannot be rebuilt", f"{problem or 'the judge makes other calls now'}."
    if remade.prompt_hash != manifest.get("prompt_hash"):
        before, now = manifest.get("prompt_hash") or "none", remade.prompt_hash or "none"
        return "differs", f"the prompts changed since ({str(before)[:12]} then, {now[:12]} now)."
    if missing:
        why = f" ({problem})" if problem else ""
        return "differs", f"{missing} of {len(judgment.calls)} calls are not made again{why}."
    others = sum(not each.same for each in rebuilt)
    return "differs", (
        f"{others} of {len(rebuilt)} requests have another hash, with the same prompts: the "
        "trajectory, its pictures or the model's settings are not those of the run."
    )


def _unseen(rebuilt: Sequence[RebuiltCall]) -> tuple[int, int] | None:
    """Return the steps that the last prompt says it left out."""
    for each in reversed(rebuilt):
        texts = [p.text for m in each.messages for p in m.parts if isinstance(p, Text)]
        for text in texts:
            if each.call.rung == "elided" and (match := _ELISION.search(text)):
                count, following = int(match[1]), int(match[2])
                return (following - count, following - 1) if 0 < count < following else None
    return None
