"""browser-use's built-in judge (``agent/judge.py``, version 0.13): one call over the task, the
steps as its history lists them and the last screenshots.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from trajudge.judges.answers import BOOLEAN, STRING, AnswerForm, AnswerOptions, answer_schema
from trajudge.judges.model import Model, Skipped, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    first_that_fit,
    prompt_tokens,
)
from trajudge.judges.registry import read_json, register_judge
from trajudge.judges.replies import flag, parse_json, parse_reply
from trajudge.prompts.published import CHANGES, PublishedJudge, Untrusted, load_published_judge
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.util.errors import UserError

# Of 23 characters, which a text that is cut gives way to.
CUT = "[... text is cut here.]"
_FEWEST_CHARACTERS = 500

SCHEMA: dict[str, Any] = answer_schema(
    "judgement",
    {
        "reasoning": STRING,
        "verdict": BOOLEAN,
        "failure_reason": STRING,
        "impossible_task": BOOLEAN,
        "reached_captcha": BOOLEAN,
    },
)
_ASSUMED = json.dumps(
    {
        "reasoning": "The key points of the task are met, as the last screenshots show. " * 16,
        "verdict": True,
        "failure_reason": "",
        "impossible_task": False,
        "reached_captcha": False,
    }
)


class BrowserUseOptions(AnswerOptions):
    """The last ``screenshots`` are shown (none with ``representation`` none); task, steps and
    answer are cut to ``characters`` each. ``ground_truth`` is a JSON file, task id to a text that
    stands above all rules; ``date`` is told to the judge as the present one; ``prompts`` are our
    own or the installed package's, which name the date, take ``untrusted`` text neutralised or as
    recorded, and ask by a schema as the package does."""

    representation: Literal["screenshot", "none"] = "screenshot"
    screenshots: int = Field(default=10, ge=1)
    characters: int = Field(default=40_000, ge=_FEWEST_CHARACTERS)
    ground_truth: Path | None = None
    date: str | None = None
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
    def form(self) -> AnswerForm:
        """How the answer is asked for."""
        published = self.answer == "auto" and self.prompts == "browser-use"
        return "schema" if published else super().form

    @property
    def needs(self) -> Needs:
        """A run without a screenshot is judged by its texts, as in the source."""
        shown = last(self.screenshots) if self.representation == "screenshot" else ()
        return Needs(screenshots=shown, answer=True)


class RunTexts(NamedTuple):
    """What is shown of a run, "" where nothing is known; ``truth`` None: there is none."""

    task: str
    steps: str
    result: str
    ground_truth: str | None

    def cut(self, characters: int, mark: str = CUT) -> RunTexts:
        """Cut task, steps and result to ``characters`` each, the last 23 of them for the mark."""
        task, steps, result = (
            text if len(text) <= characters else text[: characters - 23] + mark for text in self[:3]
        )
        return RunTexts(task, steps, result, self.ground_truth)


class _OwnPrompt:
    """``prompts/browser-use``, with the methods of a ``PublishedJudge``."""

    mark, text_hash = CUT, ""

    def __init__(self) -> None:
        self._prompt = load_prompt("browser-use")
        self.hash = self._prompt.hash

    def system(self, *, ground_truth: bool, date: str | None) -> str:
        return self._prompt.render("system", ground_truth=ground_truth, date=date or None)

    def user(
        self, *, task: str, steps: str, result: str, ground_truth: str | None, images: int
    ) -> str:
        values = {"goal": task, "steps": steps, "answer": result, "ground_truth": ground_truth}
        return self._prompt.render("user", pictures=images, **values)


@register_judge(
    "browser-use",
    BrowserUseOptions,
    summary="actions, result and last screenshots (browser-use's own judge)",
    id_options=("representation", "screenshots", "ground_truth", "date", "prompts", "untrusted"),
    representations=("screenshot", "none"),
)
class BrowserUse:
    """One call."""

    def __init__(self, options: BrowserUseOptions) -> None:
        """Read prompts and ground truth. Raises UserError for a package that is not installed, and
        for a file that cannot be read."""
        self._options = options
        self._prompt: _OwnPrompt | PublishedJudge = _OwnPrompt()
        if options.prompts == "browser-use":
            self._prompt = load_published_judge(options.untrusted)
        self._truths = read_ground_truths(options.ground_truth) if options.ground_truth else {}
        self.prompt_hash, self.text_hash = self._prompt.hash, self._prompt.text_hash
        if options.ground_truth:
            both = f"{self._prompt.hash}\0{json.dumps(self._truths, sort_keys=True)}"
            self.prompt_hash = sha256(both.encode()).hexdigest()

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises Skipped, ImageUnreadable, CallFailed and ParseFailure."""
        options, prompt = self._options, self._prompt
        whole = texts_of(trajectory, self._ground_truth(trajectory))
        latest = self._latest(trajectory)
        system = prompt.system(ground_truth=whole.ground_truth is not None, date=options.date or "")
        fitted: list[RunTexts] = []

        async def make(budget: int) -> TruncatedPrompt | None:
            """Fit whole texts and all screenshots, else the latest ones, else shorter texts."""
            characters = options.characters
            while characters >= _FEWEST_CHARACTERS:
                texts = whole.cut(characters, prompt.mark)
                user = prompt.user(**texts._asdict(), images=len(latest))
                bare = conversation(system, [Text(text=user)])
                pictures = await first_that_fit(
                    latest, budget - prompt_tokens(bare), options.images
                )
                if prompt_tokens(bare) <= budget and len(pictures) >= min(1, len(latest)):
                    fitted.append(texts)
                    text = Text(text=prompt.user(**texts._asdict(), images=len(pictures)))
                    rung = "full" if characters == options.characters else "cut"
                    rung = rung if len(pictures) == len(latest) else "fewer"
                    return TruncatedPrompt(rung, conversation(system, [text, *pictures[::-1]]))
                characters //= 2
            return None

        reply = await ask_with_truncation(
            ask,
            make,
            limit=options.max_prompt_tokens,
            images=options.images,
            assume=_ASSUMED,
            **options.answer_format(SCHEMA),
        )
        verdict = parse_reply(reply, parse_judgement)
        if isinstance(prompt, PublishedJudge):
            changes = {CHANGES: float(prompt.changes(fitted[-1]))}
            return verdict.model_copy(update={"scores": verdict.scores | changes})
        return verdict

    def _latest(self, trajectory: Trajectory) -> list[ImageRef]:
        """Return the screenshots to show, the latest first."""
        if self._options.representation == "none":
            return []
        shots = (step.observation.screenshot for step in reversed(trajectory.steps))
        return [shot for shot in shots if shot is not None][: self._options.screenshots]

    def _ground_truth(self, trajectory: Trajectory) -> str | None:
        """Return the run's ground truth. Raises Skipped if the file has none for its task."""
        path = self._options.ground_truth
        if path is None:
            return None
        for name in (trajectory.key.task_id, trajectory.raw_task_id):
            if name in self._truths:
                return self._truths[name]
        raise Skipped(f"{path} holds no ground truth of task {trajectory.key.task_id}")


def read_ground_truths(path: Path) -> dict[str, str]:
    """Read the texts of a JSON file by task id. Raises UserError for one that cannot be read or
    holds anything else."""
    wanted = 'give a JSON object {"TASK_ID": "what is true of the task"}'
    truths = read_json("ground_truth", path, wanted)
    is_map = isinstance(truths, dict) and all(isinstance(text, str) for text in truths.values())
    if not is_map:
        raise UserError(f"ground_truth {path}: holds something else than texts by task; {wanted}")
    return dict(truths)


def texts_of(trajectory: Trajectory, ground_truth: str | None) -> RunTexts:
    """Return the whole texts of a run: for each step its number, its action, what that extracted
    and the errors it had where the run's recorder kept them, else the error that the next page
    reports of it. Of several actions in a step, each text has the number of its action.

    A recorder keeps them in ``metadata["results"]`` and ``metadata["errors"]``, a list of texts or
    None for each step, as the loader of browser-use's histories gives them."""
    results, errors = trajectory.metadata.get("results"), trajectory.metadata.get("errors")
    observed = [step.observation.page_error for step in trajectory.steps]
    lines = []
    for step, error in zip_longest(trajectory.steps, observed[1:]):
        line = f"Step {step.index + 1}:\n"
        if step.action is not None:
            line += f"Actions: {step.action}\n"
        own = _of_step(errors, step.index) if isinstance(errors, list) else [error]
        both = zip_longest(_of_step(results, step.index), own)
        for number, (result, failure) in enumerate(both, 1):
            line += f"Result {number}: {result}\n" if result else ""
            line += f"Error {number}: {failure}\n" if failure else ""
        lines.append(line)
    return RunTexts(trajectory.goal, "\n".join(lines), trajectory.answer or "", ground_truth)


def _of_step(kept: object, index: int) -> Sequence[str | None]:
    texts = kept[index] if isinstance(kept, list) and index < len(kept) else None
    if not isinstance(texts, list):
        return []
    return [text if isinstance(text, str) else None for text in texts]


def parse_judgement(text: str) -> Verdict:
    """Parse the verdict in a JSON object; flags that are missing are false, as in the source.

    Raises ParseFailure if there is no verdict, or a flag that is neither true nor false.
    """
    parsed = parse_json(text, ["verdict"])
    fields: Mapping[str, Any] = parsed.fields
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
