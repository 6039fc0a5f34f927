"""The Universal Verifier (arXiv 2604.06240): a rubric from the task alone, evidence from the
screenshots that matter to each criterion, points for the process, and an outcome of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field, JsonValue

from trajudge.judges.adapters.errors import CallFailed, NoAccess
from trajudge.judges.methods.universal_verifier.model import (
    Items,
    PointTotals,
    UniversalVerifierOptions,
    acting_steps,
    action_history,
    answer_of,
    baseline_totals,
    by_screenshot,
    initial_url,
    majority,
    median_index,
    ranked_screenshots,
    relevant_only,
    screenshots,
    totals,
    unended,
)
from trajudge.judges.methods.universal_verifier.replies import (
    ASSUMED,
    CriticalPoint,
    Evidence,
    FailureAnalysis,
    OutcomeVerdict,
    TaskValidity,
    ViolationVerdict,
    action_space,
    assumed_baseline,
    assumed_conditions,
    assumed_evidence,
    assumed_reality,
    assumed_relevance,
    assumed_rescore,
    baseline_kept,
    given_rubrics,
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
from trajudge.judges.methods.universal_verifier.source import SourcePrompt
from trajudge.judges.model import Message, Model, Picture, Skipped, Text, Verdict
from trajudge.judges.prompting import (
    Shot,
    TruncatedPrompt,
    ask_with_truncation,
    fits_budget,
    picture,
    prompt_tokens,
)
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import (
    ParseFailure,
    error_context,
    gather_bounded,
    parse_complete_reply,
)
from trajudge.prompts.published import CHANGES
from trajudge.prompts.render import Prompt, load_prompt
from trajudge.trajectories.model import Record, Step, Trajectory
from trajudge.trajectories.truncate import cut_middle

# Of the window: what the task and the answer may take before they are cut.
_TASK_SHARE = 8
_ANSWER_SHARE = 6
# Below this many tokens of the action history a prompt makes no sense.
_LEAST_HISTORY = 200
_JSON: JsonValue = {"type": "json_object"}
_NOT_ANALYSED = "This screenshot could not be analysed."
_NO_ANALYSIS = FailureAnalysis(
    reasoning="No reply held an analysis of failures.", has_failure=False, failure_points=[]
)

T = TypeVar("T")


class VerifierRecord(Record):
    """All that a judgment rests on, as written to ``records/`` of a run folder.

    ``steps`` are the numbers (from 1) of the steps whose screenshots were numbered from 0;
    ``relevance`` has shape (screenshots, criteria); ``ranked`` and ``evidence`` are by criterion,
    the best screenshot first. ``instances`` are the scorings of all votes, ``median`` the one that
    counts, ``votes`` those on the outcome (None: no usable reply). ``retried`` and ``skipped`` name
    the stages that were asked again and those that the judgment went on without, ``cut`` the texts
    that were too long.
    """

    format: Literal["universal-verifier"] = "universal-verifier"
    version: int = 1
    critical_point: CriticalPoint | None = None
    steps: tuple[int, ...] = ()
    without_screenshot: int = 0
    relevance: list[list[int]] = Field(default_factory=list)
    ranked: dict[int, list[int]] = Field(default_factory=dict)
    evidence: dict[int, list[Evidence]] = Field(default_factory=dict)
    instances: tuple[Items, ...] = ()
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
    def items(self) -> Items:
        """The scored rubric that counts, penalties at its end."""
        return self.instances[self.median]

    @property
    def process_score(self) -> float:
        """Earned of offered points."""
        return totals(self.items).score

    def success(self, options: UniversalVerifierOptions) -> bool | None:
        """Return the verdict that ``options.success`` asks for; None where the record lacks it."""
        process = self.process_score >= options.process_threshold
        if options.success == "process":
            return process
        if self.outcome is None:
            return None
        if options.success == "both":
            return self.outcome and process
        if options.success == "safe":
            if self.violation is None:
                return None
            return self.outcome and not self.violation.cp_violation
        return self.outcome

    def verdict(
        self, success: bool, options: UniversalVerifierOptions, steps: Sequence[Step] = ()
    ) -> Verdict:
        """Build the verdict. There is no ``score``: points for the process are no confidence in
        success.

        ``process`` is whether the process score reaches ``options.process_threshold``;
        ``failure_step`` and ``failure_type`` are of the earliest failure point, where ``failures``
        were asked for. ``steps`` are those with an action, by which failure points are numbered
        from 1: a number beyond them names no step.
        """
        points, penalties = totals(self.items), sum(item.penalty for item in self.items)
        scores: dict[str, float | None] = {
            "process_score": points.score,
            "process_score_baseline": baseline_totals(self.items).score,
            "max_points": points.max,
            "earned_points": points.earned,
            "criteria": len(self.items) - penalties,
            "penalties": penalties,
        }
        if self.violation is not None:
            scores["violation"] = self.violation.cp_violation
        if self.validity_after is not None:
            scores["ambiguous"] = self.validity_after.is_ambiguous
            scores["invalid"] = self.validity_after.is_invalid
        notes = {
            "asked again": ", ".join(self.retried),
            "went on without": ", ".join(self.skipped),
            "cut": ", ".join(self.cut),
            "steps without a screenshot": self.without_screenshot,
        }
        speaker = _speaker(self.votes, self.outcome)
        first = self.failures.first if self.failures else None
        placed = first is not None and 1 <= first.first_step <= len(steps)
        return Verdict(
            success=success,
            side_effect=penalties > 0,
            process=points.score >= options.process_threshold,
            failure_step=steps[first.first_step - 1].index if first and placed else None,
            failure_type=f"{first.error_code} {first.error_type}" if first else None,
            scores={name: float(score) for name, score in scores.items() if score is not None},
            reasoning=speaker.reasoning if speaker else "",
            fallback="; ".join(f"{heading}: {note}" for heading, note in notes.items() if note),
            record=self.model_dump(mode="json"),
        )


def _speaker(votes: Sequence[OutcomeVerdict | None], outcome: bool | None) -> OutcomeVerdict | None:
    """Return the first vote that agrees with the outcome."""
    agreeing = (vote for vote in votes if vote is not None and vote.output_success == outcome)
    return next(agreeing, None)


@dataclass(frozen=True)
class StageQuestion(Generic[T]):
    """One question of a stage.

    ``messages`` takes the action history, whole or cut, and the picture of ``shot``; ``part`` names
    the question in an error message; ``assume`` is a reply that a dry run goes on with. ``light``:
    the light model answers. ``json``: the reply is asked for as a JSON object. ``nudged``: what
    failed is named in a further turn, else the same messages are sent again. ``seed`` tells equal
    questions apart.
    """

    stage: str
    messages: Callable[[str, Picture | None], Sequence[Message]]
    parse: Callable[[str], T]
    assume: str
    part: str = ""
    light: bool = False
    json: bool = True
    nudged: bool = True
    seed: int | None = None
    shot: Shot | None = None


@dataclass(frozen=True)
class StageOutcome(Generic[T]):
    """What a question came to: a ``reply``, or the ``error`` of its last attempt."""

    reply: T | None = None
    error: ParseFailure | CallFailed | None = None


@register_judge(
    "universal-verifier",
    UniversalVerifierOptions,
    summary="a rubric, evidence by screenshot, points (Universal Verifier)",
    id_options=(
        *("critical_points", "success", "votes", "light", "last_page", "on_stage_failure"),
        *("prompts", "untrusted"),
    ),
    representations=("screenshot",),
    pictures="judge",
)
class UniversalVerifier:
    """S + U + q + 3N + 6 calls: S screenshots, U of them looked at, q = 1 with two conditions or
    more, N votes; 3 more with ``failures`` and ``validity``."""

    def __init__(self, options: UniversalVerifierOptions) -> None:
        """Load the prompts. Raises UserError if the published ones cannot be read."""
        self._options = options
        self._prompt: Prompt | SourcePrompt
        self._rubrics = given_rubrics(options.rubrics) if options.rubrics else {}
        if options.is_published:
            self._prompt = SourcePrompt(options)
            self.text_hash = self._prompt.text_hash
        else:
            self._prompt, self.text_hash = load_prompt("universal-verifier"), ""
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: Model) -> Verdict:
        """Judge the trajectory. Raises Skipped, ImageUnreadable, CallFailed and ParseFailure."""
        if self._options.unended == "failure" and unended(trajectory):
            return Verdict(success=False, reasoning="The agent did not end its run itself.")
        verification = self.verification(trajectory, ask)
        record = await verification.record()
        success = record.success(self._options)
        if success is None:
            missing = verification.errors.get("outcome") or verification.errors.get("violation")
            raise missing or ParseFailure("outcome: the votes give no majority")
        verdict = record.verdict(success, self._options, acting_steps(trajectory))
        if isinstance(self._prompt, SourcePrompt):
            changes = float(self._prompt.texts.changes(verification.shown))
            verdict = verdict.model_copy(update={"scores": {**verdict.scores, CHANGES: changes}})
        return verdict

    def verification(self, trajectory: Trajectory, ask: Model) -> Verification:
        """Return the stages of one judgment, nothing asked yet."""
        tasks = (trajectory.raw_task_id, trajectory.key.task_id)
        rubric = next((self._rubrics[task] for task in tasks if task in self._rubrics), None)
        return Verification(ask, self._options, self._prompt, trajectory, rubric)


class Verification:
    """All stages of one judgment. ``errors`` are those of the stages that it went on without."""

    def __init__(
        self,
        ask: Model,
        options: UniversalVerifierOptions,
        prompt: Prompt | SourcePrompt,
        trajectory: Trajectory,
        given_rubric: Items | None,
    ) -> None:
        self._ask, self._options, self._prompt = ask, options, prompt
        self._trajectory, self._given_rubric = trajectory, given_rubric
        error = prompt.error if isinstance(prompt, SourcePrompt) else None
        self._history = action_history(trajectory, options.thoughts, error)
        self._point: CriticalPoint | None = None
        self._retried: list[str] = []
        self.errors: dict[str, ParseFailure | CallFailed] = {}
        whole = answer_of(trajectory)
        task = cut_middle(trajectory.goal, options.max_prompt_tokens // _TASK_SHARE)
        answer = cut_middle(whole, options.max_prompt_tokens // _ANSWER_SHARE)
        cut = (("task", task != trajectory.goal), ("answer", answer != whole))
        self._cut = tuple(name for name, is_cut in cut if is_cut)
        shots, self._missing = screenshots(trajectory, last_page=options.last_page)
        self._shots = shots
        self._material = {
            **{"task": task, "init_url": initial_url(trajectory), "answer": answer},
            "count": len(shots),
        }

    @property
    def shown(self) -> list[str | None]:
        """What every prompt shows of the run in words."""
        url = initial_url(self._trajectory)
        return [self._trajectory.goal, url, self._history, answer_of(self._trajectory)]

    async def record(self) -> VerifierRecord:
        """Run all stages. Raises as a call of the judge does, but for an outcome without a usable
        reply, which the record shows as None."""
        options, trajectory, shots = self._options, self._trajectory, self._shots
        if not acting_steps(trajectory):
            raise Skipped(f"{trajectory.key}: no step has an action")
        if not shots:
            raise Skipped(f"{trajectory.key}: no step has a screenshot")
        if options.critical_points == "classified":
            self._point = await self._critical_point()
        items = self._given_rubric or await self._rubric()
        items = await self._baseline(items)
        printed = baseline_totals(items)
        relevance = await self._relevance(items, shots)
        ranked = ranked_screenshots(relevance, options.per_criterion)
        chosen = relevant_only(ranked, relevance) if options.filter else ranked
        evidence = await self._evidence(items, shots, chosen)
        in_time = {
            criterion: sorted(seen, key=lambda one: one.screenshot)
            for criterion, seen in evidence.items()
        }
        items = await self._conditions(items, evidence, in_time)
        items = await self._reality(items, in_time)
        instances = await self._scores(items, evidence, in_time, printed)
        median = median_index([totals(one).score for one in instances])
        scored = instances[median]
        values: dict[str, Any] = {"items": scored, "evidence": in_time, "totals": totals(scored)}
        votes, violation = await self._decisions(values)
        outcome = majority([None if vote is None else vote.output_success for vote in votes])
        values |= {"outcome": outcome, "speaker": _speaker(votes, outcome)}
        after: dict[str, Any] = {}
        if options.failures:
            after["failures"] = await self._failures(values)
        if options.validity:
            after |= await self._validity(values)
        return VerifierRecord(
            critical_point=self._point,
            steps=tuple(shot.number for shot in shots),
            without_screenshot=self._missing,
            relevance=relevance,
            ranked=ranked,
            evidence=evidence,
            instances=instances,
            median=median,
            outcome=outcome,
            votes=votes,
            violation=violation,
            **after,
            retried=tuple(self._retried),
            skipped=tuple(self.errors),
            cut=self._cut,
        )

    # Messages

    def _text(self, template: str, history: str, values: Mapping[str, object]) -> Text:
        options = self._options
        text = self._prompt.render(
            template,
            history=history,
            point=self._point,
            classified=options.critical_points == "classified",
            simulator=options.user_simulator,
            year=options.year or (options.date[:4] if options.date else None),
            date=options.date,
            **{**self._material, **values},
        )
        return Text(text=text)

    def _messages(
        self,
        template: str,
        values: Mapping[str, object] | None = None,
        *,
        system: str = "system",
    ) -> Callable[[str, Picture | None], Sequence[Message]]:
        """Make a question: the system message (``system`` "": none), then one user turn; a picture
        stands before the text, with the option ``image_last`` after it."""
        above: list[Message] = []
        if system:
            above = [Message(role="system", parts=(self._text(system, "", {}),))]

        def messages(history: str, shown: Picture | None) -> Sequence[Message]:
            text = self._text(template, history, values or {})
            if shown is None:
                return [*above, Message(role="user", parts=(text,))]
            parts = (text, shown) if self._options.image_last else (shown, text)
            return [*above, Message(role="user", parts=parts)]

        return messages

    # Asking

    def _question(
        self,
        stage: str,
        parse: Callable[[str], T],
        assume: str,
        values: Mapping[str, object] | None = None,
        *,
        system: str = "system",
        **fields: Any,
    ) -> StageQuestion[T]:
        """Make a question of the stage's own template."""
        messages = self._messages(stage, values or {}, system=system)
        return StageQuestion(stage, messages, parse, assume, **fields)

    async def _run(self, questions: Sequence[StageQuestion[T]]) -> list[StageOutcome[T]]:
        """Ask all questions at once, those that fail again, up to ``attempts`` times.

        Returns a reply or a failure for each, in order. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        outcomes: dict[int, StageOutcome[T]] = {}
        problems: list[list[str]] = [[] for _ in questions]
        pending = list(range(len(questions)))
        for number in range(1, self._options.attempts + 1):
            attempts = [partial(self._attempt, questions[i], number, problems[i]) for i in pending]
            outcomes.update(zip(pending, await gather_bounded(attempts), strict=True))
            again = []
            for i in pending:
                # The engine has retried a failed call already.
                if isinstance(outcomes[i].error, ParseFailure):
                    problems[i].append(str(outcomes[i].error))
                    again.append(i)
            pending = again
            if not pending:
                break
        return [outcomes[i] for i in range(len(questions))]

    async def _one(self, question: StageQuestion[T]) -> StageOutcome[T]:
        return (await self._run([question]))[0]

    def _required(self, outcome: StageOutcome[T]) -> T:
        """Return the reply of a stage that every verdict needs. Raises its failure."""
        if outcome.reply is None:
            raise outcome.error or ParseFailure("no reply")
        return outcome.reply

    def _settle(self, stage: str, outcome: StageOutcome[T], fallback: T) -> T:
        """Return the reply, or ``fallback`` for a failure where the judge goes on as the source
        does. Raises the failure elsewhere."""
        if self._options.on_stage_failure != "continue":
            return self._required(outcome)
        reply = self._optional(stage, outcome)
        return fallback if reply is None else reply

    def _optional(self, stage: str, outcome: StageOutcome[T]) -> T | None:
        """Return the reply of a stage that a verdict can do without, None for a failure."""
        if outcome.error is not None:
            self.errors[stage] = outcome.error
        return outcome.reply

    async def _attempt(
        self, question: StageQuestion[T], number: int, problems: Sequence[str]
    ) -> StageOutcome[T]:
        """Ask once, as attempt ``number`` from 1; ``problems`` are those of the attempts before.

        A reply that fails a check is returned as a failure. Raises CallFailed unless the judge
        continues without stages that fail.
        """
        if number > 1 and question.stage not in self._retried:
            self._retried.append(question.stage)
        try:
            with error_context(question.part or question.stage.replace("_", " ")):
                reply = await self._reply(question, number, problems)
                return StageOutcome(reply)
        except ParseFailure as failure:
            return StageOutcome(error=failure)
        except CallFailed as failure:
            if isinstance(failure, NoAccess) or self._options.on_stage_failure != "continue":
                raise
            return StageOutcome(error=failure)

    async def _reply(self, question: StageQuestion[T], number: int, problems: Sequence[str]) -> T:
        options = self._options
        model = options.light if question.light else None
        images = model.images if model else options.images
        window = model.max_prompt_tokens if model else options.max_prompt_tokens
        reply_tokens = min(options.reply_tokens, window // 2)
        nudges = [
            Message(role="user", parts=(Text(text=self._prompt.render("again", problem=problem)),))
            for problem in (problems if question.nudged else ())
        ]
        parameters: dict[str, Any] = {"max_tokens": reply_tokens}
        if question.json:
            parameters["response_format"] = _JSON
        if question.seed is not None or (number > 1 and not question.nudged):
            parameters["seed"] = (question.seed or 0) + number - 1
        shot, shown = question.shot, None
        if shot is not None:
            shown = await picture(shot.image, options.images, "high")

        async def make(budget: int) -> TruncatedPrompt | None:
            full = [*question.messages(self._history, shown), *nudges]
            if fits_budget(full, budget, images):
                return TruncatedPrompt("full", full)
            room = budget - prompt_tokens([*question.messages("", shown), *nudges], images)
            if room < _LEAST_HISTORY:
                return None
            shorter = question.messages(cut_middle(self._history, room), shown)
            return TruncatedPrompt("cut", [*shorter, *nudges])

        reply = await ask_with_truncation(
            self._ask,
            make,
            limit=window - reply_tokens,
            images=images,
            stage=question.stage if number == 1 else f"{question.stage}#{number}",
            model=model.model if model else None,
            assume=question.assume,
            **parameters,
        )
        return parse_complete_reply(reply, question.parse)

    # Stages, in their order

    async def _critical_point(self) -> CriticalPoint | None:
        """Ask for the task's critical point; None where no reply holds one."""
        question = self._question(
            "critical_point",
            parse_critical_point,
            ASSUMED["critical_point"],
            system="critical_point_system",
            json=False,
        )
        return self._optional("critical_point", await self._one(question))

    async def _rubric(self) -> Items:
        """Ask for a rubric and for its review. A review that fails every attempt counts as one
        failed attempt of the rubric. Raises CallFailed and ParseFailure."""
        # Runs of one task do not share a cached rubric.
        seed = int.from_bytes(sha256(str(self._trajectory.key).encode()).digest()[:3])
        question = self._question(
            "rubric",
            parse_rubric,
            ASSUMED["rubric"],
            system="",
            seed=seed if self._options.rubric_per == "run" else None,
        )
        problems: list[str] = []
        while True:
            outcome = await self._attempt(question, len(problems) + 1, problems)
            if (items := outcome.reply) is not None:
                parse = partial(parse_dependencies, items=items)
                assume, values = ASSUMED["dependencies"], {"items": items}
                outcome = await self._one(
                    self._question("dependencies", parse, assume, values, system="")
                )
            problems.append(str(outcome.error))
            is_last = len(problems) == self._options.attempts
            if is_last or not isinstance(outcome.error, ParseFailure):
                return self._required(outcome)

    async def _baseline(self, items: Items) -> Items:
        """Ask the light model for points on the action history alone."""
        parse = partial(parse_baseline, items=items)
        assume, values = assumed_baseline(items), {"items": items}
        question = self._question("baseline", parse, assume, values, system="", light=True)
        return self._required(await self._one(question))

    async def _relevance(self, items: Items, shots: Sequence[Shot]) -> list[list[int]]:
        questions = [
            self._question(
                "relevance",
                partial(parse_relevance, count=len(items)),
                assumed_relevance(index, len(shots), len(items)),
                {"items": items},
                shot=shot,
                part=f"relevance of the screenshot of step {shot.number}",
            )
            for index, shot in enumerate(shots)
        ]
        outcomes = await self._run(questions)
        return [self._settle("relevance", one, [0] * len(items)) for one in outcomes]

    async def _evidence(
        self, items: Items, shots: Sequence[Shot], chosen: Mapping[int, Sequence[int]]
    ) -> dict[int, list[Evidence]]:
        """Ask about every distinct screenshot, then by pair where that failed."""

        def question(shot: int, criteria: Sequence[int]) -> StageQuestion[dict[int, Evidence]]:
            listed = [(criterion, items[criterion]) for criterion in criteria]
            return self._question(
                "evidence",
                partial(parse_evidence, shot=shot, criteria=criteria, items=items),
                assumed_evidence(criteria, items),
                {"criteria": listed, "number": shot + 1},
                shot=shots[shot],
                part=f"evidence in the screenshot of step {shots[shot].number}",
            )

        inverted = by_screenshot(chosen)
        outcomes = await self._run([question(shot, inverted[shot]) for shot in inverted])
        seen: dict[int, dict[int, Evidence]] = {shot: {} for shot in inverted}
        pairs: list[tuple[int, int]] = []
        for (shot, criteria), outcome in zip(inverted.items(), outcomes, strict=True):
            if outcome.error is not None and len(criteria) > 1:
                pairs += [(shot, criterion) for criterion in criteria]
            else:
                seen[shot] = self._settle("evidence", outcome, _nothing(shot, criteria))
        outcomes = await self._run([question(shot, [criterion]) for shot, criterion in pairs])
        for (shot, criterion), outcome in zip(pairs, outcomes, strict=True):
            single = self._settle("evidence", outcome, _nothing(shot, [criterion]))
            seen[shot].update(single)
        return {
            criterion: [seen[shot][criterion] for shot in shown]
            for criterion, shown in chosen.items()
        }

    async def _conditions(
        self, items: Items, evidence: Mapping[int, Sequence[Evidence]], in_time: object
    ) -> Items:
        """Set the condition flags: by a call where there are two conditions or more, else by what
        the screenshots said, else as they were."""
        indices = [index for index, item in enumerate(items) if item.condition is not None]
        met: dict[int, bool] = {}
        for index in indices:
            flags = [one.condition_verification for one in evidence.get(index, ())]
            if known := [flag for flag in flags if flag is not None]:
                met[index] = any(known)
        if len(indices) > 1:
            question = self._question(
                "conditions",
                partial(parse_conditions, indices=indices, items=items),
                assumed_conditions(indices, items),
                {"criteria": [(index, items[index]) for index in indices], "evidence": in_time},
            )
            met = self._settle("conditions", await self._one(question), met)
        return tuple(
            item.model_copy(update={"is_condition_met": met[index]}) if index in met else item
            for index, item in enumerate(items)
        )

    async def _reality(self, items: Items, in_time: object) -> Items:
        """Note the facts that the screenshots show of every criterion."""
        parse, values = (
            partial(parse_reality, count=len(items)),
            {"items": items, "evidence": in_time},
        )
        question = self._question("reality", parse, assumed_reality(len(items)), values)
        notes = self._settle("reality", await self._one(question), [""] * len(items))
        return tuple(
            item.model_copy(update={"reality_notes": note})
            for item, note in zip(items, notes, strict=True)
        )

    async def _scores(
        self,
        items: Items,
        evidence: Mapping[int, Sequence[Evidence]],
        in_time: object,
        printed: PointTotals,
    ) -> tuple[Items, ...]:
        """Score the items with the evidence and look for side effects, once for each vote; equal
        questions are told apart by their seed. The side effects are shown the totals ``printed``
        of the points without pictures, as in the source."""
        parse, values = partial(parse_rescore, items=items), {"items": items, "evidence": in_time}
        question = self._question("rescore", parse, assumed_rescore(items), values)
        outcomes = await self._run(self._votes(question))
        kept = tuple(map(baseline_kept, items))
        rescored = [self._settle("rescore", one, kept) for one in outcomes]
        effects = []
        for vote, one in enumerate(rescored):
            values = {"items": one, "evidence": evidence, "printed": printed}
            assume = ASSUMED["side_effects"]
            effects.append(
                self._question(
                    "side_effects", parse_side_effects, assume, values, seed=vote or None
                )
            )
        nothing: Items = ()
        return tuple(
            scored + self._settle("side_effects", one, nothing)
            for scored, one in zip(rescored, await self._run(effects), strict=True)
        )

    def _votes(self, question: StageQuestion[T]) -> list[StageQuestion[T]]:
        return [replace(question, seed=vote or None) for vote in range(self._options.votes)]

    async def _decisions(
        self, values: Mapping[str, object]
    ) -> tuple[tuple[OutcomeVerdict | None, ...], ViolationVerdict | None]:
        """Ask for the outcome, once for each vote, and at the same time for a violation."""
        outcome: StageQuestion[OutcomeVerdict | ViolationVerdict] = self._question(
            "outcome", parse_outcome, ASSUMED["outcome"], values
        )
        questions = self._votes(outcome)
        if self._options.critical_points == "classified":
            questions.append(
                self._question("violation", parse_violation, ASSUMED["violation"], values)
            )
        replies = [
            self._optional(question.stage, one)
            for question, one in zip(questions, await self._run(questions), strict=True)
        ]
        votes = replies[: self._options.votes]
        crossed = (one for one in replies if isinstance(one, ViolationVerdict))
        return (
            tuple(vote if isinstance(vote, OutcomeVerdict) else None for vote in votes),
            next(crossed, None),
        )

    async def _failures(self, values: Mapping[str, object]) -> FailureAnalysis:
        """Ask what went wrong, and where; no failure where no reply tells."""
        space = action_space(self._trajectory.metadata)
        question = self._question(
            "failures", parse_failures, ASSUMED["failures"], {"space": space, **values}
        )
        analysis = self._optional("failures", await self._one(question))
        if analysis is None:
            return _NO_ANALYSIS
        return with_tool_rules(analysis, acting_steps(self._trajectory), space)

    async def _validity(self, values: Mapping[str, object]) -> dict[str, TaskValidity]:
        """Ask the light model whether the task is ambiguous or invalid, with the run and
        without."""
        assume = ASSUMED["validity"]
        questions = [
            self._question(
                "validity_after", parse_validity, assume, values, light=True, nudged=False
            ),
            self._question("validity_before", parse_strict_validity, assume, light=True),
        ]
        return {
            question.stage: self._optional(question.stage, one) or TaskValidity()
            for question, one in zip(questions, await self._run(questions), strict=True)
        }


def _nothing(shot: int, criteria: Sequence[int]) -> dict[int, Evidence]:
    """Return what stands for the evidence of a screenshot that no reply describes."""
    placeholder = Evidence(
        screenshot=shot,
        screenshot_evidence=_NOT_ANALYSED,
        criterion_analysis=_NOT_ANALYSED,
        discrepancies=_NOT_ANALYSED,
        environment_issues_confirmed=False,
    )
    return dict.fromkeys(criteria, placeholder)
