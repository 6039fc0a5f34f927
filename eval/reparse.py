"""``trajudge run reparse RUN``: read the recorded replies of a run again, without a call."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trajudge.trajectories.util.exits import DONE, Parser, user_errors

if TYPE_CHECKING:
    from trajudge.judges.model import Judge, Judgment
    from trajudge.judges.replies.replay_client import ReplyOf
    from trajudge.trajectories.model import Trajectory, TrajectoryKey
    from trajudge.trajectories.needs import Needs

_DESCRIPTION = """\
Read the replies that a run recorded again, as this version of trajudge reads them, and write the
judgments into a new folder. No model is asked. A judgment stays as it was recorded where the model
gave no reply, or where this version of the judge asks for something that was not recorded.

  trajudge run reparse runs/simplified-axtree_gpt-4o-1a2b3c4d --out again
"""


class Reparsed(NamedTuple):
    """A judgment as it is read today; ``why_kept`` says why it was not read again, "" if it was."""

    judgment: Judgment
    why_kept: str = ""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = Parser(
        prog="trajudge run reparse",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("run", type=Path, metavar="RUN", help="folder of a run")
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder for the judgments")
    add("--data", metavar="KIND:PATH", help="the trajectories (default: those of the run)")
    add("--judge", metavar="NAME", help="the judge, where the run's is in a file of your own")
    add("--cache", metavar="FILE", help="replies with token probabilities, as of eval.judge")
    return made


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Read the run again and write the new folder; the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.eval.data.inputs import open_recorded, open_spec  # noqa: PLC0415 - --help needs none of these
    from trajudge.eval.data.run_folder import (  # noqa: PLC0415
        JUDGMENTS,
        copy_run,
        read_judgments,
        read_manifest,
        write_judgments,
    )
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    manifest = read_manifest(options.run)
    if (options.out / JUDGMENTS).exists():
        raise UserError(f"--out {options.out}: holds judgments already: choose another folder")
    judge, needs = _judge(manifest, options.judge)
    before = read_judgments(options.run)
    data = open_spec(options.data) if options.data else open_recorded(str(manifest["data"]))
    trajectories = _trajectories(data, before, needs)
    found = asyncio.run(_read_again(before, judge, trajectories, _reply_of(options.cache)))
    copy_run(options.run, options.out)
    write_judgments(options.out, [reparsed.judgment for reparsed in found])
    sys.stdout.write(_summary(before, found) + f"written to {options.out}\n")
    return DONE


def _judge(manifest: dict[str, object], named: str | None) -> tuple[Judge, Needs]:
    """The judge with the run's options, and what it needs to see. Raises UserError where the
    manifest does not name it."""
    from trajudge.judges.registry import JUDGES, make_judge, needs_of  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    judge_id = str(manifest.get("judge"))
    names = [name for name in JUDGES if judge_id.startswith(name)]
    name = named or max(names, key=len, default=None)
    if name is None:
        raise UserError(f"{judge_id}: is no judge of trajudge: name its file with --judge FILE")
    options = manifest.get("options")
    given = options if isinstance(options, dict) else {}
    return make_judge(name, given)[1], needs_of(name, given)


def _trajectories(
    data: str, judgments: Sequence[Judgment], needs: Needs
) -> dict[TrajectoryKey, Trajectory | None]:
    """The run's trajectories that the data still holds."""
    from trajudge.trajectories.loaders import open_source  # noqa: PLC0415
    from trajudge.trajectories.model import Trajectory  # noqa: PLC0415

    wanted = {judgment.key for judgment in judgments}
    items = open_source(data, wanted.__contains__, needs)
    return {item.key: item for item in items if isinstance(item, Trajectory) and item.key in wanted}


def _reply_of(cache_file: str | None) -> ReplyOf:
    """Whole replies from the cache, if there is one."""
    from trajudge.eval.runs.models import cache_path  # noqa: PLC0415
    from trajudge.judges.engine import Cache  # noqa: PLC0415
    from trajudge.judges.model import Reply  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

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
) -> list[Reparsed]:
    return [
        await _reparse(judgment, judge, trajectories.get(judgment.key), reply_of)
        for judgment in judgments
    ]


async def _reparse(
    judgment: Judgment, judge: Judge, trajectory: Trajectory | None, reply_of: ReplyOf
) -> Reparsed:
    from trajudge.judges.judging import judge_trajectory  # noqa: PLC0415
    from trajudge.judges.model import Status  # noqa: PLC0415
    from trajudge.judges.replies.replay_client import NotRecorded, ReplayClient  # noqa: PLC0415
    from trajudge.trajectories.needs import NO_NEEDS  # noqa: PLC0415

    if judgment.status in (Status.PROVIDER_ERROR, Status.SKIPPED):
        return Reparsed(judgment, f"no whole set of replies ({judgment.status})")
    if trajectory is None:
        return Reparsed(judgment, "the data no longer holds the trajectory")
    replay = ReplayClient(judgment, reply_of)
    try:
        # What was shown is told by the recorded requests, pictures by their hash.
        found = await judge_trajectory(
            judgment.judge, judge, trajectory, replay, judgment.sample, needs=NO_NEEDS
        )
    except NotRecorded as error:
        return Reparsed(judgment, str(error))
    if not replay.is_complete:
        return Reparsed(judgment, "the judge no longer makes all of the recorded calls")
    if found.status in (Status.PROVIDER_ERROR, Status.SKIPPED):
        return Reparsed(judgment, found.detail)
    return Reparsed(found)


def _summary(before: Sequence[Judgment], found: Sequence[Reparsed]) -> str:
    """How many changed, and why others were kept as they were."""
    from collections import Counter  # noqa: PLC0415

    from trajudge.trajectories.util.terminal import one_line  # noqa: PLC0415

    kept = Counter(reparsed.why_kept for reparsed in found if reparsed.why_kept)
    changed = [
        (old, new.judgment)
        for old, new in zip(before, found, strict=True)
        if (old.status, old.success) != (new.judgment.status, new.judgment.success)
    ]
    read = len(found) - kept.total()
    lines = [f"{read} of {len(found)} judgments read again, {len(changed)} with another verdict"]
    lines += [
        f"  {old.key}: {old.status} {old.success} is now {new.status} {new.success}"
        for old, new in changed[:10]
    ]
    lines += [f"{count} kept as recorded: {reason}" for reason, count in sorted(kept.items())]
    return "".join(one_line(line) + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
