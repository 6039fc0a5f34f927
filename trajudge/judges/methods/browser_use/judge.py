"""browser-use's built-in judge (``agent/judge.py``, version 0.13): one call over the task, the
actions, the result and the last screenshots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from trajudge.judges.methods.browser_use.texts import (
    GroundTruths,
    JudgePrompt,
    OwnPrompt,
    PackagePrompt,
    RunTexts,
    texts_of,
)
from trajudge.judges.model import ModelClient, Text, Verdict
from trajudge.judges.prompting.pictures import ImageLimits
from trajudge.judges.prompting.screenshots import first_that_fit
from trajudge.judges.prompting.truncated_prompts import (
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    prompt_tokens,
)
from trajudge.judges.replies import answer_schema, flag, parse_json, parse_reply
from trajudge.prompts.published import CHANGES, Untrusted
from trajudge.trajectories.model import ImageRef, Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.truncation import TruncationLevel

_FEWEST_CHARACTERS = 500
_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
SCHEMA: dict[str, Any] = answer_schema(
    "judgement",
    {
        "reasoning": _TEXT,
        "verdict": _FLAG,
        "failure_reason": _TEXT,
        "impossible_task": _FLAG,
        "reached_captcha": _FLAG,
    },
)
ASSUMED = json.dumps(
    {
        "reasoning": "The key points of the task are met, as the last screenshots show. " * 16,
        "verdict": True,
        "failure_reason": "",
        "impossible_task": False,
        "reached_captcha": False,
    }
)


class BrowserUseOptions(Record):
    """The last ``screenshots`` are shown (none with ``representation`` none); task, steps and
    answer are cut to ``characters`` each. ``ground_truth`` is a JSON file, task id to a text that
    stands above all rules; ``date`` is told to the judge as the present one; ``answer`` comes
    through the provider's structured output, or as JSON text; ``prompts`` are our own or the
    installed package's, which name the date and take ``untrusted`` text neutralised or as
    recorded."""

    representation: Literal["screenshot", "none"] = "screenshot"
    screenshots: int = Field(default=10, ge=1)
    characters: int = Field(default=40_000, ge=_FEWEST_CHARACTERS)
    ground_truth: Path | None = None
    date: str | None = None
    answer: Literal["schema", "json"] = "schema"
    prompts: Literal["trajudge", "browser-use"] = "trajudge"
    untrusted: Untrusted = "neutralised"
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @model_validator(mode="after")
    def _dated(self) -> BrowserUseOptions:
        if self.prompts == "browser-use" and not self.date:
            raise ValueError("browser-use's prompts name the date: add date='2026-01-31 12:00 UTC'")
        if self.prompts == "trajudge" and self.untrusted != "neutralised":
            raise ValueError("only the package's prompts send text as recorded")
        return self

    @property
    def needs(self) -> Needs:
        """A run without a screenshot is judged by its texts, as in the source."""
        shown = last(self.screenshots) if self.representation == "screenshot" else ()
        return Needs(screenshots=shown, answer=True)


class BrowserUse:
    """One call."""

    def __init__(self, options: BrowserUseOptions) -> None:
        """Read prompts and ground truth. Raises UserError for a package that is not installed, and
        for a file that cannot be read."""
        self._options = options
        self._prompt: JudgePrompt = OwnPrompt(options.date)
        if options.prompts == "browser-use":
            self._prompt = PackagePrompt(options.date or "", options.untrusted)
        self._truths = GroundTruths(options.ground_truth)
        contents = (self._prompt.prompt_hash, self._truths.content)
        self.prompt_hash = (
            sha256("\0".join(contents).encode()).hexdigest() if contents[1] else contents[0]
        )
        self._parameters: dict[str, Any] = {}
        if options.answer == "schema":
            self._parameters["response_format"] = SCHEMA

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises Skipped, ImageUnreadable, CallFailed and ParseFailure."""
        options = self._options
        texts = texts_of(trajectory, self._truths.of(trajectory))
        shown: list[RunTexts] = []
        reply = await ask_with_truncation(
            ask,
            partial(self._fitting, texts, self._latest(trajectory), shown),
            limit=options.max_prompt_tokens,
            images=options.images,
            assume=ASSUMED,
            **self._parameters,
        )
        verdict = parse_reply(reply, parse_judgement)
        if not isinstance(self._prompt, PackagePrompt):
            return verdict
        changes = {CHANGES: float(self._prompt.changes(shown[-1]))}
        return verdict.model_copy(update={"scores": verdict.scores | changes})

    def _latest(self, trajectory: Trajectory) -> list[ImageRef]:
        """Return the screenshots to show, the latest first."""
        if self._options.representation == "none":
            return []
        shots = (step.observation.screenshot for step in reversed(trajectory.steps))
        return [shot for shot in shots if shot is not None][: self._options.screenshots]

    def _fitting(
        self, texts: RunTexts, latest: Sequence[ImageRef], fitted: list[RunTexts], budget: int
    ) -> TruncatedPrompt | None:
        """Fit whole texts and all screenshots, else the latest ones, else shorter texts, which are
        appended to ``fitted``."""
        options, prompt = self._options, self._prompt
        system = prompt.system(ground_truth=texts.ground_truth is not None)
        for characters in _lengths(options.characters):
            shown = texts.cut(characters, prompt.mark)
            bare = conversation(system, [Text(text=prompt.user(shown, len(latest)))])
            pictures = first_that_fit(latest, budget - prompt_tokens(bare), options.images)
            if prompt_tokens(bare) > budget or len(pictures) < min(1, len(latest)):
                continue
            fitted.append(shown)
            text = Text(text=prompt.user(shown, len(pictures)))
            rung = "full" if characters == options.characters else TruncationLevel.CUT.label
            rung = rung if len(pictures) == len(latest) else "fewer"
            return TruncatedPrompt(rung, conversation(system, [text, *pictures[::-1]]))
        return None


def _lengths(characters: int) -> Iterator[int]:
    """Yield ``characters``, then half of it again and again."""
    lengths = (characters >> halvings for halvings in range(64))
    return takewhile(lambda length: length >= _FEWEST_CHARACTERS, lengths)


def parse_judgement(text: str) -> Verdict:
    """Parse the verdict in a JSON object; flags that are missing are false, as in the source.

    Raises ParseFailure if there is no verdict, or a flag that is neither true nor false.
    """
    parsed = parse_json(text, ["verdict"])
    fields = parsed.fields
    flags = {"impossible": "impossible_task", "captcha": "reached_captcha"}
    reasons = (fields.get("reasoning"), fields.get("failure_reason"))
    return Verdict(
        success=flag(fields, "verdict"),
        scores={
            name: float(field in fields and flag(fields, field)) for name, field in flags.items()
        },
        reasoning="\n".join(str(reason) for reason in reasons if reason),
        fallback=parsed.fallback,
    )
