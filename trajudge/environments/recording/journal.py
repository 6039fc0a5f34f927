"""A recording on disk: one line a finished run, so that a killed recording goes on where it was.

``runs.jsonl`` holds a header (what is recorded) and the runs as they end; images lie beside it,
named by their content, network traces in ``traces/``, what a proxy noted in ``events/``.
``assemble`` writes the trajectories in stable order, their labels and their facts; when all runs
are there, ``recording.json`` (the header and the labels by agent) takes the place of
``runs.jsonl``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajudge.annotations import store as annotation_store
from trajudge.annotations.model import Label
from trajudge.environments.recording.episode import Recorded
from trajudge.trajectories import store
from trajudge.trajectories.model import ImageRef, Step, Trajectory
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, read_regular, write_bytes

ANNOTATOR = "final-state"
RUNS = "runs.jsonl"
COMPLETE = "recording.json"
COUNTED = ("runs", "success", "side_effect", "repetition", "ambiguous")
_FORMAT = "trajudge-recording"
_OF_RUN = {"run", "trajectory", "labels", "facts"}
_RESTORE = "restore it from a copy, or record anew into another --out"


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
        """Labels by agent, if the recording is complete. Raises UserError where its files do not
        fit together."""
        path, labels = self.folder / COMPLETE, self.folder / "labels.jsonl"
        if not path.exists():
            return None
        written = (_parsed(read_regular(path)) or {}).get("counts")
        counts = counted(
            (label.key.agent, label.model_dump()) for label in annotation_store.load(labels)
        )
        if written != counts:
            raise UserError(
                f"{path}: does not count the runs that {labels.name} has labels of: one of the two "
                f"is damaged: {_RESTORE}"
            )
        return counts

    def _begin(self) -> None:
        complete = self.folder / COMPLETE
        if complete.exists():
            self._check(complete, read_regular(complete))
            return
        lines = read_regular(self.file).splitlines(keepends=True) if self.file.exists() else []
        if not lines or not lines[0].endswith(b"\n"):  # killed before it held a run
            write_bytes(self.file, orjson.dumps(self._header) + b"\n")
            return
        self._check(self.file, lines[0])
        whole = [line for line in lines[1:] if line.endswith(b"\n") and _run_of(line) is not None]
        write_bytes(self.file, lines[0] + b"".join(whole))  # but the line that a kill cut off

    def _check(self, path: Path, text: bytes) -> None:
        """Raise UserError unless ``path``, whose header is ``text``, is of this recording."""
        header = _parsed(text) or {}
        subject = header.get("what")
        if header.get("format") != _FORMAT or not isinstance(subject, dict):
            raise UserError(f"{path}: is damaged, so what is recorded is not known: {_RESTORE}")
        mine = orjson.loads(orjson.dumps(self._header))
        if subject == mine["what"] and header.get("version") == mine["version"]:
            return
        names = sorted(subject.keys() | mine["what"].keys())
        other = [name for name in names if subject.get(name) != mine["what"].get(name)]
        raise UserError(
            f"{self.folder} holds another recording, of other {', '.join(other) or 'version'}: "
            "choose another --out or remove it"
        )

    def finish(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Put ``recording.json`` in the place of the runs, which are all assembled."""
        content = {**self._header, "counts": counts}
        write_bytes(self.folder / COMPLETE, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        self.file.unlink()

    def done(self) -> dict[str, dict[str, Any]]:
        """Return the runs so far by name."""
        entries = map(orjson.loads, read_regular(self.file).splitlines()[1:])
        return {entry["run"]: entry for entry in entries}

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
    counts = counted((one["trajectory"]["key"]["agent"], one["labels"]) for one in entries)
    annotation_store.write(folder / "labels.jsonl", map(_annotation, entries))
    facts = ({"key": entry["trajectory"]["key"], **entry["facts"]} for entry in entries)
    write_bytes(folder / "facts.jsonl", b"".join(orjson.dumps(fact) + b"\n" for fact in facts))
    store.write(folder, _trajectories(folder, entries), compress="zst")
    if len(entries) == len(names):
        journal.finish(counts)
    return counts


def counted(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, int]]:
    """Count by group, such as the agent: runs, how many have each label, and of how many the
    success is ambiguous, as ``trajudge env results`` counts them; ``runs`` are groups with
    labels."""
    counts: dict[str, Counter[str]] = {}
    for group, labels in runs:
        row = counts.setdefault(group, Counter(dict.fromkeys(COUNTED, 0)))
        row["runs"] += 1
        for name in COUNTED[1:-1]:
            row[name] += labels[name] is True
        row["ambiguous"] += labels["success"] is None
    return {group: dict(row) for group, row in sorted(counts.items())}


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


def _annotation(entry: Mapping[str, Any]) -> Label:
    return Label.model_validate(
        {
            "key": entry["trajectory"]["key"],
            "raw_task_id": entry["trajectory"]["raw_task_id"],
            "annotator": ANNOTATOR,
            **entry["labels"],
        }
    )


def _run_of(line: bytes) -> dict[str, Any] | None:
    """Return the run that a line holds; one that is damaged is recorded again."""
    entry = _parsed(line)
    if entry is None or not entry.keys() >= _OF_RUN:
        return None
    try:
        Trajectory.model_validate(entry["trajectory"])
        _annotation(entry)
    except (ValidationError, KeyError, TypeError):
        return None
    return entry


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None
