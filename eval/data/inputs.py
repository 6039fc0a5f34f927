"""What a run reads: the trajectories, and the expert labels that belong to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trajudge.annotations import Annotation, agentrewardbench, open_annotations
from trajudge.trajectories.loaders import parse_source
from trajudge.trajectories.util.errors import UserError

SAMPLE = "sample"
NO_SPLITS = (
    "the annotations have no splits, so the development split is judged too: they come with  "
    "pip install --no-deps agent-reward-bench"
)
FETCH_HINT = "python -m trajectories.fetch agentrewardbench [--benchmark ...]"


class Source(NamedTuple):
    """``spec`` opens the trajectories (``trajectories.loaders.open_source``); ``labels`` names
    where the annotations came from, None if there are none; ``note`` is a sentence for the user
    where the choice was ours."""

    spec: str
    labels: str | None
    annotations: tuple[Annotation, ...]
    note: str = ""


def find_source(data: str | None, annotations: str | None) -> Source:
    """The data and labels of a run, chosen where the user named none.

    Without ``data``: the copy of AgentRewardBench on this machine, else the bundled sample.
    Raises UserError for what cannot be opened.
    """
    note = ""
    if data is None:
        data, note = _default_data()
    sample = data == SAMPLE
    if sample:
        from trajudge.trajectories.sample import sample_path  # noqa: PLC0415 - only where it is used

        data = f"trajudge:{sample_path()}"
    labels = annotations or _labels_of(data)
    opened = open_annotations(labels) if labels else []
    if labels and labels.startswith(agentrewardbench.KIND) and not _has_splits(opened):
        opened = agentrewardbench.with_packaged_splits(opened)
        if not _has_splits(opened):
            note = "; ".join(filter(None, [note, NO_SPLITS]))
    return Source(SAMPLE if sample else data, "sample" if sample else labels, tuple(opened), note)


def _has_splits(annotations: Iterable[Annotation]) -> bool:
    return any(annotation.split for annotation in annotations)


def open_spec(spec: str) -> str:
    """What ``open_source`` takes for a Source's ``spec``: the sample lies where it is installed."""
    if spec != SAMPLE:
        return spec
    from trajudge.trajectories.sample import sample_path  # noqa: PLC0415

    return f"trajudge:{sample_path()}"


def _default_data() -> tuple[str, str]:
    from trajudge.trajectories.fetch import local_copy  # noqa: PLC0415

    copy = local_copy()
    if copy is not None:
        return f"agentrewardbench:{copy}", f"judging the AgentRewardBench copy in {copy}"
    return SAMPLE, (
        "judging the bundled sample, for there is no AgentRewardBench copy on this machine: "
        f"fetch it with  {FETCH_HINT}"
    )


def _labels_of(data: str) -> str | None:
    """Where the labels of the data lie: beside it, in the installed package, or on the Hub."""
    kind, path = parse_source(data)
    if path is not None:
        for folder in (path, *path.resolve().parents[:2]):
            if folder.is_dir() and (folder / "labels.jsonl").is_file():
                return f"trajudge:{folder / 'labels.jsonl'}"
            if kind.startswith("agentrewardbench") and (folder / "annotations.csv").is_file():
                return f"agentrewardbench:{folder}"
    if not kind.startswith("agentrewardbench"):
        return None
    try:
        open_annotations(agentrewardbench.KIND)
    except UserError as error:
        if path is None:
            from trajudge.trajectories.fetch import annotation_table  # noqa: PLC0415 - only where it is used

            return f"{agentrewardbench.KIND}:{annotation_table()}"
        raise UserError(
            f"--data {data}: no annotations.csv lies beside it; name the labels with "
            f"--annotations agentrewardbench:PATH, or {error}"
        ) from error
    return agentrewardbench.KIND
