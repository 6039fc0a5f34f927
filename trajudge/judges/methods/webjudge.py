"""WebJudge (Online-Mind2Web, Xue et al., 2025): key points of the task, every screenshot scored
against them, then a verdict on those that matter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from trajudge.judges.answers import STATUS, GradeAnswer, SourcedAnswerOptions, parse_status
from trajudge.judges.model import Detail, Message, Model, Part, Picture, Text, Verdict
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
    Grade,
    ParseFailure,
    ReplyParseError,
    error_context,
    gather_bounded,
    nonempty_text,
    parse_complete_reply,
    parse_reply,
)
from trajudge.prompts.published import CHANGES, left_out
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
UNREAD = "notes_unread"
"""The score of a verdict that counts the screenshots whose notes could not be read."""
_REASONING = "**Reasoning**:"
SCORE = GradeAnswer("reasoning", "score", 1, 5)
ASSUMED_POINTS = "\n".join(f"{n}. The result fulfils a condition of the task." for n in range(1, 5))
ASSUMED_SCORE = "Reasoning: " + "The page shows a filter that the task names. " * 24 + "\nScore: 4"


class WebJudgeOptions(SourcedAnswerOptions):
    """``variant`` general shows the agent's thoughts beside its actions, online-mind2web does
    not, and each has rules of its own; screenshots that score ``threshold`` or more are shown, at
    most ``screenshots``, each with at most ``note_tokens`` of what was noted about it."""

    sources: ClassVar[tuple[str, ...]] = ("online-mind2web",)

    variant: Literal["general", "online-mind2web"] = "general"
    threshold: int = Field(default=3, ge=1, le=5)
    screenshots: int = Field(default=50, ge=1)
    note_tokens: int = Field(default=1_000, ge=20)
    max_prompt_tokens: int = 120_000
    images: ImageLimits = ImageLimits()

    @property
    def needs(self) -> Needs:
        """Every screenshot is scored, however few of them the verdict shows. The published prompts
        show the goal's pictures in the general variant, and no answer."""
        published = self.is_published
        return Needs(
            screenshots=ALL,
            answer=not published,
            goal_images=published and self.variant == "general",
            requires=("screenshot",),
        )


class Note(NamedTuple):
    """What was said of a screenshot, and its score of 1 to 5; 0 where ``unread`` says why it could
    not be read, as in the source."""

    shot: Shot
    score: float
    text: str
    unread: ReplyParseError | None = None


class _OwnForm:
    """``prompts/webjudge``."""

    def __init__(self, options: WebJudgeOptions) -> None:
        self._options, self._prompt = options, load_prompt("webjudge")
        self.hash, self.text_hash = self._prompt.hash, ""
        self.system = self._prompt.render("system", variant=options.variant, answer=options.form)
        self.points = nonempty_text

    def key_points(self, goal: str, pictures: Sequence[Picture]) -> list[Message]:
        """Build the question for the key points."""
        user = Text(text=self._prompt.render("key_points_user", goal=goal))
        return conversation(self._prompt.render("key_points"), [user])

    def screenshot(
        self, goal: str, points: str, shown: Picture, pictures: Sequence[Picture]
    ) -> list[Message]:
        """Build the question for a note on a screenshot. The text comes before the picture: it is
        the same for all screenshots of a run."""
        text = self._prompt.render("screenshot_user", goal=goal, key_points=points)
        system = self._prompt.render("screenshot", answer=self._options.form)
        return conversation(system, [Text(text=text), shown])

    def grade(self, text: str) -> Grade:
        """Parse a note: what the verdict is shown of it and the score. The source's variant for
        Online-Mind2Web keeps the first paragraph, the general one all of it; both on one line."""
        grade = SCORE.parse(text, self._options.form)
        reasoning = grade.reasoning
        if self._options.variant == "online-mind2web":
            reasoning = reasoning.split("\n\n", maxsplit=1)[0]
        return Grade(grade.value, reasoning.replace("\n", " "))

    def best(self, notes: Sequence[Note]) -> list[Note]:
        """Order the notes that passed, the best first, of equal ones the later."""
        return sorted(notes, key=lambda note: (-note.score, -note.shot.number))

    def verdict(
        self,
        view: TruncatedView,
        points: str,
        notes: Sequence[Note],
        shown: Sequence[Picture],
        pictures: Sequence[Picture],
    ) -> list[Message]:
        """Build the question for the verdict; ``shown`` are the screenshots of the ``notes``."""
        text = self._prompt.render(
            "user",
            variant=self._options.variant,
            key_points=points,
            notes=[{"number": note.shot.number, "text": note.text} for note in notes],
            **template_variables(view),
        )
        return conversation(self.system, [Text(text=text), *shown])


class _SourceForm:
    """Online-Mind2Web's own words, with the methods of an ``_OwnForm``: ``pictures`` of the goal
    have a turn of their own before the question, and screenshots are shown in order of time."""

    def __init__(self, options: WebJudgeOptions) -> None:
        self._general = options.variant == "general"
        self.texts = options.texts(f"webjudge-{options.variant}")
        self.hash, self.text_hash = self.texts.hash, self.texts.text_hash

    def points(self, text: str) -> str:
        """Return what stands below the heading of a reply's key points. Raises ParseFailure if the
        reply is empty."""
        nonempty_text(text)
        text = text.replace("\n\n", "\n")
        _, heading, below = text.partition("**Key Points**:")
        # As in the source: what stands before a second heading.
        below = below.partition(heading)[0] if heading else text.rpartition("Key Points:")[2]
        return "\n".join(line.lstrip() for line in below.splitlines())

    def key_points(self, goal: str, pictures: Sequence[Picture]) -> list[Message]:
        text = Text(text=self.texts.write("key_points_user", task=goal))
        return conversation(self.texts.fill("key_points_system"), [text, *pictures])

    def screenshot(
        self, goal: str, points: str, shown: Picture, pictures: Sequence[Picture]
    ) -> list[Message]:
        text = Text(text=self.texts.write("screenshot_user", task=goal, key_points=points))
        return self._turns("screenshot_system", pictures, [text, shown])

    def grade(self, text: str) -> Grade:
        """Parse a note as the source does: the first digit from 1 to 5 behind ``Score``. Raises
        ParseFailure."""
        mark, start = ("### Score", "### Reasoning:") if self._general else ("Score", _REASONING)
        behind = text.split(mark)
        digit = re.search("[1-5]", behind[1]) if len(behind) > 1 else None
        if digit is None:
            raise ParseFailure(f"the reply holds no digit from 1 to 5 behind  {mark}")
        note = text.rpartition(start)[2].strip()
        note = note.split("### Score" if self._general else "\n\n", maxsplit=1)[0]
        return Grade(float(digit[0]), note.replace("\n", " "))

    def best(self, notes: Sequence[Note]) -> list[Note]:
        return list(notes)

    def verdict(
        self,
        view: TruncatedView,
        points: str,
        notes: Sequence[Note],
        shown: Sequence[Picture],
        pictures: Sequence[Picture],
    ) -> list[Message]:
        steps = [step for step in view.steps if step.action is not None]
        shows_thoughts = self._general and any(step.reasoning is not None for step in steps)
        actions = []
        for number, step in enumerate(steps, 1):
            line = f"{number}. {self.texts.shown(str(step.action))}"
            if shows_thoughts:
                line += f". Reasoning: {self.texts.shown(str(step.reasoning))}"
            actions.append(line)
        if view.elided:
            actions.insert(view.head, left_out(view.elided).strip())
        thoughts = [self.texts.shown(note.text) for note in notes if note.text]
        values = {"thoughts": "\n".join(f"{n}. {text}" for n, text in enumerate(thoughts, 1))}
        text = self.texts.fill(
            "user" if shown else "user_without",
            task=self.texts.shown(view.goal),
            key_points=self.texts.shown(points),
            last_actions="\n".join(actions),
            **values,
        )
        return self._turns("system", pictures, [Text(text=text), *shown])

    def _turns(
        self, system: str, pictures: Sequence[Picture], parts: Sequence[Part]
    ) -> list[Message]:
        messages = conversation(self.texts.fill(system), parts)
        if pictures:
            of_goal = (Text(text=self.texts.fill("goal_images")), *pictures)
            messages.insert(1, Message(role="user", parts=of_goal))
        return messages


@register_judge(
    "webjudge",
    WebJudgeOptions,
    summary="key points, screenshots scored, a verdict on the best (WebJudge)",
    id_options=("variant", "threshold", "screenshots", "prompts", "untrusted"),
    representations=("screenshot",),
    pictures="judge",
    answer_option="prompts=trajudge",
)
class WebJudge:
    """Three calls deep: the key points, all screenshots at once, the verdict."""

    def __init__(self, options: WebJudgeOptions) -> None:
        """Load the prompts. Raises UserError if the published ones cannot be read."""
        self._options = options
        self._form = _SourceForm(options) if options.is_published else _OwnForm(options)
        self.prompt_hash, self.text_hash = self._form.hash, self._form.text_hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises MissingObservation, ImageUnreadable, CallFailed and
        ParseFailure."""
        shots, options = recorded(trajectory), self._options
        goal = cut_middle(trajectory.goal, options.max_prompt_tokens // 4)
        rung = cut_or_full(trajectory.goal, goal)
        of_goal = trajectory.goal_images if options.needs.goal_images else ()
        pictures = [await picture(image, options.images, DETAIL) for image in of_goal]
        with error_context("key points"):
            messages = self._form.key_points(goal, pictures)
            reply = await ask(messages, stage="key_points", rung=rung, assume=ASSUMED_POINTS)
            points = parse_complete_reply(reply, self._form.points)
        works = [partial(self._note, goal, points, shot, pictures, ask) for shot in shots]
        notes = await gather_bounded(works)
        unread = [note.unread for note in notes if note.unread is not None]
        if len(unread) == len(notes):
            first, *others = unread
            raise ReplyParseError(str(first), first.reply, [one.reply for one in others])
        passed = self._form.best([note for note in notes if note.score >= options.threshold])
        best = passed[: options.screenshots]
        verdict = await self._verdict(trajectory, points, best, pictures, ask)
        if unread:
            scores = {**verdict.scores, UNREAD: float(len(unread))}
            verdict = verdict.model_copy(update={"scores": scores})
        return verdict

    async def _note(
        self, goal: str, points: str, shot: Shot, pictures: Sequence[Picture], ask: Model
    ) -> Note:
        """Ask for a note on one screenshot."""
        shown = await picture(shot.image, self._options.images, DETAIL)
        messages = self._form.screenshot(goal, points, shown, pictures)
        form = self._options.answer_format(SCORE.schema)
        try:
            with error_context(f"screenshot of step {shot.number}"):
                reply = await ask(messages, stage="screenshot", assume=ASSUMED_SCORE, **form)
                grade = parse_reply(reply, self._form.grade)
        except ReplyParseError as error:
            return Note(shot, 0, "", error)
        text = grade.reasoning
        if not self._options.is_published:
            text = cut_middle(text, self._options.note_tokens)
        return Note(shot, grade.value, text)

    async def _verdict(
        self,
        trajectory: Trajectory,
        points: str,
        best: Sequence[Note],
        pictures: Sequence[Picture],
        ask: Model,
    ) -> Verdict:
        """Ask for the verdict; ``best`` are the notes to show, the best first."""
        options, form = self._options, self._form
        prompts: list[tuple[TruncatedView, Sequence[Note]]] = []

        def messages(
            view: TruncatedView, notes: Sequence[Note], shown: Sequence[Picture]
        ) -> list[Message]:
            prompts.append((view, notes))
            return form.verdict(view, points, notes, shown, pictures)

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
        verdict = parse_reply(reply, partial(parse_status, form=options.form))
        if isinstance(form, _OwnForm):
            return verdict
        view, notes = prompts[-1]
        thoughts = (text for step in view.steps for text in (step.action, step.reasoning))
        written = [view.goal, points, *thoughts, *(note.text for note in notes)]
        scores = {CHANGES: float(form.texts.changes(written))}
        return verdict.model_copy(update={"scores": scores})
