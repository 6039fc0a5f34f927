"""Parse the recorded replies of a run again, as this version of trajudge parses them."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from trajudge.eval.sources import read_last_judgments
from trajudge.eval.store.inputs import open_recorded, open_spec, recorded_data
from trajudge.eval.store.run_folder import JUDGMENTS, copy_run, read_manifest, write_judgments
from trajudge.eval.store.settings import ReparseConfig
from trajudge.judges.calls.handle import cache_path
from trajudge.judges.engine.cache import Cache
from trajudge.judges.judging import NotRecorded, ReplayClient, ReplyOf, judge_trajectory
from trajudge.judges.model import Judge, Judgment, Reply, Status
from trajudge.judges.registry import judge_of_id, make_judge, needs_of
from trajudge.prompts.own import read_own_prompt
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory, TrajectoryKey
from trajudge.trajectories.needs import NO_NEEDS, Needs
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import count_of, one_line


class ReparsedJudgment(NamedTuple):
    """A judgment as it is parsed today; ``why_kept`` is "" or why it stayed as recorded."""

    judgment: Judgment
    why_kept: str = ""


def reparse(config: ReparseConfig) -> int:
    """Parse the run again, write the new folder and print what changed.

    No model is asked. Raises UserError for a run that cannot be read, and for a folder that holds
    judgments already.
    """
    manifest = read_manifest(config.run)
    if (config.out / JUDGMENTS).exists():
        raise UserError(f"--out {config.out}: holds judgments already: choose another folder")
    judge, needs = _judge(manifest, config)
    before, repeated = read_last_judgments(config.run)
    spec = open_spec(config.data) if config.data else open_recorded(recorded_data(config.run))
    trajectories = _trajectories(spec, before, needs)
    judgments = asyncio.run(_read_again(before, judge, trajectories, _reply_of(config.cache)))
    copy_run(config.run, config.out)
    write_judgments(config.out, [reparsed.judgment for reparsed in judgments])
    notes = "".join(f"note: {one_line(note)}\n" for note in repeated)
    sys.stdout.write(f"{reparse_text(before, judgments)}{notes}written to {config.out}\n")
    return OK


def _judge(manifest: dict[str, object], config: ReparseConfig) -> tuple[Judge, Needs]:
    """Make the judge with the run's options, and say what it needs to see.

    Raises UserError where the manifest does not name it.
    """
    judge_id = str(manifest.get("judge"))
    name = config.judge or judge_of_id(judge_id)
    if name is None:
        raise UserError(f"{judge_id}: is no judge of trajudge: name its file with --judge FILE")
    options = manifest.get("options")
    entries = options if isinstance(options, dict) else {}
    if config.prompt is not None:
        entries = {**entries, "prompt": read_own_prompt(config.prompt)}
    return make_judge(name, entries)[1], needs_of(name, entries)


def _trajectories(
    spec: str, judgments: Sequence[Judgment], needs: Needs
) -> dict[TrajectoryKey, Trajectory | None]:
    """Read the run's trajectories that the data still holds."""
    wanted = {judgment.key for judgment in judgments}
    items = open_source(spec, wanted.__contains__, needs)
    return {
        trajectory.key: trajectory
        for trajectory in items
        if isinstance(trajectory, Trajectory) and trajectory.key in wanted
    }


def _reply_of(cache_file: str | None) -> ReplyOf:
    """Look up whole replies in the cache, if there is one."""
    path = cache_path(cache_file)
    if not path.is_file():
        if cache_file:
            raise UserError(f"--cache {cache_file}: there is no such file: leave the option out")
        return lambda request: None
    cache = Cache(path)

    def reply_of(request: str) -> Reply | None:
        outcome = cache.get(request)
        return outcome if isinstance(outcome, Reply) else None

    return reply_of


async def _read_again(
    judgments: Sequence[Judgment],
    judge: Judge,
    trajectories: dict[TrajectoryKey, Trajectory | None],
    reply_of: ReplyOf,
) -> list[ReparsedJudgment]:
    return [
        await _reparse(judgment, judge, trajectories.get(judgment.key), reply_of)
        for judgment in judgments
    ]


async def _reparse(
    judgment: Judgment, judge: Judge, trajectory: Trajectory | None, reply_of: ReplyOf
) -> ReparsedJudgment:
    if judgment.status in (Status.PROVIDER_ERROR, Status.SKIPPED):
        return ReparsedJudgment(judgment, f"no whole set of replies ({judgment.status})")
    if trajectory is None:
        return ReparsedJudgment(judgment, "the data no longer holds the trajectory")
    replay = ReplayClient(judgment, reply_of)
    try:
        # What was shown is told by the recorded requests, pictures by their hash.
        parsed = await judge_trajectory(
            judgment.judge, judge, trajectory, replay, judgment.sample, needs=NO_NEEDS
        )
    except NotRecorded as error:
        return ReparsedJudgment(judgment, str(error))
    if not replay.is_complete:
        return ReparsedJudgment(judgment, "the judge no longer makes all of the recorded calls")
    if parsed.status in (Status.PROVIDER_ERROR, Status.SKIPPED):
        return ReparsedJudgment(judgment, parsed.detail)
    return ReparsedJudgment(parsed)


def reparse_text(before: Sequence[Judgment], after: Sequence[ReparsedJudgment]) -> str:
    """Say how many changed, and why others were kept as they were."""
    kept = Counter(reparsed.why_kept for reparsed in after if reparsed.why_kept)
    changed = [
        (old, new.judgment)
        for old, new in zip(before, after, strict=True)
        if (old.status, old.success) != (new.judgment.status, new.judgment.success)
    ]
    read = len(after) - kept.total()
    total = count_of(len(after), "judgment")
    lines = [f"{read} of {total} read again, {len(changed)} with another verdict"]
    lines += [
        f"  {old.key}: {old.status} {old.success} is now {new.status} {new.success}"
        for old, new in changed[:10]
    ]
    lines += [f"{count} kept as recorded: {reason}" for reason, count in sorted(kept.items())]
    return "".join(one_line(line) + "\n" for line in lines)
