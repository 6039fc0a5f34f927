"""Published verdicts that can be scored without a call, found in a folder of data sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trajudge.annotations import agentrewardbench, primary_labels, published
from trajudge.annotations.published import SUFFIX, open_verdicts
from trajudge.eval.data.inputs import find_source
from trajudge.eval.data.published.judgments import judgments_folder
from trajudge.eval.data.published.source import read_published_folder
from trajudge.eval.data.sources import Source
from trajudge.eval.imported.folders import to_judgments
from trajudge.eval.leaderboard.sources.baselines import baseline_entries
from trajudge.eval.leaderboard.sources.entries import BoardEntry
from trajudge.eval.leaderboard.sources.result_arrays import FILE, read_result_arrays
from trajudge.trajectories.loaders import loader
from trajudge.trajectories.loaders.agentrewardbench_text import KIND as TEXT_KIND
from trajudge.trajectories.util.errors import UserError


def read_published_data(folder: Path) -> list[BoardEntry]:
    """Read every known data set in ``folder`` (itself one, or with one in a folder of its own).

    AgentRewardBench: ``annotations.csv`` with ``splits.csv``, ``published/JUDGE/results.json`` and
    ``judgments/``. Raises UserError where there is none.
    """
    entries = [entry for place in (folder, *_subfolders(folder)) for entry in _data_set(place)]
    if not entries:
        raise UserError(
            f"--published {folder}: holds no published verdicts that are known here: give a folder "
            "with AgentRewardBench's annotations.csv and judgments/ or published/"
        )
    return entries


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError as error:
        raise UserError(f"--published {folder}: cannot be read ({error.strerror})") from error


def _data_set(folder: Path) -> Iterator[BoardEntry]:
    if (folder / "annotations.csv").is_file():
        yield from _agentrewardbench(folder)
        return
    kind = next((kind for kind in published.SOURCES if loader(kind).detect(folder)), None)
    if kind is not None:
        yield from _verdicts(f"{kind}:{folder}", folder.name)


def _verdicts(spec: str, name: str) -> Iterator[BoardEntry]:
    """Yield the verdicts that are published in the data, and the baselines where it is labelled."""
    judgments = to_judgments(open_verdicts(spec))
    dataset = find_source(spec, None)
    labels = primary_labels(dataset.annotations)
    rewards = dict.fromkeys(judgment.key for judgment in judgments)
    # The label policy, where the data have several.
    notes = [dataset.note] if dataset.note else []
    source = Source(name, judgments, rewards, labels, notes=notes)
    yield BoardEntry(source, name + SUFFIX, free=False, trusted=True)
    if labels:
        yield from baseline_entries(spec)


def _agentrewardbench(folder: Path) -> Iterator[BoardEntry]:
    """Yield the complete verdicts first; a judge's replies are left out where they are among these,
    because they are fewer."""
    annotations = agentrewardbench.load(folder)
    if not any(annotation.split for annotation in annotations):
        annotations = agentrewardbench.with_packaged_splits(annotations)
    labels = primary_labels(annotations)
    complete: set[str] = set()
    for path in sorted(folder.glob(f"published/*/{FILE}")):
        judgments = read_result_arrays(path, annotations)
        complete |= {judgment.judge.removesuffix(SUFFIX) for judgment in judgments}
        source = Source(f"published/{path.parent.name}", judgments, {}, labels)
        yield BoardEntry(source, f"{path.parent.name}{SUFFIX}", free=False, trusted=True)
    if not judgments_folder(folder).is_dir() or judgments_folder(folder) == folder:
        return
    replies = read_published_folder(folder, with_labels=False)
    rest = [
        judgment.model_copy(update={"judge": judgment.judge + SUFFIX})
        for judgment in replies.judgments
        if judgment.judge not in complete
    ]
    source = Source("judgments", rest, replies.rewards, labels)
    yield BoardEntry(source, f"judgments{SUFFIX}", free=False, trusted=True)
    # Whole trajectories, or what the replies tell of them.
    for kind in (agentrewardbench.KIND, TEXT_KIND):
        if loader(kind).detect(folder):
            yield from baseline_entries(f"{kind}:{folder}", f"{agentrewardbench.KIND}:{folder}")
            return
