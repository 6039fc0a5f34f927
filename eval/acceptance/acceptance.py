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
from trajudge.eval.acceptance.conversations import messages, provenance, without_observation
from trajudge.eval.select.measures.scores import accepts_score, judge_scores, rule_scores
from trajudge.eval.select.plan import Rule
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import Trajectory, TrajectoryKey, Unreadable
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.surrogates import without_surrogates

ACCEPTED = "accepted.jsonl"
REJECTED = "rejected.jsonl"
SUMMARY = "acceptance.json"


class AcceptanceFilter(NamedTuple):
    """What accepts: a rule at a threshold. ``benchmarks`` are those that it was shown to hold on,
    None: any; ``obstacles`` says of others why the choice does not transfer, "" where it does.
    ``agents`` are those whose runs are taken, None: all. ``decision`` is the hash of the plan that
    it was chosen under; ``warning`` is what the user should know of its guarantee."""

    name: str
    rule: Rule
    threshold: float
    benchmarks: frozenset[str] | None = None
    decision: str | None = None
    warning: str = "no decision stands behind this choice: its precision is not known"
    obstacles: Mapping[str, str] = {}
    agents: frozenset[str] | None = None


class AcceptDecision(NamedTuple):
    """``reason`` is empty for an accepted trajectory; ``score`` None where there is none."""

    kind: str
    reason: str
    score: float | None


Acceptor = Callable[[TrajectoryKey], AcceptDecision]
OK = "accepted"


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
        why = f"its score {score:.4g} is below the threshold {choice.threshold:.4g}"
        return AcceptDecision("below the threshold", why, score)

    return rule


def _not_covered(
    choice: AcceptanceFilter, key: TrajectoryKey, benchmark: str
) -> tuple[str, str] | None:
    """Return kind and reason where the choice was made for other benchmarks or agents."""
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
    agents: Counter[str] | None = None,
    **format_: Any,
) -> Counter[str]:
    """Write ``accepted.jsonl`` and ``rejected.jsonl``, one trajectory in memory at a time, in the
    order in which they come; how many ended how. Both appear when complete.

    ``agents`` counts the accepted runs of each. ``bare_turns``: accept runs with steps whose page
    was not recorded. ``format_`` goes to ``conversations.messages``. Raises UserError for an
    unwritable folder.
    """
    counts: Counter[str] = Counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = {
                name: stack.enter_context((folder / f"{name}.part").open("wb"))
                for name in (ACCEPTED, REJECTED)
            }
            for trajectory in trajectories:
                kind, line = _line(trajectory, judge, choice, format_, bare_turns=bare_turns)
                counts[kind] += 1
                if kind == OK and agents is not None:
                    agents[line["provenance"]["agent"]] += 1
                _put(files[ACCEPTED if kind == OK else REJECTED], line)
        for name in files:
            (folder / f"{name}.part").replace(folder / name)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error
    return counts


def _line(
    trajectory: Trajectory | Unreadable,
    judge: Acceptor,
    choice: AcceptanceFilter,
    format_: Mapping[str, Any],
    *,
    bare_turns: bool,
) -> tuple[str, dict[str, Any]]:
    if isinstance(trajectory, Unreadable):
        key = trajectory.key.model_dump() if trajectory.key else None
        return "unreadable", {"key": key, "kind": "unreadable", "reason": trajectory.reason}
    decision = judge(trajectory.key)
    turns = messages(trajectory, **format_) if decision.kind == OK else []
    if decision.kind == OK and not turns:
        decision = AcceptDecision(
            "no action", "no step has an action: there is nothing to learn", decision.score
        )
    if decision.kind == OK and not bare_turns:
        decision = _observed(trajectory, decision)
    if decision.kind != OK:
        rejected = {"kind": decision.kind, "reason": decision.reason, "score": decision.score}
        return decision.kind, {"key": trajectory.key.model_dump(), **rejected}
    accepted = {
        "judge": choice.name,
        "score": decision.score,
        "threshold": choice.threshold,
        "decision": choice.decision,
    }
    return OK, {"messages": turns, "provenance": provenance(trajectory, accepted)}


def _observed(trajectory: Trajectory, decision: AcceptDecision) -> AcceptDecision:
    """Return the decision; a refusal where a step with an action shows nothing of its page."""
    bare, acted = without_observation(trajectory)
    if not bare:
        return decision
    why = (
        f"{bare} of {acted} steps with an action have no observation (no address, page or error), "
        "so their user turns would be empty: give the full trajectories with --data, or export "
        "them as they are with --without-observations"
    )
    return AcceptDecision("no observation", why, decision.score)


def _put(file: IO[bytes], line: dict[str, Any]) -> None:
    try:
        content = orjson.dumps(line)
    except TypeError:
        # Pages and models send halves of surrogate pairs, which no UTF-8 file can hold.
        content = orjson.dumps(without_surrogates(line))
    file.write(content + b"\n")


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
    with Path(path).open("rb") as file:
        yield from map(orjson.loads, file)
