"""The commands ``trajudge data fetch``, ``data convert`` and ``data sources``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import orjson

from trajudge.trajectories import store
from trajudge.trajectories.goals import read_goals
from trajudge.trajectories.hub import FileUnavailable, HubCopy, default_folder
from trajudge.trajectories.loaders import (
    agentrewardbench,
    cuaverifierbench,
    open_source,
    parse_source,
)
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import ALL, Shown, last
from trajudge.trajectories.sample import resolve_sample
from trajudge.trajectories.settings import ConvertConfig, FetchConfig, SourcesConfig
from trajudge.trajectories.sources import source_card, source_cards
from trajudge.util.commands import FAILURES, OK
from trajudge.util.errors import ImageUnreadable, UserError, naming
from trajudge.util.tables import Table, text
from trajudge.util.terminal import count_of, one_line


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
    """Return the runs of the named benchmarks, agents and tasks. Raises UserError for a name
    without a run."""
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


def convert(config: ConvertConfig) -> int:
    """Convert, list what could not be read, and return the exit code (1 if there is any)."""
    source = resolve_sample(config.source)
    goals = read_goals(config.goals) if config.goals else None
    with naming("IN"):
        store.check_target(config.target, parse_source(source)[1], "OUT")
        loaded = open_source(source, goals=goals)
    converted, failed, lost = list[str](), list[str](), list[str]()

    def readable() -> Iterator[Trajectory]:
        for trajectory in loaded:
            if isinstance(trajectory, Trajectory):
                converted.append(str(trajectory.key))
                yield trajectory
            else:
                failed.append(one_line(f"{trajectory.source}: {trajectory.reason}"))
                sys.stderr.write(f"not read: {failed[-1]}\n")

    def lose(error: ImageUnreadable) -> None:
        lost.append(one_line(f"{converted[-1]}: {error}"))

    file = store.write(config.target, readable(), on_lost=lose)
    sys.stdout.write(f"{file}: {count_of(len(converted), 'trajectory')}\n")
    if lost:
        sys.stderr.write(
            f"warning: {count_of(len(lost), 'picture')} could not be read (the first: {lost[0]}): "
            f"not in {config.target}, where the warnings of each trajectory name its own\n"
        )
    return FAILURES if failed else OK


def show_sources(config: SourcesConfig) -> int:
    """Print the register of data sets, or one card."""
    cards = [source_card(config.name)] if config.name else [*source_cards().values()]
    if config.json_output:
        content = [card.model_dump(mode="json") for card in cards]
        sys.stdout.write(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n")
        return OK
    head: tuple[str, ...] = ("name", "licence", "redistribution", "labels")
    rows: list[tuple[str, ...]] = [
        (c.name, c.licence, c.redistribution, ", ".join(c.labels) or "–") for c in cards
    ]
    if config.name:
        fields = cards[0].model_dump().items()
        listed = [(n, ", ".join(v) if isinstance(v, tuple) else v or "–") for n, v in fields]
        head, rows = listed[0], [*listed[1:]]
    sys.stdout.write(text(Table("", head, rows, names=len(head))).lstrip("\n"))
    return OK
