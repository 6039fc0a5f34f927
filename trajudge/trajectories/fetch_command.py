"""``trajudge data fetch DATASET``: download a published benchmark, or a part of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Literal

from trajudge.trajectories.hub import FileUnavailable, HubCopy, default_folder
from trajudge.trajectories.loaders import agentrewardbench, cuaverifierbench
from trajudge.trajectories.model import Record
from trajudge.trajectories.needs import ALL, Shown, last
from trajudge.util.commands import FAILURES, OK, OptionAdder, Parser, command, read_settings
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line


def parser() -> argparse.ArgumentParser:
    """Make the command's parser."""
    made = Parser(
        prog="trajudge data fetch",
        description="Fetch a benchmark, or a part of it, from the Hugging Face Hub.",
    )
    add = OptionAdder(made)
    add.choice("dataset", ["agentrewardbench", "cuaverifierbench"], "the benchmark")
    for name, metavar in (("benchmark", "NAME"), ("agent", "NAME"), ("task", "ID")):
        add.repeated(f"--{name}", metavar, f"only this {name}; may be repeated")
    add.value(
        "--what",
        "KIND,...",
        "of trajectories,screenshots,judgments,annotations (default: trajectories,screenshots)",
    )
    add.value(
        "--screenshots",
        "last|all|none|N",
        "per trajectory: the last one (default), all, none, or the last N",
    )
    add.repeated("--judge", "NAME", "judgments of this judge only")
    add.switch(
        "--no-images", "of cuaverifierbench: all but the screenshots, without transferring them"
    )
    add.value("--revision", "NAME", "branch, tag or commit (default: main, or as pinned)")
    add.output_folder(
        "--out", "default: the user's cache; of agentrewardbench: TRAJUDGE_DATA first"
    )
    return made


@command(parser)
def main(options: argparse.Namespace) -> int:
    """Fetch the parts and return the exit code; an interruption keeps what was fetched."""
    return fetch(read_settings(FetchConfig, options))


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
    folder, failed = config.out or default_folder(config.dataset), list[FileUnavailable]()
    if config.dataset == agentrewardbench.KIND:
        if config.no_images:
            raise UserError("--no-images goes with cuaverifierbench: use --screenshots none")
        parts, shown = _parts(config.what), _screenshots(config.screenshots or "last")
        copy = HubCopy(folder, agentrewardbench.REPO, config.revision)
        failed = agentrewardbench.download(
            copy, _chosen(copy, config), parts, screenshots=shown, judges=config.judge
        )
    else:
        for name in ("benchmark", "agent", "task", "what", "screenshots", "judge"):
            if getattr(config, name):
                raise UserError(
                    f"--{name} goes with agentrewardbench: cuaverifierbench has --no-images"
                )
        size = f"{sum(file.size for file in cuaverifierbench.FILES.values()) / 1e9:.2f} GB"
        sys.stderr.write(
            f"{cuaverifierbench.REPO} (MIT), revision {cuaverifierbench.REVISION[:7]}: "
            f"{len(cuaverifierbench.FILES)} files, {'text only, of ' * config.no_images}{size}\n"
        )
        revision = config.revision or cuaverifierbench.REVISION
        copy = HubCopy(folder, cuaverifierbench.REPO, revision, kind=cuaverifierbench.KIND)
        cuaverifierbench.download(copy, images=not config.no_images)
    for error in failed:
        sys.stderr.write(f"not fetched: {one_line(str(error))}\n")
    for path in copy.missing:
        sys.stderr.write(f"not in the dataset: {one_line(path)}\n")
    sys.stderr.write(f"{copy.counts}; revision {copy.revision}\n")
    sys.stdout.write(f"{copy.folder}\n")
    return FAILURES if failed else OK


def _parts(text: str | None) -> list[str]:
    if text is None:
        return ["trajectories", "screenshots"]
    named = [part.strip() for part in text.split(",") if part.strip()]
    for part in named:
        if part not in agentrewardbench.PARTS:
            raise UserError(f"--what {part!r} is none of {', '.join(agentrewardbench.PARTS)}")
    return named


def _screenshots(text: str) -> tuple[Shown, ...]:
    named = {"last": last(1), "all": ALL, "none": ()}
    if text in named:
        return named[text]
    if text.isdecimal() and int(text) >= 1:
        return last(int(text))
    raise UserError(f"--screenshots {text!r} is none of last, all, none or a number from 1 on")


def _chosen(copy: HubCopy, config: FetchConfig) -> list[agentrewardbench.LabelledRun]:
    """Keep the runs of the named benchmarks, agents and tasks. Raises UserError for a name that no
    run has."""
    runs = agentrewardbench.labelled_runs(copy)
    for option, column in (("benchmark", "benchmark"), ("agent", "agent"), ("task", "task_id")):
        names: tuple[str, ...] = getattr(config, option)
        known = {getattr(run, column) for run in runs}
        for name in names:
            if name not in known:
                listed = f": there are {', '.join(sorted(known))}" if len(known) < 20 else ""
                raise UserError(f"--{option} {name!r} is not in AgentRewardBench{listed}")
        if names:
            runs = [run for run in runs if getattr(run, column) in names]
    return runs


if __name__ == "__main__":
    sys.exit(main())
