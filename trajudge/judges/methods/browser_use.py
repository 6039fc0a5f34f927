"""browser-use's built-in judge (``agent/judge.py``, version 0.13): one call over the task, the
steps as its history lists them and the last screenshots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field, model_validator

from trajudge.judges.model import ModelClient, Skipped, Text, Verdict
from trajudge.judges.options import read_json
from trajudge.judges.prompting import (
    ImageLimits,
    TruncatedPrompt,
    ask_with_truncation,
    conversation,
    first_that_fit,
    prompt_tokens,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import answer_schema, flag, parse_json, parse_reply
from trajudge.prompts.published import CHANGES, Untrusted, load_published_judge
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import ImageRef, Record, Trajectory
from trajudge.trajectories.needs import Needs, last
from trajudge.trajectories.truncate import TruncationLevel
from trajudge.util.errors import UserError
from trajudge.util.files import read_text

# Of 23 characters, which a text that is cut gives way to.
CUT = "[... text is cut here.]"


class RunTexts(NamedTuple):
    """What is shown of a run; ``ground_truth`` None: there is none. "" where nothing is known."""

    goal: str
    steps: str
    answer: str
    ground_truth: str | None

    def cut(self, characters: int, mark: str = CUT) -> RunTexts:
        """Cut task, steps and answer to ``characters`` each."""
        goal, steps, answer = (cut_end(text, characters, mark) for text in self[:3])
        return RunTexts(goal, steps, answer, self.ground_truth)


class JudgePrompt(Protocol):
    """Writes the system and the user text; ``mark`` stands where a text was cut."""

    prompt_hash: str
    mark: str

    def system(self, *, ground_truth: bool) -> str: ...

    def user(self, texts: RunTexts, pictures: int) -> str: ...


class OwnPrompt:
    """``prompts/browser-use``."""

    mark = CUT

    def __init__(self, date: str | None) -> None:
        self._prompt, self._date = load_prompt("browser-use"), date
        self.prompt_hash = self._prompt.hash

    def system(self, *, ground_truth: bool) -> str:
        return self._prompt.render("system", ground_truth=ground_truth, date=self._date)

    def user(self, texts: RunTexts, pictures: int) -> str:
        return self._prompt.render("user", pictures=pictures, **texts._asdict())


class PackagePrompt:
    """The installed package's own prompts; it names the date in them."""

    def __init__(self, date: str, untrusted: Untrusted) -> None:
        """Load the prompts. Raises UserError if the package is not installed."""
        self._prompt, self._date = load_published_judge(untrusted), date
        self.prompt_hash, self.mark = self._prompt.hash, self._prompt.mark

    def system(self, *, ground_truth: bool) -> str:
        return self._prompt.system(ground_truth=ground_truth, date=self._date)

    def user(self, texts: RunTexts, pictures: int) -> str:
        return self._prompt.user(
            task=texts.goal,
            steps=texts.steps,
            result=texts.answer,
            ground_truth=texts.ground_truth,
            images=pictures,
        )

    def changes(self, texts: RunTexts) -> int:
        """Count the places of the texts that are not sent as they were recorded."""
        return self._prompt.untrusted.changes(texts)


def texts_of(trajectory: Trajectory, ground_truth: str | None) -> RunTexts:
    """Return the whole texts of a run: for each step its number, its action, what that extracted
    and the errors it had where the run's recorder kept them, else the error that the next page
    reports of it. Of several actions in a step, each text has the number of its action."""
    extracted, errors = _kept(trajectory, "results"), _kept(trajectory, "errors")
    observed = [step.observation.page_error for step in trajectory.steps]
    lines = []
    for step, error in zip_longest(trajectory.steps, observed[1:]):
        line = f"Step {step.index + 1}:\n"
        if step.action is not None:
            line += f"Actions: {step.action}\n"
        own = [error] if errors is None else _of_step(errors, step.index)
        both = zip_longest(_of_step(extracted, step.index), own)
        for number, (result, failure) in enumerate(both, 1):
            line += f"Result {number}: {result}\n" if result else ""
            line += f"Error {number}: {failure}\n" if failure else ""
        lines.append(line)
    return RunTexts(trajectory.goal, "\n".join(lines), trajectory.answer or "", ground_truth)


def _kept(trajectory: Trajectory, name: str) -> list[Any] | None:
    """Return what the run's recorder kept of each step: ``metadata["results"]``, the texts that its
    actions extracted (None for one that extracted none), and ``metadata["errors"]``, likewise, as
    the loader of browser-use's histories gives them; None where it kept nothing."""
    kept = trajectory.metadata.get(name)
    return kept if isinstance(kept, list) else None


def _of_step(kept: list[Any] | None, index: int) -> list[str | None]:
    texts = kept[index] if kept is not None and index < len(kept) else None
    if not isinstance(texts, list):
        return []
    return [text if isinstance(text, str) else None for text in texts]


def cut_end(text: str, characters: int, mark: str) -> str:
    """Cut ``text`` to its beginning where it is longer, the last 23 characters for the mark."""
    return text if len(text) <= characters else text[: characters - 23] + mark


class GroundTruths:
    """The texts of a JSON file by task id; without a file no run has one."""

    def __init__(self, path: Path | None) -> None:
        """Read the file. Raises UserError for one that cannot be read or holds anything else."""
        self._path = path
        self._texts = {} if path is None else _read(path)
        self.content = "" if path is None else read_text(path)

    def of(self, trajectory: Trajectory) -> str | None:
        """Return the run's ground truth. Raises Skipped if the file has none for its task."""
        if self._path is None:
            return None
        for name in (trajectory.key.task_id, trajectory.raw_task_id):
            if name in self._texts:
                return self._texts[name]
        raise Skipped(f"{self._path} holds no ground truth of task {trajectory.key.task_id}")


def _read(path: Path) -> dict[str, str]:
    wanted = 'give a JSON object {"TASK_ID": "what is true of the task"}'
    truths = read_json("ground_truth", path, wanted)
    is_map = isinstance(truths, dict) and all(isinstance(text, str) for text in truths.values())
    if not is_map:
        raise UserError(f"ground_truth {path}: holds something else than texts by task; {wanted}")
    return dict(truths)


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
