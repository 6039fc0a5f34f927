"""What a run leaves: tables on standard output, ``results.json`` and ``results.csv`` beside."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from trajudge.eval.baselines import CLAIM, trivial_baselines, truth_of, with_baselines
from trajudge.eval.reporting.results import results_csv, results_json
from trajudge.eval.reporting.sentences import goal_notes, is_labelled, run_cost, unscored
from trajudge.eval.reporting.summary import summary
from trajudge.eval.reporting.tables import plain
from trajudge.eval.runs.jobs import LoadReport
from trajudge.eval.runs.plan import RunPlan
from trajudge.eval.scoring.compute import metric_scores, score
from trajudge.eval.scoring.estimates import with_estimated_rates
from trajudge.eval.scoring.records import Missing, ScoreReport, UnattributedCost, UnfinishedRun
from trajudge.eval.sources import Source, observed_verdicts, policy_name, recorded_policies
from trajudge.eval.store.export import ExportSettings, export
from trajudge.eval.store.run_folder import COST, writing
from trajudge.eval.store.table import STATUS_CODE, JudgmentTable
from trajudge.eval.store.task_goals import read_goals
from trajudge.judges.model import Judgment, Status
from trajudge.judges.models import guesses
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS
from trajudge.util.errors import UserError
from trajudge.util.tables import WARNINGS, first_warnings, folded, screen_width
from trajudge.util.terminal import count_of

_REST = (
    "Everything else: results.json and results.csv in the run; all tables: --full; one page to "
    "share: trajudge report RUN"
)


def write_results(
    plan: RunPlan,
    judgments: Sequence[Judgment],
    rewards: Mapping[TrajectoryKey, float | None],
    unattributed: UnattributedCost,
) -> ScoreReport:
    """Score the judgments of one run, which paid ``unattributed`` on top of their cost, and write
    its results, and the export if asked for."""
    missing = missing_policy(plan.run.protocol)
    scores = score(judgments, plan.labels, rewards=rewards, missing=missing, training=plan.training)
    scores = with_estimated_rates(scores, judgments, plan.labels, plan.training)
    scored = partial(metric_scores, judgments, plan.labels, rewards=rewards, missing=missing)
    again = partial(scored, training=plan.training, overall_only=True)
    scores = _against_claims(scores, plan, judgments)
    notes = goal_notes(scores.scores, read_goals(plan.folder), again)
    scores = scores.model_copy(
        update={"unattributed_cost": unattributed, "remarks": (*scores.remarks, *notes)}
    )
    if (judged := len(judgments)) < plan.total:
        cut = UnfinishedRun(judge=plan.judge_id, judged=judged, due=plan.total)
        scores = scores.model_copy(update={"unfinished": (cut,)})
    scores = write_scores(plan.folder, scores, plan.manifest.annotations)
    if plan.run.export:
        _export(plan, plan.run.export[1], judgments)
    return scores


def _against_claims(
    scores: ScoreReport, plan: RunPlan, judgments: Sequence[Judgment]
) -> ScoreReport:
    """Hold a judge that asks a model against the agents' own claims of success, the one baseline
    that needs no training; not where the runs cannot be read again."""
    truth = truth_of(plan.labels, "success")
    keys = truth.keys() & {one.key for one in judgments}
    if plan.model is None or not keys:
        return scores
    try:
        found = plan.source.read(keys.__contains__, NO_NEEDS)
        runs = [run for run in found if isinstance(run, Trajectory)]
    except UserError:
        return scores
    claims = trivial_baselines(runs, plan.labels, names=[CLAIM]).judgments
    source = Source(str(plan.folder), JudgmentTable.of(judgments), {}, plan.labels)
    source.training = plan.training
    return with_baselines(scores, claims, observed_verdicts(source, scores.missing), plan.labels)


def write_scores(folder: Path, scores: ScoreReport, annotations: str | None) -> ScoreReport:
    """Write ``results.json``, ``results.csv`` and ``cost.json``; return the scores with the policy
    by which the labels were chosen."""
    if policies := recorded_policies(annotations):
        scores = scores.model_copy(update={"label_policy": policy_name(policies)})
    with writing(folder):
        (folder / "results.json").write_text(results_json(scores), encoding="utf-8")
        (folder / "results.csv").write_text(results_csv(scores), encoding="utf-8")
        (folder / COST).write_text(run_cost(scores).model_dump_json() + "\n", encoding="utf-8")
    return scores


def failures(judgments: JudgmentTable) -> int:
    """Count the judgments that failed."""
    return int((~judgments.ok()).sum())


def are_too_many(failed: int, plan: RunPlan) -> bool:
    """Tell whether more judgments failed than ``--max-failures`` allows."""
    allowed: float | int = plan.run.max_failures
    return failed > (allowed * plan.total if isinstance(allowed, float) else allowed)


def notes_of(plan: RunPlan, judgments: JudgmentTable, stopped: Exception | None) -> Iterator[str]:
    """Say where the run is, and why it is not whole."""
    yield f"the run is in {plan.folder}"
    failed, total = failures(judgments), plan.total
    if stopped is not None:
        yield f"{stopped}: the same command goes on from there"
    elif are_too_many(failed, plan):
        yield (
            f"{failed} of {count_of(total, 'judgment')} failed, more than --max-failures "
            f"{plan.run.max_failures}: {_remedy(failed, judgments)}"
        )


def _remedy(failed: int, judgments: JudgmentTable) -> str:
    """Say what makes verdicts of failed judgments; of a skipped one only other data does."""
    skipped, truncated = (
        int((judgments.status == STATUS_CODE[status]).sum())
        for status in (Status.SKIPPED, Status.TRUNCATED)
    )
    if truncated == failed:
        return "the replies were cut off: allow longer ones with --max-tokens N"
    if not skipped:
        return "--retry-failed asks for them again"
    data = "the data lacks what the judge needs: mend it, then start again with --retry-failed"
    if skipped == failed:
        return data
    again = f"--retry-failed asks for {failed - skipped:,} of them again"
    return f"{again}; {skipped:,} were skipped, {data}"


def warnings_of(plan: RunPlan, report: LoadReport, judgments: JudgmentTable) -> Iterator[str]:
    """Say which answers were not sent, what could not be read, file by file, and why judgments
    failed, once per status."""
    if report.unsent:
        yield from _unsent_answers(plan.answer_options, report.unsent)
    named = dict.fromkeys(f"{i.source}: {i.reason}" for i in (*plan.unreadable, *report.unreadable))
    yield from named
    yield from guesses(plan.manifest.windows)
    for key in report.repeated:
        yield f"{key} comes twice in the data: the first one counts"
    failed = [*judgments.at(~judgments.ok())]
    for status in Status:
        why = [j.detail for j in failed if j.status is status and j.detail not in named]
        if why:
            yield f"{len(why)} {status}, the first because: {why[0]}"
    # A panel's own, behind whatever --judge-option puts around it.
    if members := getattr(plan.judge, "member_labels", ()):
        yield from _without_votes(members, judgments)


def _unsent_answers(options: Mapping[str, str], count: int) -> Iterator[str]:
    """Name the judges that judged so many runs without what the agent told the user."""
    for option in dict.fromkeys(options.values()):
        judges = " and ".join(name for name, its_own in options.items() if its_own == option)
        runs = count_of(count, "trajectory")
        yield f"{judges}: not sent the answer of {runs}, which is no action; {option} sends it"


def _without_votes(members: Sequence[str], judgments: JudgmentTable) -> Iterator[str]:
    """Name the members of a panel that did not vote wherever it came to a verdict: the others'
    ties, too, are then its verdicts."""
    decided, votes = 0, Counter[str]()
    for judgment in judgments:
        if judgment.status is Status.OK:
            decided += 1
            votes.update(judgment.scores.keys())
    for member in members:
        if absent := decided - votes[member]:
            yield (
                f"{member} cast no vote on {absent:,} of the panel's "
                f"{count_of(decided, 'verdict')}: run.log says why"
            )


def missing_policy(protocol: str) -> Missing:
    """Return what a failed judgment counts as under the run's protocol."""
    return "agentrewardbench" if protocol == "agentrewardbench" else "negative"


def show(
    scores: ScoreReport,
    seconds: float | None,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    full: bool = False,
) -> None:
    """Print the scores on standard output, the run's warnings and notes on standard error:
    together one screen, or with ``full`` all of them."""
    width = screen_width()
    if not any(c.judged or c.training for c in scores.coverage):
        after = [*warnings, *(line for note in notes for line in folded(note, width))]
        sys.stdout.write(f"{unscored(scores)}\n")
    elif full:
        sys.stdout.write(plain(scores, seconds))
        unlabelled = [] if any(map(is_labelled, scores.scores)) else [unscored(scores)]
        after = [*unlabelled, *warnings, *notes]
    else:
        after = first_warnings(warnings, width, rest="--full")
        after += [line for note in notes for line in folded(note, width)]
        most = max(WARNINGS - len(warnings), 0)
        also = len(after) + 2  # two lines more are the progress above
        screen = partial(summary, scores, most=most, also=also, width=width)
        sys.stdout.write(screen(seconds=seconds, rest=_REST))
    sys.stderr.write("".join(f"{line}\n" for line in after))


def _export(plan: RunPlan, folder: Path, judgments: Sequence[Judgment]) -> None:
    keys = set(plan.keys)
    read = plan.source.read(keys.__contains__, NO_NEEDS)
    representation = plan.manifest.options.get("representation")
    settings = ExportSettings(
        model=plan.config.model or plan.config.judge,
        provider=plan.manifest.endpoint or "",
        use_screenshot=representation in ("screenshot", "both"),
        use_axtree=representation in ("axtree", "both"),
        invert_sys_prompt=plan.config.success_last,
        completion_args=plan.manifest.parameters,
    )
    wanted = (item for item in read if isinstance(item, Trajectory) and item.key in keys)
    export(folder, judgments, wanted, settings)
