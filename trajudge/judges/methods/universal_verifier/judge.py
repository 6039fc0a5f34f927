"""The Universal Verifier (arXiv 2604.06240): a rubric from the task alone, evidence from the
screenshots that matter to each criterion, points for the process, and an outcome of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trajudge.judges.methods.universal_verifier.model import (
    RubricItem,
    UniversalVerifierOptions,
    acting_steps,
    action_history,
    answer_of,
    initial_url,
    screenshots,
    unended,
)
from trajudge.judges.methods.universal_verifier.replies import given_rubrics
from trajudge.judges.methods.universal_verifier.stages import (
    Conclusion,
    Decided,
    Questions,
    Scored,
    Sighted,
    StageRunner,
    VerifierRecord,
    check_task,
    classify,
    decide,
    find_failures,
    look,
    make_rubric,
    score,
    score_history,
    success_of,
    verdict_of,
)
from trajudge.judges.model import ModelClient, Skipped, Verdict
from trajudge.judges.prompting import Shot
from trajudge.judges.registry import register_judge
from trajudge.judges.replies import ParseFailure
from trajudge.prompts.render import load_prompt
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.truncate import cut_middle

# Of the window: what the task and the answer may take before they are cut.
_TASK_SHARE = 8
_ANSWER_SHARE = 6


@register_judge(
    "universal-verifier",
    UniversalVerifierOptions,
    summary="a rubric, evidence by screenshot, points (Universal Verifier)",
    id_options=("critical_points", "success", "votes", "light", "last_page", "on_stage_failure"),
    representations=("screenshot",),
    pictures="judge",
)
class UniversalVerifier:
    """S + U + q + 3N + 6 calls: S screenshots, U of them looked at, q = 1 with two conditions or
    more, N votes; 3 more with ``failures`` and ``validity``."""

    def __init__(self, options: UniversalVerifierOptions) -> None:
        self._options = options
        self._prompt = load_prompt("universal-verifier")
        self._rubrics = given_rubrics(options.rubrics) if options.rubrics else {}
        self.prompt_hash = self._prompt.hash

    async def __call__(self, trajectory: Trajectory, ask: ModelClient) -> Verdict:
        """Judge the trajectory. Raises Skipped, ImageUnreadable, CallFailed and ParseFailure."""
        if self._options.unended == "failure" and unended(trajectory):
            return Verdict(success=False, reasoning="The agent did not end its run itself.")
        runner = self.runner(trajectory, ask)
        record = await self.evaluate(trajectory, runner)
        success = success_of(record, self._options)
        if success is None:
            missing = runner.errors.get("outcome") or runner.errors.get("violation")
            raise missing or ParseFailure("outcome: the votes give no majority")
        return verdict_of(record, success)

    def runner(self, trajectory: Trajectory, ask: ModelClient) -> StageRunner:
        """Make the runner of one judgment's questions."""
        history = action_history(trajectory, self._options.thoughts)
        return StageRunner(ask, self._options, self._prompt, history)

    async def evaluate(self, trajectory: Trajectory, runner: StageRunner) -> VerifierRecord:
        """Run all stages. Raises as a call of the judge does, but for an outcome without a usable
        reply, which the record shows as None."""
        shots, missing = screenshots(trajectory, last_page=self._options.last_page)
        if not acting_steps(trajectory):
            raise Skipped(f"{trajectory.key}: no step has an action")
        if not shots:
            raise Skipped(f"{trajectory.key}: no step has a screenshot")
        material, cut = self._material(trajectory)
        questions = Questions(self._prompt, self._options, material)
        if self._options.critical_points == "classified":
            point = await classify(runner, questions)
            questions = Questions(self._prompt, self._options, material, point)
        items = await self._rubric(runner, questions, trajectory)
        items = await score_history(runner, questions, items)
        sighted = await look(runner, questions, items, shots)
        scored = await score(runner, questions, sighted)
        decided = await decide(runner, questions, scored.items, sighted)
        conclusion = Conclusion(scored.items, sighted, decided)
        after = await self._after(runner, questions, trajectory, conclusion)
        return VerifierRecord(
            **_seen(shots, missing, sighted),
            **_decided(scored, decided),
            **after,
            critical_point=questions.point,
            retried=tuple(runner.retried),
            skipped=tuple(runner.skipped),
            cut=cut,
        )

    def _material(self, trajectory: Trajectory) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the values of every template, and the names of those that were cut."""
        window = self._options.max_prompt_tokens
        task = cut_middle(trajectory.goal, window // _TASK_SHARE)
        whole = answer_of(trajectory)
        answer = cut_middle(whole, window // _ANSWER_SHARE)
        cut = [("task", task != trajectory.goal), ("answer", answer != whole)]
        material = {"task": task, "init_url": initial_url(trajectory), "answer": answer}
        return material, tuple(name for name, is_cut in cut if is_cut)

    async def _rubric(
        self, runner: StageRunner, questions: Questions, trajectory: Trajectory
    ) -> tuple[RubricItem, ...]:
        for task in (trajectory.raw_task_id, trajectory.key.task_id):
            if task in self._rubrics:
                return self._rubrics[task]
        return await make_rubric(runner, questions, trajectory.key)

    async def _after(
        self,
        runner: StageRunner,
        questions: Questions,
        trajectory: Trajectory,
        conclusion: Conclusion,
    ) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._options.failures:
            fields["failures"] = await find_failures(runner, questions, trajectory, conclusion)
        if self._options.validity:
            checked = await check_task(runner, questions, conclusion)
            fields |= {"validity_after": checked.after, "validity_before": checked.before}
        return fields


def _seen(shots: Sequence[Shot], missing: int, sighted: Sighted) -> dict[str, Any]:
    return {
        "steps": tuple(shot.number for shot in shots),
        "without_screenshot": missing,
        "relevance": sighted.relevance,
        "ranked": sighted.ranked,
        "evidence": sighted.evidence,
    }


def _decided(scored: Scored, decided: Decided) -> dict[str, Any]:
    return {
        "instances": scored.instances,
        "median": scored.median,
        "outcome": decided.outcome,
        "votes": decided.votes,
        "violation": decided.violation,
    }
