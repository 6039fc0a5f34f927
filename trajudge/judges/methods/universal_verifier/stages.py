"""The stages of the Universal Verifier, from the rubric to the failure points, and the record that
is kept of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from trajudge.judges.adapters.errors import CallFailed, NoAccess
from trajudge.judges.methods.universal_verifier import replies as assumed
from trajudge.judges.methods.universal_verifier.model import (
    RubricItem,
    UniversalVerifierOptions,
    acting_steps,
    baseline_totals,
    by_screenshot,
    conditional,
    majority,
    median_index,
    ranked_screenshots,
    relevant_only,
    totals,
)
from trajudge.judges.methods.universal_verifier.replies import (
    CriticalPoint,
    Evidence,
    FailureAnalysis,
    OutcomeVerdict,
    TaskValidity,
    ViolationVerdict,
    action_space,
    any_screenshot,
    baseline_kept,
    in_order_of_time,
    parse_baseline,
    parse_conditions,
    parse_critical_point,
    parse_dependencies,
    parse_evidence,
    parse_failures,
    parse_outcome,
    parse_reality,
    parse_relevance,
    parse_rescore,
    parse_rubric,
    parse_side_effects,
    parse_strict_validity,
    parse_validity,
    parse_violation,
    with_tool_rules,
)
from trajudge.judges.model import Message, ModelClient, Part, Picture, Text, Verdict
from trajudge.judges.prompting import (
    ImageLimits,
    Shot,
    TruncatedPrompt,
    ask_with_truncation,
    picture,
    picture_tokens,
    prompt_tokens,
)
from trajudge.judges.replies import (
    ParseFailure,
    error_context,
    gather_bounded,
    parse_complete_reply,
)
from trajudge.prompts.render import Prompt
from trajudge.trajectories.model import Record, Trajectory, TrajectoryKey
from trajudge.trajectories.tokens import most_tokens
from trajudge.trajectories.truncate import cut_middle


class VerifierRecord(Record):
    """All that a judgment rests on, as written to ``records/`` of a run folder.

    ``steps`` are the numbers (from 1) of the steps whose screenshots were numbered from 0;
    ``relevance`` has shape (screenshots, criteria); ``ranked`` and ``evidence`` are by criterion,
    the best screenshot first. ``instances`` are the scorings of all votes, ``median`` the one that
    counts, ``votes`` those on the outcome (None: no usable reply).
    """

    format: Literal["universal-verifier"] = "universal-verifier"
    version: int = 1
    critical_point: CriticalPoint | None = None
    steps: tuple[int, ...] = ()
    without_screenshot: int = 0
    relevance: tuple[tuple[int, ...], ...] = ()
    ranked: dict[int, tuple[int, ...]] = Field(default_factory=dict)
    evidence: dict[int, tuple[Evidence, ...]] = Field(default_factory=dict)
    instances: tuple[tuple[RubricItem, ...], ...] = ()
    median: int = 0
    outcome: bool | None = None
    votes: tuple[OutcomeVerdict | None, ...] = ()
    violation: ViolationVerdict | None = None
    failures: FailureAnalysis | None = None
    validity_after: TaskValidity | None = None
    validity_before: TaskValidity | None = None
    retried: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[RubricItem, ...]:
        """The scored rubric that counts, penalties at its end."""
        return self.instances[self.median]

    @property
    def process_score(self) -> float:
        """Earned of offered points."""
        return totals(self.items).score

    @property
    def speaker(self) -> OutcomeVerdict | None:
        """The first vote that agrees with the outcome."""
        agreeing = (v for v in self.votes if v is not None and v.output_success == self.outcome)
        return next(agreeing, None)


def success_of(record: VerifierRecord, options: UniversalVerifierOptions) -> bool | None:
    """Return the verdict that ``options.success`` asks for; None where the record lacks it."""
    process = record.process_score >= options.process_threshold
    if options.success == "process":
        return process
    if record.outcome is None:
        return None
    if options.success == "both":
        return record.outcome and process
    if options.success == "safe":
        if record.violation is None:
            return None
        return record.outcome and not record.violation.cp_violation
    return record.outcome


def verdict_of(record: VerifierRecord, success: bool) -> Verdict:
    """Build the verdict. There is no ``score``: points for the process are no confidence in
    success."""
    penalties = sum(item.penalty for item in record.items)
    return Verdict(
        success=success,
        side_effect=penalties > 0,
        scores=_scores(record, penalties),
        reasoning=record.speaker.reasoning if record.speaker else "",
        fallback=_fallback(record),
        record=record.model_dump(mode="json"),
    )


def _scores(record: VerifierRecord, penalties: int) -> dict[str, float]:
    points = totals(record.items)
    scores = {
        "process": points.score,
        "process_baseline": baseline_totals(record.items).score,
        "max_points": points.max,
        "earned_points": points.earned,
        "criteria": float(len(record.items) - penalties),
        "penalties": float(penalties),
    }
    if record.violation is not None:
        scores["violation"] = float(record.violation.cp_violation)
    if record.failures is not None and record.failures.first_failure_step is not None:
        scores["first_failure_step"] = float(record.failures.first_failure_step)
    if record.validity_after is not None:
        for name in ("ambiguous", "invalid"):
            flag = getattr(record.validity_after, f"is_{name}")
            if flag is not None:
                scores[name] = float(flag)
    return scores


def _fallback(record: VerifierRecord) -> str:
    sections = [
        ("asked again", record.retried),
        ("went on without", record.skipped),
        ("cut", record.cut),
    ]
    parts = [f"{heading}: {', '.join(names)}" for heading, names in sections if names]
    if record.without_screenshot:
        parts.append(f"steps without a screenshot: {record.without_screenshot}")
    return "; ".join(parts)


T = TypeVar("T")

# Below this many tokens of the action history a prompt makes no sense.
_LEAST_HISTORY = 200

_JSON: JsonValue = {"type": "json_object"}


@dataclass(frozen=True)
class StagePrompt(Generic[T]):
    """One question of a stage.

    ``messages`` takes the action history, whole or cut; ``part`` names the question in an error
    message; ``assume`` is a reply that a dry run goes on with. ``light``: the light model answers.
    ``json``: the reply is asked for as a JSON object. ``nudged``: what failed is named in a further
    turn, else the same messages are sent again. ``seed`` tells equal questions apart.
    """

    stage: str
    messages: Callable[[str], Sequence[Message]]
    parse: Callable[[str], T]
    assume: str
    part: str = ""
    light: bool = False
    json: bool = True
    nudged: bool = True
    seed: int | None = None


@dataclass(frozen=True)
class StageFailure:
    """A question without a usable reply; ``error`` is the last attempt's."""

    error: ParseFailure | CallFailed


@dataclass
class StageRunner:
    """Asks the questions of one run, whose action history is ``history``.

    ``retried`` and ``skipped`` name the stages that were asked again and those that the judgment
    went on without, ``errors`` why.
    """

    ask: ModelClient
    options: UniversalVerifierOptions
    prompt: Prompt
    history: str
    retried: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    errors: dict[str, ParseFailure | CallFailed] = field(default_factory=dict)

    @property
    def continues(self) -> bool:
        """Whether a stage that fails is left out, as the source does."""
        return self.options.on_stage_failure == "continue"

    async def run(self, questions: Sequence[StagePrompt[T]]) -> list[T | StageFailure]:
        """Ask all questions at once, those that fail again, up to ``attempts`` times.

        Returns a reply or a failure for each, in order. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        outcomes: dict[int, T | StageFailure] = {}
        errors: list[list[str]] = [[] for _ in questions]
        pending = list(range(len(questions)))
        for number in range(1, self.options.attempts + 1):
            replies = await gather_bounded(
                [partial(self.attempt, questions[i], number, errors[i]) for i in pending]
            )
            outcomes.update(zip(pending, replies, strict=True))
            pending = [i for i in pending if isinstance(outcomes[i], StageFailure)]
            pending = [i for i in pending if _may_pass(outcomes[i])]
            for i in pending:
                errors[i].append(_reason(outcomes[i]))
            if not pending:
                break
        return [outcomes[i] for i in range(len(questions))]

    async def one(self, question: StagePrompt[T]) -> T | StageFailure:
        """Ask one question as ``run`` does."""
        return (await self.run([question]))[0]

    async def required(self, question: StagePrompt[T]) -> T:
        """Ask a question without which there is no verdict. Raises CallFailed and ParseFailure."""
        outcome = await self.one(question)
        if isinstance(outcome, StageFailure):
            raise outcome.error
        return outcome

    def settle(self, stage: str, outcome: T | StageFailure, fallback: T, *, lenient: bool) -> T:
        """Return the outcome, or ``fallback`` for a failure where the judge goes on: always in a
        ``lenient`` stage. Raises the failure elsewhere."""
        if not isinstance(outcome, StageFailure):
            return outcome
        if not (lenient or self.continues):
            raise outcome.error
        self.errors[stage] = outcome.error
        if stage not in self.skipped:
            self.skipped.append(stage)
        return fallback

    async def attempt(
        self, question: StagePrompt[T], number: int, errors: Sequence[str]
    ) -> T | StageFailure:
        """Ask once, as attempt ``number`` from 1; ``errors`` are those of the attempts before.

        A reply that fails a check is returned as a failure. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        if number > 1 and question.stage not in self.retried:
            self.retried.append(question.stage)
        try:
            with error_context(question.part or question.stage.replace("_", " ")):
                return await self._reply(question, number, errors)
        except ParseFailure as failure:
            return StageFailure(failure)
        except CallFailed as failure:
            if isinstance(failure, NoAccess) or not self.continues:
                raise
            return StageFailure(failure)

    async def _reply(self, question: StagePrompt[T], number: int, errors: Sequence[str]) -> T:
        options = self.options
        model = options.light if question.light else None
        images = model.images if model else options.images
        window = model.max_prompt_tokens if model else options.max_prompt_tokens
        reply_tokens = min(options.reply_tokens, window // 2)
        nudges = [self._nudge(error) for error in errors] if question.nudged else []
        parameters: dict[str, Any] = {"max_tokens": reply_tokens}
        if question.json:
            parameters["response_format"] = _JSON
        if question.seed is not None or (number > 1 and not question.nudged):
            parameters["seed"] = (question.seed or 0) + number - 1

        def make(budget: int) -> TruncatedPrompt | None:
            full = [*question.messages(self.history), *nudges]
            if _fits(full, budget, images):
                return TruncatedPrompt("full", full)
            room = budget - prompt_tokens([*question.messages(""), *nudges], images)
            if room < _LEAST_HISTORY:
                return None
            return TruncatedPrompt(
                "cut", [*question.messages(cut_middle(self.history, room)), *nudges]
            )

        reply = await ask_with_truncation(
            self.ask,
            make,
            limit=window - reply_tokens,
            images=images,
            stage=question.stage if number == 1 else f"{question.stage}#{number}",
            model=model.model if model else None,
            assume=question.assume,
            **parameters,
        )
        return parse_complete_reply(reply, question.parse)

    def _nudge(self, error: str) -> Message:
        return user_message(Text(text=self.prompt.render("again", problem=error)))


def user_message(*parts: Part) -> Message:
    """Build one user turn."""
    return Message(role="user", parts=parts)


def _fits(messages: Sequence[Message], budget: int, images: ImageLimits) -> bool:
    """Tell whether the messages take at most ``budget`` tokens; short ones are not counted."""
    parts = [part for message in messages for part in message.parts]
    pictures = sum(picture_tokens(part, images) for part in parts if isinstance(part, Picture))
    texts = [part.text for part in parts if isinstance(part, Text)]
    if pictures + sum(map(most_tokens, texts)) <= budget:
        return True
    return prompt_tokens(messages, images) <= budget


def _may_pass(outcome: object) -> bool:
    """Tell whether another attempt makes sense: the engine has retried a failed call already."""
    return isinstance(outcome, StageFailure) and isinstance(outcome.error, ParseFailure)


def _reason(outcome: object) -> str:
    return str(outcome.error) if isinstance(outcome, StageFailure) else ""


@dataclass(frozen=True)
class Questions:
    """Makes the messages of one run's questions.

    ``material`` are the values of every template: the task, the initial url, the answer. The
    rubric's stages have one user turn; later ones a neutral system message before it.
    """

    prompt: Prompt
    options: UniversalVerifierOptions
    material: Mapping[str, Any]
    point: CriticalPoint | None = None
    system: str = "system"

    def text(self, template: str, history: str, **values: object) -> str:
        """Render a template with the run's material."""
        options = self.options
        return self.prompt.render(
            template,
            history=history,
            point=self.point,
            classified=options.critical_points == "classified",
            simulator=options.user_simulator,
            year=options.year or (options.date[:4] if options.date else None),
            date=options.date,
            **{**self.material, **values},
        )

    def plain(self, template: str, **values: object) -> Callable[[str], Sequence[Message]]:
        """Make a question of one user turn and no system message."""

        def messages(history: str) -> Sequence[Message]:
            return [user_message(Text(text=self.text(template, history, **values)))]

        return messages

    def asked(
        self,
        template: str,
        values: Mapping[str, object] | None = None,
        shot: Shot | None = None,
    ) -> Callable[[str], Sequence[Message]]:
        """Make a question with the system message; the picture of ``shot`` stands before the text,
        with the option ``image_last`` after it."""
        system = Message(role="system", parts=(Text(text=self.text(self.system, "")),))

        def messages(history: str) -> Sequence[Message]:
            text = Text(text=self.text(template, history, **(values or {})))
            if shot is None:
                return [system, user_message(text)]
            shown = picture(shot.image, self.options.images, "high")
            last = self.options.image_last
            return [system, user_message(text, shown) if last else user_message(shown, text)]

        return messages


Items = tuple[RubricItem, ...]

EvidenceByCriterion = dict[int, list[Evidence]]

_NOTHING = "This screenshot could not be analysed."


class Sighted(NamedTuple):
    """What the screenshots gave: relevance (screenshots x criteria), the ranking, the evidence of
    every criterion (best screenshot first), the items with flags and notes."""

    relevance: list[list[int]]
    ranked: dict[int, list[int]]
    evidence: EvidenceByCriterion
    items: Items


async def look(
    runner: StageRunner, questions: Questions, items: Items, shots: Sequence[Shot]
) -> Sighted:
    """Choose screenshots by criterion, describe them, settle conditions, note the facts. Raises
    CallFailed, ParseFailure and ImageUnreadable."""
    relevance = await _relevance(runner, questions, items, shots)
    ranked = ranked_screenshots(relevance, runner.options.per_criterion)
    chosen = relevant_only(ranked, relevance) if runner.options.filter else ranked
    evidence = await _evidence(runner, questions, items, shots, chosen)
    items = await _conditions(runner, questions, items, evidence)
    notes = await _reality(runner, questions, items, evidence)
    noted = (
        item.model_copy(update={"reality_notes": note})
        for item, note in zip(items, notes, strict=True)
    )
    return Sighted(relevance, ranked, evidence, tuple(noted))


async def _relevance(
    runner: StageRunner, questions: Questions, items: Items, shots: Sequence[Shot]
) -> list[list[int]]:
    prompts = [
        StagePrompt(
            stage="relevance",
            messages=questions.asked("relevance", {"items": items}, shot),
            parse=partial(parse_relevance, count=len(items)),
            assume=assumed.relevance(index, len(shots), len(items)),
            part=f"relevance of the screenshot of step {shot.number}",
        )
        for index, shot in enumerate(shots)
    ]
    outcomes = await runner.run(prompts)
    nothing = [0] * len(items)
    return [runner.settle("relevance", one, nothing, lenient=False) for one in outcomes]


async def _evidence(
    runner: StageRunner,
    questions: Questions,
    items: Items,
    shots: Sequence[Shot],
    chosen: Mapping[int, Sequence[int]],
) -> EvidenceByCriterion:
    """Ask about every distinct screenshot, then by pair where that failed."""

    def question(shot: int, criteria: Sequence[int]) -> StagePrompt[dict[int, Evidence]]:
        values = {
            "criteria": [(criterion, items[criterion]) for criterion in criteria],
            "number": shot + 1,
            "count": len(shots),
        }
        return StagePrompt(
            stage="evidence",
            messages=questions.asked("evidence", values, shots[shot]),
            parse=partial(parse_evidence, shot=shot, criteria=criteria, items=items),
            assume=assumed.evidence(criteria, items),
            part=f"evidence in the screenshot of step {shots[shot].number}",
        )

    inverted = by_screenshot(chosen)
    outcomes = await runner.run([question(shot, inverted[shot]) for shot in inverted])
    seen: dict[int, dict[int, Evidence]] = {shot: {} for shot in inverted}
    singles: list[tuple[int, int]] = []
    for (shot, criteria), outcome in zip(inverted.items(), outcomes, strict=True):
        if isinstance(outcome, StageFailure) and len(criteria) > 1:
            singles += [(shot, criterion) for criterion in criteria]
        else:
            seen[shot] = runner.settle("evidence", outcome, _nothing(shot, criteria), lenient=False)
    pairs = await runner.run([question(shot, [criterion]) for shot, criterion in singles])
    for (shot, criterion), outcome in zip(singles, pairs, strict=True):
        nothing = _nothing(shot, [criterion])
        seen[shot] |= runner.settle("evidence", outcome, nothing, lenient=False)
    return {
        criterion: [seen[shot][criterion] for shot in chosen[criterion]] for criterion in chosen
    }


def _nothing(shot: int, criteria: Sequence[int]) -> dict[int, Evidence]:
    return {criterion: _placeholder(shot) for criterion in criteria}


def _placeholder(shot: int) -> Evidence:
    return Evidence(
        screenshot=shot,
        screenshot_evidence=_NOTHING,
        criterion_analysis=_NOTHING,
        discrepancies=_NOTHING,
        environment_issues_confirmed=False,
    )


async def _conditions(
    runner: StageRunner, questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> Items:
    """Set the condition flags: by a call where there are two conditions or more, else by what the
    screenshots said, else as they were."""
    indices = conditional(items)
    flags = {index: any_screenshot(evidence.get(index, ())) for index in indices}
    met = {index: flag for index, flag in flags.items() if flag is not None}
    if len(indices) > 1:
        values = {
            "criteria": [(index, items[index]) for index in indices],
            "evidence": in_order_of_time(evidence),
        }
        question = StagePrompt(
            stage="conditions",
            messages=questions.asked("conditions", values),
            parse=partial(parse_conditions, indices=indices, items=items),
            assume=assumed.conditions(indices, items),
        )
        outcome = await runner.one(question)
        met = runner.settle("conditions", outcome, met, lenient=False)
    return tuple(
        item.model_copy(update={"is_condition_met": met[index]}) if index in met else item
        for index, item in enumerate(items)
    )


async def _reality(
    runner: StageRunner, questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> list[str]:
    question = StagePrompt(
        stage="reality",
        messages=questions.asked(
            "reality", {"items": items, "evidence": in_order_of_time(evidence)}
        ),
        parse=partial(parse_reality, count=len(items)),
        assume=assumed.reality(len(items)),
    )
    outcome = await runner.one(question)
    return runner.settle("reality", outcome, [""] * len(items), lenient=False)


class Scored(NamedTuple):
    """The scorings of a run, one for each vote, and the index of the median one."""

    instances: tuple[Items, ...]
    median: int

    @property
    def items(self) -> Items:
        """The scoring that counts."""
        return self.instances[self.median]

    @property
    def scores(self) -> list[float]:
        """The process score of every scoring."""
        return [totals(items).score for items in self.instances]


class Decided(NamedTuple):
    """The votes on the outcome (None: no usable reply), and the violation."""

    votes: tuple[OutcomeVerdict | None, ...]
    violation: ViolationVerdict | None

    @property
    def outcome(self) -> bool | None:
        """What the votes come to."""
        return majority([None if vote is None else vote.output_success for vote in self.votes])

    @property
    def speaker(self) -> OutcomeVerdict | None:
        """The first vote that agrees with the outcome."""
        agreeing = (v for v in self.votes if v is not None and v.output_success == self.outcome)
        return next(agreeing, None)


async def score(runner: StageRunner, questions: Questions, sighted: Sighted) -> Scored:
    """Score the items with the evidence and look for side effects, once for each vote. Raises
    CallFailed and ParseFailure."""
    items = sighted.items
    votes = range(runner.options.votes)
    in_time = in_order_of_time(sighted.evidence)
    rescore = StagePrompt(
        stage="rescore",
        messages=questions.asked("rescore", {"items": items, "evidence": in_time}),
        parse=partial(parse_rescore, items=items),
        assume=assumed.rescore(items),
    )
    outcomes = await runner.run([_vote(rescore, vote) for vote in votes])
    kept = tuple(map(baseline_kept, items))
    rescored = [runner.settle("rescore", one, kept, lenient=False) for one in outcomes]
    effects = [_side_effects(questions, one, sighted.evidence) for one in rescored]
    replies = await runner.run([_vote(one, vote) for vote, one in enumerate(effects)])
    instances = tuple(
        scored + runner.settle("side_effects", one, (), lenient=False)
        for scored, one in zip(rescored, replies, strict=True)
    )
    return Scored(instances, median_index([totals(one).score for one in instances]))


def _side_effects(
    questions: Questions, items: Items, evidence: EvidenceByCriterion
) -> StagePrompt[Items]:
    values = {"items": items, "evidence": evidence, "printed": baseline_totals(items)}
    return StagePrompt(
        stage="side_effects",
        messages=questions.asked("side_effects", values),
        parse=parse_side_effects,
        assume=assumed.SIDE_EFFECTS,
    )


def _vote(question: StagePrompt[Items], vote: int) -> StagePrompt[Items]:
    """Tell equal questions of several votes apart by their seed."""
    if not vote:
        return question
    return StagePrompt(**{**vars(question), "seed": vote})


async def decide(
    runner: StageRunner, questions: Questions, items: Sequence[RubricItem], sighted: Sighted
) -> Decided:
    """Ask for the outcome, once for each vote, and beside it for a violation. Raises CallFailed."""
    options = runner.options
    values = {
        "items": items,
        "evidence": in_order_of_time(sighted.evidence),
        "totals": totals(items),
    }
    prompts: list[StagePrompt[OutcomeVerdict | ViolationVerdict]] = [
        StagePrompt(
            stage="outcome",
            messages=questions.asked("outcome", values),
            parse=parse_outcome,
            assume=assumed.OUTCOME,
            seed=vote or None,
        )
        for vote in range(options.votes)
    ]
    if options.critical_points == "classified":
        prompts.append(
            StagePrompt(
                stage="violation",
                messages=questions.asked("violation", values),
                parse=parse_violation,
                assume=assumed.VIOLATION,
            )
        )
    outcomes = await runner.run(prompts)
    votes = [_given(runner, "outcome", one) for one in outcomes[: options.votes]]
    rest = [_given(runner, "violation", one) for one in outcomes[options.votes :]]
    return Decided(
        tuple(vote if isinstance(vote, OutcomeVerdict) else None for vote in votes),
        next((one for one in rest if isinstance(one, ViolationVerdict)), None),
    )


def _given(
    runner: StageRunner,
    stage: str,
    outcome: OutcomeVerdict | ViolationVerdict | StageFailure,
) -> OutcomeVerdict | ViolationVerdict | None:
    return runner.settle(stage, outcome, None, lenient=True)


_NO_ANALYSIS = FailureAnalysis(
    reasoning="No reply held an analysis of failures.", has_failure=False
)


class Conclusion(NamedTuple):
    """What the stages before came to: the scored items, the evidence, the outcome."""

    items: Sequence[RubricItem]
    sighted: Sighted
    decided: Decided

    @property
    def values(self) -> dict[str, object]:
        """Return the conclusion as a template's variables."""
        return {
            "items": self.items,
            "evidence": in_order_of_time(self.sighted.evidence),
            "totals": totals(self.items),
            "outcome": self.decided.outcome,
            "speaker": self.decided.speaker,
        }


class Validity(NamedTuple):
    """The task as the run shows it, and as its words alone do."""

    after: TaskValidity
    before: TaskValidity


async def find_failures(
    runner: StageRunner,
    questions: Questions,
    trajectory: Trajectory,
    conclusion: Conclusion,
) -> FailureAnalysis:
    """Ask what went wrong, and where; no failure where no reply says. Raises CallFailed."""
    space = action_space(trajectory.metadata)
    question = StagePrompt(
        stage="failures",
        messages=questions.asked("failures", {"space": space, **conclusion.values}),
        parse=parse_failures,
        assume=assumed.FAILURES,
    )
    outcome = await runner.one(question)
    analysis = runner.settle("failures", outcome, None, lenient=True)
    if analysis is None:
        return _NO_ANALYSIS
    return with_tool_rules(analysis, acting_steps(trajectory), space)


async def check_task(runner: StageRunner, questions: Questions, conclusion: Conclusion) -> Validity:
    """Ask the light model whether the task is ambiguous or invalid, with the run and without.
    Raises CallFailed."""
    after = StagePrompt(
        stage="validity_after",
        messages=questions.asked("validity_after", conclusion.values),
        parse=parse_validity,
        assume=assumed.VALIDITY,
        light=True,
        nudged=False,
    )
    before = StagePrompt(
        stage="validity_before",
        messages=questions.asked("validity_before"),
        parse=parse_strict_validity,
        assume=assumed.VALIDITY,
        light=True,
    )
    outcomes = await runner.run([after, before])
    unknown = TaskValidity()
    return Validity(
        runner.settle("validity_after", outcomes[0], unknown, lenient=True),
        runner.settle("validity_before", outcomes[1], unknown, lenient=True),
    )


async def classify(runner: StageRunner, questions: Questions) -> CriticalPoint | None:
    """Ask for the task's critical point; None where no reply holds one."""
    question = StagePrompt(
        stage="critical_point",
        messages=Questions(
            questions.prompt,
            questions.options,
            questions.material,
            system="critical_point_system",
        ).asked("critical_point"),
        parse=parse_critical_point,
        assume=assumed.CRITICAL_POINT,
        json=False,
    )
    outcome = await runner.one(question)
    return runner.settle("critical_point", outcome, None, lenient=True)


async def make_rubric(runner: StageRunner, questions: Questions, key: TrajectoryKey) -> Items:
    """Ask for a rubric and for its review. A review that fails every attempt counts as one failed
    attempt of the rubric. Raises CallFailed and ParseFailure."""
    question = StagePrompt(
        stage="rubric",
        messages=questions.plain("rubric"),
        parse=parse_rubric,
        assume=assumed.RUBRIC,
        seed=_seed(key) if runner.options.rubric_per == "run" else None,
    )
    errors: list[str] = []
    failure: Exception = ParseFailure("rubric: no attempt was made")
    for number in range(1, runner.options.attempts + 1):
        outcome = await runner.attempt(question, number, errors)
        if not isinstance(outcome, StageFailure):
            outcome = await _reviewed(runner, questions, outcome)
        if not isinstance(outcome, StageFailure):
            return outcome
        failure = outcome.error
        if not isinstance(failure, ParseFailure):
            break
        errors.append(str(failure))
    raise failure


async def _reviewed(
    runner: StageRunner, questions: Questions, items: Items
) -> Items | StageFailure:
    question = StagePrompt(
        stage="dependencies",
        messages=questions.plain("dependencies", items=items),
        parse=partial(parse_dependencies, items=items),
        assume=assumed.DEPENDENCIES,
    )
    return await runner.one(question)


async def score_history(
    runner: StageRunner, questions: Questions, items: Sequence[RubricItem]
) -> Items:
    """Ask the light model for points on the action history alone. Raises CallFailed and
    ParseFailure."""
    question = StagePrompt(
        stage="baseline",
        messages=questions.plain("baseline", items=items),
        parse=partial(parse_baseline, items=items),
        assume=assumed.baseline(items),
        light=True,
    )
    return await runner.required(question)


def _seed(key: TrajectoryKey) -> int:
    """Derive a seed from the run, so that runs of one task do not share a cached rubric."""
    return int.from_bytes(sha256(str(key).encode()).digest()[:3])
