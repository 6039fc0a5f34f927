"""From judged runs to the training data of a trainer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from trajudge.eval.acceptance.acceptance import AcceptanceFilter
from trajudge.eval.acceptance.conversations import chat_turns, provenance
from trajudge.eval.acceptance.training.card import CardSource, Guarantee, TrainingCounts, card
from trajudge.eval.acceptance.training.choosing import (
    ChosenRuns,
    JudgedRun,
    choose_runs,
)
from trajudge.eval.acceptance.training.examples import (
    SaveScreenshot,
    TrainingExample,
    step_examples,
    whole_example,
)
from trajudge.eval.acceptance.training.files import NOT_TAKEN, write_rows
from trajudge.eval.acceptance.training.formats import FORMATS, unit
from trajudge.eval.acceptance.training.pairs import PairBuilder
from trajudge.eval.acceptance.training.screenshots import ScreenshotFolder, no_screenshot
from trajudge.eval.acceptance.training.settings import TrainingConfig
from trajudge.eval.acceptance.training.trainer_files import trainer_files
from trajudge.eval.select.decision import Decision
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, save_bytes

CARD = "README.md"


class ExportSource(NamedTuple):
    """What accepted the runs, and where they are read again; ``format_`` goes to
    ``conversations.chat_turns``."""

    choice: AcceptanceFilter
    guarantee: Guarantee
    spec: str
    data: str
    format_: dict[str, Any]


def guarantee(decision: Decision | None) -> Guarantee:
    """Return what a decision showed of the precision of its choice."""
    if decision is None or decision.chosen is None:
        return Guarantee()
    if decision.recertified is not None:
        return Guarantee(decision.recertified.low, decision.plan.confidence)
    precision = decision.findings[decision.chosen].precision
    return Guarantee(precision.low, 1 - precision.level)


def export_training(
    source: ExportSource, listed: list[JudgedRun], config: TrainingConfig, out: Path
) -> TrainingCounts:
    """Write the rows, their card and the trainer's file into ``out``/``format``.

    Raises UserError for a folder that cannot be written.
    """
    folder = out / config.format
    config = _capped(config)
    chosen = choose_runs(listed, config)
    try:
        make_folder(folder, "--out")
        _remove_earlier(folder)
        with TemporaryDirectory(dir=folder) as scratch:
            inside = bool(FORMATS[config.format].columns) or config.format == "openai-sft"
            pictures = ScreenshotFolder(Path(scratch) if inside else folder)
            writer = _Examples(source, chosen, config, pictures)
            rows = write_rows(writer.examples(), config, folder, pictures.folder)
    except OSError as error:
        raise UserError(f"--out {folder}: cannot be written ({error.strerror})") from error
    left_out = chosen.left_out + writer.left_out + Counter({NOT_TAKEN: rows.pop(NOT_TAKEN, 0)})
    counts = TrainingCounts(rows, len(writer.used), len(writer.tasks), +left_out, pictures.problems)
    _write_card(source, config, counts, folder, writer.agents)
    return counts


def _capped(config: TrainingConfig) -> TrainingConfig:
    """Take one run a task for verl, whose rows are tasks."""
    return config.model_copy(update={"per_task": 1}) if config.format == "verl" else config


class _Examples:
    """Reads the chosen runs again and makes their examples."""

    def __init__(
        self,
        source: ExportSource,
        chosen: ChosenRuns,
        config: TrainingConfig,
        pictures: ScreenshotFolder,
    ) -> None:
        self.used: set[Any] = set()
        self.tasks: set[tuple[str, str]] = set()
        self.agents: Counter[str] = Counter()
        self._source, self._chosen, self._config = source, chosen, config
        self._save: SaveScreenshot = pictures.save if config.with_screenshots else no_screenshot
        self._pairs = PairBuilder(chosen) if config.format == "trl-preference" else None
        self._whole = unit(config) == "trajectory"

    @property
    def left_out(self) -> Counter[str]:
        return Counter() if self._pairs is None else self._pairs.left_out

    def examples(self) -> Iterator[tuple[str, TrainingExample]]:
        """Yield each example with the file that it goes to."""
        for trajectory in open_source(self._source.spec):
            if not isinstance(trajectory, Trajectory) or trajectory.key not in self._chosen.runs:
                continue
            run, file = self._chosen.runs[trajectory.key]
            for example in self._of(trajectory, run):
                self._count(example.origin)
                yield file, example

    def _of(self, trajectory: Trajectory, run: JudgedRun) -> Iterator[TrainingExample]:
        turns = chat_turns(trajectory, **self._source.format_)
        origin = self._origin(trajectory, run)
        if self._pairs is not None:
            yield from self._pairs.add(run, turns, origin, self._save)
        elif self._whole:
            yield whole_example(turns, origin, run.success, self._save)
        else:
            yield from step_examples(turns, origin, run.success, self._save)

    def _origin(self, trajectory: Trajectory, run: JudgedRun) -> dict[str, Any]:
        choice = self._source.choice
        accepted = {
            "judge": choice.name,
            "score": run.score,
            "threshold": choice.threshold,
            "decision": choice.decision,
            **self._source.guarantee._asdict(),
        }
        made = provenance(trajectory, accepted)
        return {name: made[name] for name in made if name not in _NOT_IN_ROWS}

    def _count(self, origin: dict[str, Any]) -> None:
        key = tuple(origin[name] for name in ("benchmark", "task_id", "agent", "attempt"))
        if key not in self.used:
            self.agents[origin["agent"]] += 1
        self.used.add(key)
        self.tasks.add((origin["benchmark"], origin["task_id"]))


_NOT_IN_ROWS = frozenset({"raw_task_id", "official_reward"})


def _remove_earlier(folder: Path) -> None:
    """Remove the rows of an earlier call: a file of it that is not written again would stay."""
    for file in [*folder.glob("train*.*"), *folder.glob("test*.*")]:
        file.unlink()


def _write_card(
    source: ExportSource,
    config: TrainingConfig,
    counts: TrainingCounts,
    folder: Path,
    agents: Counter[str],
) -> None:
    files = sorted((file.name for file in folder.glob("t*.*")), reverse=True)
    choice = source.choice
    made = CardSource(
        choice.name, choice.threshold, choice.decision, source.guarantee, source.data, agents
    )
    rows = [name for name in files if "-" not in name]
    save_bytes(folder / CARD, card(made, config, counts, rows).encode())
    for name, content in trainer_files(config, rows).items():
        save_bytes(folder / name, content)
