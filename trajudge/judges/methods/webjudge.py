"""WebJudge (Online-Mind2Web, Xue et al., 2025): key points of the task, every screenshot scored
against them, then a verdict on those that matter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from pydantic import Field

from trajudge.judges.answers import STATUS, AnswerOptions, GradeAnswer, parse_status
from trajudge.judges.model import Detail, Message, Model, Picture, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    Shot,
    ask_about_pictures,
    conversation,
    cut_or_full,
    picture,
    recorded,
    template_variables,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    error_context,
    gather_bounded,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
)
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import ALL, Needs
from trajudge.trajectories.tokens import count_tokens
from trajudge.trajectories.truncate import TruncatedView, cut_middle

# The resolution that the source asks for.
DETAIL: Detail = "high"
# Of the verdict's prompt: what pictures with their notes may take; the rest is for the history.
PICTURES_SHARE = 0.6
NOTE_OVERHEAD = 20
SCORE = GradeAnswer("reasoning", "score", 1, 5)
ASSUMED_POINTS = "\n".join(f"{n}. The result fulfils a condition of the task." for n in range(1, 5))
ASSUMED_SCORE = "Reasoning: " + "The page shows a filter that the task names. " * 24 + "\nScore: 4"


class WebJudgeOptions(AnswerOptions):
    """``variant`` general shows the agent's thoughts beside its actions, online-mind2web does
    not, and each has rules of its own; screenshots that score ``threshold`` or more are shown, at
    most ``screenshots``, each with at most ``note_tokens`` of what was noted about it."""

    variant: Literal["general", "online-mind2web"] = "general"
    threshold: int = Field(default=3, ge=1, le=5)
    screenshots: int = Field(default=50, ge=1)
    note_tokens: int = Field(default=1_000, ge=20)
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @property
    def needs(self) -> Needs:
        """Every screenshot is scored, however few of them the verdict shows."""
        return Needs(screenshots=ALL, answer=True, requires=("screenshot",))


class Note(NamedTuple):
    """What was said of a screenshot, and its score of 1 to 5."""

    shot: Shot
    score: float
    text: str


@register_judge(
    "webjudge",
    WebJudgeOptions,
    summary="key points, screenshots scored, a verdict on the best (WebJudge)",
    id_options=("variant", "threshold", "screenshots"),
    representations=("screenshot",),
    pictures="judge",
)
class WebJudge:
    """Three calls deep: the key points, all screenshots at once, the verdict."""

    def __init__(self, options: WebJudgeOptions) -> None:
        self._options = options
        self._prompt = load_prompt("webjudge")
        self._system = self._prompt.render("system", variant=options.variant, answer=options.form)
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shots = recorded(trajectory)
        goal = cut_middle(trajectory.goal, self._options.max_prompt_tokens // 4)
        rung = cut_or_full(trajectory.goal, goal)
        points = await self._key_points(goal, ask, rung)
        notes = await gather_bounded(
            [partial(self._note, goal, points, shot, ask) for shot in shots]
        )
        passed = sorted(
            (note for note in notes if note.score >= self._options.threshold),
            key=lambda note: (-note.score, -note.shot.number),
        )
        return await self._verdict(trajectory, points, passed[: self._options.screenshots], ask)

    async def _key_points(self, goal: str, ask: Model, rung: str) -> str:
        user = Text(text=self._prompt.render("key_points_user", goal=goal))
        messages = conversation(self._prompt.render("key_points"), [user])
        with error_context("key points"):
            reply = await ask(messages, stage="key_points", rung=rung, assume=ASSUMED_POINTS)
            return parse_complete_reply(reply, nonempty_text)

    async def _note(self, goal: str, points: str, shot: Shot, ask: Model) -> Note:
        """Ask for a note on one screenshot. The text comes before the picture: it is the same for
        all screenshots of a run."""
        text = self._prompt.render("screenshot_user", goal=goal, key_points=points)
        shown = picture(shot.image, self._options.images, DETAIL)
        system = self._prompt.render("screenshot", answer=self._options.form)
        messages = conversation(system, [Text(text=text), shown])
        with error_context(f"screenshot of step {shot.number}"):
            form = self._options.answer_format(SCORE.schema)
            reply = await ask(messages, stage="screenshot", assume=ASSUMED_SCORE, **form)
            grade = parse_reply(reply, partial(SCORE.parse, form=self._options.form))
            return Note(shot, grade.value, self._kept(grade.reasoning))

    def _kept(self, reasoning: str) -> str:
        """Return what the verdict is shown of a note: the source's variant for Online-Mind2Web
        keeps the first paragraph, the general one all of it; both on one line."""
        if self._options.variant == "online-mind2web":
            reasoning = reasoning.split("\n\n", maxsplit=1)[0]
        return cut_middle(reasoning.replace("\n", " "), self._options.note_tokens)

    async def _verdict(
        self, trajectory: Trajectory, points: str, best: Sequence[Note], ask: Model
    ) -> Verdict:
        """Ask for the verdict; ``best`` are the notes to show, the best first."""
        options = self._options

        def messages(
            view: TruncatedView, notes: Sequence[Note], pictures: Sequence[Picture]
        ) -> list[Message]:
            text = self._prompt.render(
                "user",
                variant=options.variant,
                key_points=points,
                notes=[{"number": note.shot.number, "text": note.text} for note in notes],
                **template_variables(view),
            )
            return conversation(self._system, [Text(text=text), *pictures])

        reply = await ask_about_pictures(
            ask,
            trajectory,
            best,
            messages,
            shot_of=lambda note: note.shot,
            share=PICTURES_SHARE,
            limit=options.max_prompt_tokens,
            images=options.images,
            text_tokens=[NOTE_OVERHEAD + count_tokens(note.text) for note in best],
            detail=DETAIL,
            **options.answer_format(STATUS),
        )
        return parse_reply(reply, partial(parse_status, form=options.form))
