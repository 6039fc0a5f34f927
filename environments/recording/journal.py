"""A recording on disk: one line a finished run, so that a killed recording goes on where it was.

``runs.jsonl`` holds a header (what is recorded) and the runs as they end; images lie beside it,
named by their content, network traces in ``traces/``, what a proxy noted in ``events/``.
``assemble`` writes the trajectories in
stable order, their labels and their facts; when all runs are there, ``recording.json`` (the header
and the labels by agent) takes the place of ``runs.jsonl``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Annotation
from trajudge.environments.recording.episode import Recorded
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Step, Trajectory
from trajudge.trajectories.util.atomic import make_folder, write_bytes
from trajudge.trajectories.util.errors import UserError

ANNOTATOR = "final-state"
RUNS = "runs.jsonl"
COMPLETE = "recording.json"
COUNTED = ("runs", "success", "side_effect", "repetition", "ambiguous")
_FORMAT = "trajudge-recording"


class Journal:
    """The runs of one recording. ``what`` identifies it: a folder that holds another recording is
    refused rather than mixed."""

    def __init__(self, folder: Path, subject: Mapping[str, Any]) -> None:
        self.folder = folder
        self.file = folder / RUNS
        self._header = {"format": _FORMAT, "version": 1, "what": subject}
        try:
            make_folder(folder, "--out")
            (folder / "images").mkdir(exist_ok=True)
            (folder / "traces").mkdir(exist_ok=True)
            self._begin()
        except OSError as error:
            raise UserError(f"{folder}: cannot be written ({error.strerror or error})") from error

    @property
    def counts(self) -> dict[str, dict[str, int]] | None:
        """Labels by agent, if the recording is complete."""
        path = self.folder / COMPLETE
        if not path.exists():
            return None
        counts: dict[str, dict[str, int]] = orjson.loads(path.read_bytes())["counts"]
        if all(row.keys() == set(COUNTED) for row in counts.values()):
            return counts
        # The version before counted other labels.
        return _counted(
            (label.key.agent, label.model_dump())
            for label in annotation_store.load(self.folder / "labels.jsonl")
        )

    def _begin(self) -> None:
        complete = self.folder / COMPLETE
        if complete.exists():
            self._check(_parsed(complete.read_bytes()))
            return
        if not self.file.exists():
            self.file.write_bytes(orjson.dumps(self._header) + b"\n")
            return
        lines = self.file.read_bytes().splitlines(keepends=True)
        self._check(_parsed(lines[0]) if lines else None)
        whole = [line for line in lines if line.endswith(b"\n") and _parsed(line) is not None]
        write_bytes(self.file, b"".join(whole))  # the line that a kill cut off

    def _check(self, header: dict[str, Any] | None) -> None:
        if {**(header or {}), "counts": 0} != {
            **orjson.loads(orjson.dumps(self._header)),
            "counts": 0,
        }:
            raise UserError(
                f"{self.folder} holds another recording: choose another --out or remove it"
            )

    def finish(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Put ``recording.json`` in the place of the runs, which are all assembled."""
        content = {**self._header, "counts": counts}
        write_bytes(self.folder / COMPLETE, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        self.file.unlink()

    def done(self) -> dict[str, dict[str, Any]]:
        """Return the runs so far by name."""
        entries = (_parsed(line) for line in self.file.read_bytes().splitlines()[1:])
        return {entry["run"]: entry for entry in entries if entry is not None}

    def add(self, name: str, recorded: Recorded) -> None:
        """Keep a finished run: its images first, its line last."""
        har = orjson.dumps(recorded.har)
        write_bytes(self.folder / "traces" / f"{name}.har", har)
        if recorded.events:
            lines = (orjson.dumps(event) + b"\n" for event in recorded.events)
            (self.folder / "events").mkdir(exist_ok=True)
            write_bytes(self.folder / "events" / f"{name}.jsonl", b"".join(lines))
        steps = tuple(self._kept(step) for step in recorded.trajectory.steps)
        trajectory = recorded.trajectory.model_copy(update={"steps": steps})
        entry = {
            "run": name,
            "trajectory": trajectory.model_dump(mode="json"),
            "labels": recorded.finding.labels._asdict(),
            "facts": recorded.facts,
        }
        with self.file.open("ab") as file:
            file.write(orjson.dumps(entry) + b"\n")

    def _kept(self, step: Step) -> Step:
        """Return the step with its picture in a file."""
        picture = step.observation.screenshot
        if picture is None or picture.data is None:
            return step
        name = f"{picture.sha256 or sha256(picture.data).hexdigest()}.png"
        path = self.folder / "images" / name
        if not path.exists():
            write_bytes(path, picture.data)
        seen = step.observation.model_copy(
            update={"screenshot": ImageRef(path=Path("images") / name, sha256=picture.sha256)}
        )
        return step.model_copy(update={"observation": seen})


def assemble(journal: Journal, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Write trajectories, labels and facts of the runs that are there, in this order, and finish
    the journal if all are; gives the labels by agent."""
    done = journal.done()
    entries = [done[name] for name in names if name in done]
    folder = journal.folder
    counts = _counted((one["trajectory"]["key"]["agent"], one["labels"]) for one in entries)
    annotation_store.write(folder / "labels.jsonl", map(_annotation, entries))
    facts = ({"key": entry["trajectory"]["key"], **entry["facts"]} for entry in entries)
    write_bytes(folder / "facts.jsonl", b"".join(orjson.dumps(fact) + b"\n" for fact in facts))
    store.write(folder, _trajectories(folder, entries), compress="gz")
    if len(entries) == len(names):
        journal.finish(counts)
    return counts


def _counted(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, int]]:
    """By agent: runs, how many have each label, and of how many the success is ambiguous, as
    ``trajudge env results`` counts them; ``runs`` are agents with labels."""
    counts: dict[str, Counter[str]] = {}
    for agent, labels in runs:
        row = counts.setdefault(agent, Counter(dict.fromkeys(COUNTED, 0)))
        row["runs"] += 1
        for name in COUNTED[1:-1]:
            row[name] += labels[name] is True
        row["ambiguous"] += labels["success"] is None
    return {agent: dict(row) for agent, row in sorted(counts.items())}


def _trajectories(folder: Path, entries: Iterable[Mapping[str, Any]]) -> Iterator[Trajectory]:
    for entry in entries:
        trajectory = Trajectory.model_validate(entry["trajectory"])
        steps = tuple(_placed(folder, step) for step in trajectory.steps)
        yield trajectory.model_copy(update={"steps": steps})


def _placed(folder: Path, step: Step) -> Step:
    picture = step.observation.screenshot
    if picture is None or picture.path is None:
        return step
    image = ImageRef(path=folder / picture.path, sha256=picture.sha256)
    seen = step.observation.model_copy(update={"screenshot": image})
    return step.model_copy(update={"observation": seen})


def _annotation(entry: Mapping[str, Any]) -> Annotation:
    return Annotation.model_validate(
        {
            "key": entry["trajectory"]["key"],
            "raw_task_id": entry["trajectory"]["raw_task_id"],
            "annotator": ANNOTATOR,
            **entry["labels"],
        }
    )


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None
