"""What ``trajudge data fetch`` does for each data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from trajudge.trajectories.hub import agentrewardbench, cuaverifierbench
from trajudge.trajectories.hub.mirror import HubCopy
from trajudge.trajectories.model import Record
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line


class FetchConfig(Record):
    """Which data set is fetched, which part of it, and where to; the fields are the options."""

    dataset: Literal["agentrewardbench", "cuaverifierbench"]
    benchmark: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    what: str | None = None
    screenshots: str | None = None
    judge: tuple[str, ...] = ()
    no_images: bool = False
    revision: str | None = None
    out: Path | None = None


def fetch(config: FetchConfig) -> int:
    """Fetch the data set, print its folder, and return the exit code. Raises UserError."""
    if config.dataset == "agentrewardbench":
        return _agentrewardbench(config)
    return _cuaverifierbench(config)


def _agentrewardbench(config: FetchConfig) -> int:
    if config.no_images:
        raise UserError("--no-images goes with cuaverifierbench: use --screenshots none")
    parts = agentrewardbench.parts_of(config.what or "trajectories,screenshots")
    shown = agentrewardbench.screenshots_of(config.screenshots or "last")
    copy = HubCopy(config.out or agentrewardbench.folder(), agentrewardbench.REPO, config.revision)
    wanted = agentrewardbench.chosen(
        agentrewardbench.rows(copy),
        benchmark=config.benchmark,
        agent=config.agent,
        task=config.task,
    )
    failed = agentrewardbench.download(copy, wanted, parts, screenshots=shown, judges=config.judge)
    for error in failed:
        sys.stderr.write(f"not fetched: {one_line(str(error))}\n")
    for path in copy.missing:
        sys.stderr.write(f"not in the dataset: {one_line(path)}\n")
    sys.stderr.write(f"{copy.counts.sentence()}; revision {copy.revision}\n")
    sys.stdout.write(f"{copy.folder}\n")
    return FAILURES if failed else OK


def _cuaverifierbench(config: FetchConfig) -> int:
    for name in ("benchmark", "agent", "task", "what", "screenshots", "judge"):
        if getattr(config, name):
            raise UserError(
                f"--{name} goes with agentrewardbench: cuaverifierbench has --no-images"
            )
    images = not config.no_images
    sys.stderr.write(f"{cuaverifierbench.card(images=images)}\n")
    out = config.out or cuaverifierbench.folder()
    done = cuaverifierbench.fetch(out, images=images, revision=config.revision)
    sys.stderr.write(
        f"{done.files} files fetched ({done.transferred / 1e6:.1f} MB), {done.present} were here "
        f"already; revision {done.revision}\n"
    )
    sys.stdout.write(f"{done.folder}\n")
    return OK
