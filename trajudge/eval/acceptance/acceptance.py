"""Applying a choice: which trajectories a rule accepts at a threshold, and why not the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import orjson

from trajudge.annotations.agentrewardbench import benchmark_of
from trajudge.eval.acceptance.conversations import (
    ChatTurn,
    chat_turns,
    messages,
    provenance,
    without_observation,
)
from trajudge.eval.acceptance.held_out import HeldOutTasks
from trajudge.eval.reporting.sentences import threshold_text
from trajudge.eval.select.scores import accepts_score, judge_scores, rule_scores
from trajudge.eval.select.plan import Rule
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.util import jsonl as python_json
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, open_regular

ACCEPTED = "accepted.jsonl"
REJECTED = "rejected.jsonl"
SUMMARY = "acceptance.json"


class AcceptanceFilter(NamedTuple):
    """What accepts: a rule at a threshold. ``benchmarks`` are those that it was shown to hold on,
    None: any; ``obstacles`` says of others why the choice does not transfer, "" where it does.
    ``agents`` are those whose runs are taken, None: all; runs on ``held_out`` tasks are not taken.
    ``decision`` is the hash of the plan that it was chosen under; ``warning`` is what the user
    should know of its guarantee."""

    name: str
    rule: Rule
    threshold: float
    benchmarks: frozenset[str] | None = None
    decision: str | None = None
    warning: str = "no decision stands behind this choice: its precision is not known"
    obstacles: Mapping[str, str] = {}
    agents: frozenset[str] | None = None
    held_out: HeldOutTasks = HeldOutTasks()


class AcceptDecision(NamedTuple):
    """``reason`` is empty for an accepted trajectory; ``score`` None where there is none."""

    kind: str
    reason: str
    score: float | None


Acceptor = Callable[[TrajectoryKey], AcceptDecision]
OnDecided = Callable[[Trajectory, AcceptDecision, list[ChatTurn]], None]
OK = "accepted"
NO_OBSERVATION = "no observation"


def acceptor(choice: AcceptanceFilter, judgments: list[Judgment]) -> Acceptor:
    """Make the function that decides on a trajectory, from the judgments at hand."""
    scored = judge_scores(judgments, choice.rule.use)
    keys = sorted({j.key for j in judgments}, key=lambda key: key.order)
    scores = dict(zip(keys, rule_scores(choice.rule, scored, keys).tolist(), strict=True))
    failures = _failures(choice.rule, judgments)

    def rule(key: TrajectoryKey) -> AcceptDecision:
        score = scores.get(key, math.nan)
        benchmark = benchmark_of(key)
        if obstacle := _not_covered(choice, key, benchmark):
            return AcceptDecision(*obstacle, None if math.isnan(score) else score)
        if math.isnan(score):
            return AcceptDecision("not judged", f"{choice.name} has not judged it", None)
        if accepts_score(score, choice.threshold):
            return AcceptDecision(OK, "", score)
        if key in failures:
            return AcceptDecision("judgment failed", failures[key], score)
        mine, least = threshold_text(score), threshold_text(choice.threshold)
        why = f"its score {mine} is below the threshold {least}"
        return AcceptDecision("below the threshold", why, score)

    return rule


def _not_covered(
    choice: AcceptanceFilter, key: TrajectoryKey, benchmark: str
) -> tuple[str, str] | None:
    """Return kind and reason where the choice was made for other benchmarks or agents, or the task
    is held out."""
    if choice.held_out.holds(key):
        return "held-out task", "its task is in the list of --held-out"
    if choice.benchmarks is not None and benchmark not in choice.benchmarks:
        why = choice.obstacles.get(benchmark, "nor does it transfer there")
        if why:
            return (
                "benchmark not covered",
                f"the choice was not shown to hold on {benchmark}, {why}",
            )
    if choice.agents is not None and key.agent not in choice.agents:
        return "agent not covered", f"the choice was not shown to hold for the agent {key.agent}"
    return None


def _failures(rule: Rule, judgments: Iterable[Judgment]) -> dict[TrajectoryKey, str]:
    """Find trajectories on which a judge of the rule gave no verdict in any sample, with the
    reason."""
    answered = {(j.judge, j.key) for j in judgments if j.status is Status.OK}
    return {
        j.key: f"{j.judge}: {j.status.value}: {j.detail}"
        for j in judgments
        if j.judge in rule.judges and (j.judge, j.key) not in answered
    }


def apply(
    trajectories: Iterable[Trajectory | Unreadable],
    judge: Acceptor,
    choice: AcceptanceFilter,
    folder: Path,
    *,
    bare_turns: bool = False,
    screenshots: bool = False,
    decided: OnDecided | None = None,
    **format_: Any,
) -> Counter[str]:
    """Write ``accepted.jsonl`` and ``rejected.jsonl``, one trajectory in memory at a time, in the
    order in which they come; how many ended how. Both appear when complete.

    ``decided`` is called with every trajectory that could be read, how it ended and its
    conversation. ``bare_turns``: accept runs with steps whose page was not recorded;
    ``screenshots`` go along with the turns, so that one alone is a page. ``format_`` goes to
    ``conversations.chat_turns``. Raises UserError for an unwritable folder.
    """
    counts: Counter[str] = Counter()
    try:
        make_folder(folder, "--out")
        with ExitStack() as stack:
            files = {
                name: stack.enter_context((folder / f"{name}.part").open("wb"))
                for name in (ACCEPTED, REJECTED)
            }
            for trajectory in trajectories:
                if isinstance(trajectory, Unreadable):
                    kind, line = "unreadable", _unreadable(trajectory)
                else:
                    decision, turns = decide(trajectory, judge, format_)
                    if decision.kind == OK and not bare_turns:
                        decision = _observed(trajectory, decision, screenshots=screenshots)
                    kind, line = decision.kind, _line(trajectory, decision, choice, turns)
                    if decided is not None:
                        decided(trajectory, decision, turns)
                counts[kind] += 1
                put_line(files[ACCEPTED if kind == OK else REJECTED], line)
        for name in files:
            (folder / f"{name}.part").replace(folder / name)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error
    return counts


def decide(
    trajectory: Trajectory, judge: Acceptor, format_: Mapping[str, Any]
) -> tuple[AcceptDecision, list[ChatTurn]]:
    """Decide on a trajectory, and write its conversation: empty without any action."""
    decision = judge(trajectory.key)
    turns = chat_turns(trajectory, **format_)
    if decision.kind == OK and not turns:
        why = "no step has an action: there is nothing to learn"
        decision = AcceptDecision("no action", why, decision.score)
    return decision, turns


def _unreadable(trajectory: Unreadable) -> dict[str, Any]:
    key = trajectory.key.model_dump() if trajectory.key else None
    return {"key": key, "kind": "unreadable", "reason": trajectory.reason}


def _line(
    trajectory: Trajectory,
    decision: AcceptDecision,
    choice: AcceptanceFilter,
    turns: list[ChatTurn],
) -> dict[str, Any]:
    if decision.kind != OK:
        return {"key": trajectory.key.model_dump(), **decision._asdict()}
    accepted = {
        "judge": choice.name,
        "score": decision.score,
        "threshold": choice.threshold,
        "decision": choice.decision,
    }
    return {"messages": messages(turns), "provenance": provenance(trajectory, accepted)}


def _observed(
    trajectory: Trajectory, decision: AcceptDecision, *, screenshots: bool
) -> AcceptDecision:
    """Return the decision; a refusal where a step with an action shows nothing of its page."""
    bare, acted = without_observation(trajectory, screenshots=screenshots)
    if not bare:
        return decision
    missing, remedy = "no address, page or error", "give the full trajectories with --data"
    if screenshots:
        missing = "no address, page, error or screenshot"
    elif not without_observation(trajectory, screenshots=True)[0]:
        remedy = "take their screenshots along with --format NAME --with-screenshots"
    why = (
        f"{bare} of {acted} steps with an action have no observation ({missing}), "
        f"so their user turns would be empty: {remedy}, or export "
        "them as they are with --without-observations"
    )
    return AcceptDecision(NO_OBSERVATION, why, decision.score)


def put_line(file: IO[bytes], line: dict[str, Any]) -> None:
    """Write a line of JSON."""
    file.write(python_json.encode(line) + b"\n")


def write_dataset(accepted: Path, folder: Path) -> None:
    """Write ``accepted.jsonl`` as a ``datasets`` dataset on disk (``datasets.load_from_disk``).

    Raises UserError if there is none, or if the folder is not empty or cannot be written.
    """
    if not accepted.stat().st_size:
        raise UserError(
            f"--dataset {folder}: nothing was accepted, and an empty dataset cannot be loaded: see "
            f"{accepted.with_name(REJECTED)}"
        )
    import datasets  # noqa: PLC0415 - slow to import
    from datasets import Dataset, Features, Value  # noqa: PLC0415

    datasets.disable_progress_bars()

    text, real = Value("string"), Value("float64")
    turn = {"role": text, "content": text}
    names = ("benchmark", "agent", "task_id", "raw_task_id", "judge", "decision")
    features = Features(
        {
            "messages": [turn],
            "provenance": {
                **dict.fromkeys(names, text),
                "attempt": Value("int64"),
                **dict.fromkeys(("official_reward", "score", "threshold"), real),
            },
        }
    )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"--dataset {folder}: is not empty: name a new folder")
    try:
        with TemporaryDirectory() as cache:
            rows = {"path": str(accepted)}
            made = Dataset.from_generator(
                read_accepted, gen_kwargs=rows, features=features, cache_dir=cache
            )
            made.save_to_disk(str(folder))
    except OSError as error:
        raise UserError(f"--dataset {folder}: cannot be written ({error})") from error


def read_accepted(path: str) -> Iterator[dict[str, Any]]:
    """Read the lines of ``accepted.jsonl``."""
    with open_regular(path) as file:
        yield from map(orjson.loads, file)
