"""What a run reads: the trajectories, and the expert labels that belong to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from trajudge.annotations import (
    TABLE,
    Label,
    LabelsBy,
    Role,
    holds_labels,
    labels_by,
    no_label,
    open_annotations,
    parse_labels,
    policy_note,
    settled_labels,
    store,
)
from trajudge.annotations.sources import agentrewardbench
from trajudge.eval.store.labels import StoredAnnotations, read_label_columns
from trajudge.eval.store.run_folder import LABELS, read_manifest, start_of
from trajudge.eval.store.table import KeyColumns, KeyColumnsBuilder
from trajudge.trajectories.goals import GoalsFile, join_goals, read_goals, split_goals
from trajudge.trajectories.hub import default_folder, revision_of
from trajudge.trajectories.loaders import KINDS, PLUGINS, open_source, parse_source
from trajudge.trajectories.loaders.agentrewardbench import annotation_table, local_copy
from trajudge.trajectories.model import (
    Loaded,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.util.errors import UserError
from trajudge.util.files import special_kind

MEMORY = "memory:"

NO_SPLITS = (
    "the annotations have no splits, so the development split is judged too: they come with  "
    "pip install --no-deps agent-reward-bench"
)

FETCH_HINT = "trajudge data fetch agentrewardbench [--benchmark ...]"


class DataIndex(NamedTuple):
    """The keys of all trajectories, in their order; ``unreadable`` is what could not be read so
    far that its key is known."""

    keys: KeyColumns
    unreadable: tuple[Unreadable, ...] = ()


class DataSource(NamedTuple):
    """``spec`` names the trajectories; ``labels`` names where the annotations came from, None if
    there are none; ``note`` is a sentence for the user where the choice was ours. ``trajectories``
    are those in memory, whose ``spec`` is their digest; None: ``spec`` opens files. ``goals`` are
    those of ``--goals``; ``read_keys`` what was read for the labels already."""

    spec: str
    labels: str | None
    annotations: Sequence[Label]
    note: str = ""
    trajectories: tuple[Trajectory, ...] | None = None
    goals: GoalsFile | None = None
    read_keys: DataIndex | None = None

    def read(self, want: Want = accept_all, needs: Needs | None = None) -> Loaded:
        """Read the wanted trajectories, in their order. Raises UserError as ``open_source``."""
        if self.trajectories is not None:
            return (one for one in self.trajectories if want(one.key))
        return open_source(open_spec(self.spec), want, needs, self.goals)

    def read_index(self) -> DataIndex:
        """Read the keys of all trajectories; a trajectory is passed over where its key is in its
        path or its line begins with it. Raises UserError as ``read``."""
        if self.read_keys is not None:
            return self.read_keys
        found = KeyColumnsBuilder()

        def note(key: TrajectoryKey) -> bool:
            found.add(key)
            return False

        without_key = tuple(
            item for item in self.read(note) if isinstance(item, Unreadable) and item.key is None
        )
        return DataIndex(found.build(), without_key)

    @property
    def loader_digest(self) -> str | None:
        """The SHA-256 of the user's file that reads the data, None where no such file does."""
        if self.trajectories is not None:
            return None
        kind, _ = parse_source(open_spec(self.spec))
        return PLUGINS.digest(kind)

    @property
    def revision(self) -> str | None:
        """The revision of the hub's copy that is judged, None for other files."""
        if self.trajectories is not None:
            return None
        kind, path = parse_source(open_spec(self.spec))
        if path is None:
            return revision_of(default_folder()) if kind == agentrewardbench.KIND else None
        return revision_of(path)


def in_memory(
    trajectories: Iterable[Trajectory],
    annotations: str | None = None,
    by: LabelsBy | None = None,
) -> DataSource:
    """Make trajectories in memory the data of a run, labelled by ``KIND:PATH`` or not at all.

    They are named by what they hold, so that a run's folder knows them again. Raises UserError.
    """
    kept = tuple(trajectories)
    annotations = labels_by(annotations, by)
    opened = open_annotations(annotations, [one.key for one in kept]) if annotations else []
    return DataSource(MEMORY + digest(kept), annotations, tuple(opened), trajectories=kept)


def digest(trajectories: Iterable[Trajectory]) -> str:
    """Return 16 hexadecimal digits over all that trajectories hold, whatever their order; of an
    image in a file its name and size."""
    whole = sha256()
    for one in sorted(trajectories, key=lambda one: one.key.order):
        whole.update(json.dumps(one.model_dump(), sort_keys=True, default=_shown).encode() + b"\n")
    return whole.hexdigest()[:16]


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    if isinstance(value, Path):
        return [value.name, value.stat().st_size if value.is_file() else None]
    raise TypeError(f"{type(value).__name__} is no part of a trajectory")


def find_source(
    data: str | None,
    annotations: str | None,
    goals: Path | None = None,
    by: LabelsBy | None = None,
) -> DataSource:
    """Find the data and labels of a run; choose them where the user named none.

    Without ``data``: the copy of AgentRewardBench on this machine, else the bundled sample. ``by``
    makes one label of several annotators' (``--labels-by``). ``goals`` is the file of ``--goals``,
    which the source's ``spec`` names with the data. Raises UserError for what cannot be opened.
    """
    note = ""
    if data is None:
        data, note = _default_data()
    data, recorded = split_goals(data)
    goals = goals or recorded
    if is_sample := data == SAMPLE:
        PLUGINS.warn_of_namesake(SAMPLE)
    place = resolve_sample(data)
    parse_source(place)  # the path of the data is looked at before the labels'
    labels = annotations or _labels_of(place)
    if by is not None and labels is None:
        raise UserError(f"--labels-by {by}: the data has no labels: name them with --annotations")
    labels = labels_by(labels, by)
    source = DataSource(join_goals(data, goals), None, ())
    if goals:
        source = source._replace(goals=read_goals(goals))
    if labels and labels != SAMPLE and parse_labels(labels).kind == TABLE:
        source = source._replace(read_keys=source.read_index())
    keys = None if source.read_keys is None else source.read_keys.keys
    opened = _open_labels(labels, keys) if labels else ()
    if labels and not annotations and _is_above(labels, place):
        told = f"expert labels: {labels}, above the data: name others with --annotations KIND:PATH"
        note = "; ".join(filter(None, [note, told]))
    if labels and not isinstance(opened, StoredAnnotations):
        settled_labels(labels, opened)
    if annotations and all(one.role is Role.SECONDARY for one in opened):
        raise no_label(annotations)
    if labels and labels != SAMPLE and (named := parse_labels(labels)).policy and opened:
        # The manifest says which policy it was, also where it is the default.
        labels = str(named)
        note = "; ".join(filter(None, [note, policy_note(labels, keys)]))
    if labels and labels.startswith(agentrewardbench.KIND) and not _has_splits(opened):
        opened = agentrewardbench.with_packaged_splits([*opened])
        if not _has_splits(opened):
            note = "; ".join(filter(None, [note, NO_SPLITS]))
    labels = SAMPLE if is_sample and not annotations else labels
    return source._replace(labels=labels, annotations=opened, note=note)


def _is_above(labels: str, data: str) -> bool:
    """Tell whether the labels are a file of ours that lies above the data, not in its folder."""
    file, place = parse_labels(labels).path, parse_source(data)[1]
    if file is None or place is None or file.name != LABELS:
        return False
    return file.parent.resolve() != (place if place.is_dir() else place.parent).resolve()


def _open_labels(spec: str, keys: KeyColumns | None) -> Sequence[Label]:
    """Open annotations; those in files of our format stay there where all of them are labels, and a
    table is joined to ``keys``."""
    if spec != SAMPLE:
        named = parse_labels(spec)
        if named.kind == store.KIND and named.path is not None and store.detect(named.path):
            labels = read_label_columns(named.path)
            if labels is not None and labels.are_all:
                return StoredAnnotations(labels)
    return tuple(open_annotations(spec, keys))


def _has_splits(annotations: Iterable[Label]) -> bool:
    return any(annotation.split for annotation in annotations)


def open_spec(spec: str) -> str:
    """Return what ``open_source`` takes for a DataSource's ``spec``: the sample lies where it is
    installed. Raises UserError for trajectories that were in memory."""
    if spec.startswith(MEMORY):
        raise UserError(
            f"{spec}: the run judged trajectories in memory, which its folder does not keep: name "
            "their files with --data KIND:PATH"
        )
    data, goals = split_goals(spec)
    return join_goals(resolve_sample(data), goals)


def recorded_data(run: Path) -> str:
    """Return what the manifest of a run names as its data, "" for nothing. A relative path is one
    in the folder that the run was started in, if it is there, else one in the current folder.
    Raises UserError for a manifest that cannot be read."""
    manifest = read_manifest(run)
    start, spec = start_of(run, manifest), manifest.get("data")
    if not isinstance(spec, str) or not spec or start in (None, Path.cwd()):
        return str(spec or "")
    data, goals = split_goals(spec)
    path = _path_in(data)
    if path is not None:
        data = data[: len(data) - len(path)] + _rebased(path, start)
    return join_goals(data, Path(_rebased(str(goals), start)) if goals else None)


def missing_data(run: Path) -> str:
    """Say why the data of a run cannot be opened here, and how it can; "" where it can. Raises
    UserError for a manifest that cannot be read."""
    spec = recorded_data(run)
    path = _path_in(split_goals(spec)[0])
    if path is not None and not Path(path).expanduser().exists():
        start = start_of(run, read_manifest(run))
        places = f"{start} nor in {Path.cwd()}" if start else f"{Path.cwd()}"
        looked = "is not there" if Path(path).is_absolute() else f"is neither in {places}"
        return f"{run}: its data {spec} {looked}: name it with --data KIND:PATH"
    try:
        open_on_this_machine(spec)
    except UserError as error:
        return f"{run}: {error}"
    return ""


def _path_in(data: str) -> str | None:
    """Return the path of data of ours, None where they have none: a kind alone, the sample, or
    trajectories in memory."""
    kind, colon, path = data.partition(":")
    if kind in KINDS and (colon or "/" not in data):
        return path or None
    return None if data == SAMPLE or data.startswith(MEMORY) or PLUGINS.split(data) else data


def _rebased(path: str, start: Path | None) -> str:
    there = (start or Path()) / Path(path).expanduser()
    return str(there) if there.exists() else path


def open_recorded(spec: str) -> str:
    """Open what a run's folder says of its data, as ``open_spec``. Raises UserError where that
    names a loader of the user's: code is run when the user names it, not when a folder does."""
    if (named := PLUGINS.split(spec)) and named[0] not in KINDS:
        raise UserError(f"the run's data is {spec}: name its loader yourself, with --data {spec}")
    return open_spec(spec)


def open_on_this_machine(spec: str) -> str:
    """Open what a run's folder says of its data, as ``open_recorded``. Raises UserError also for
    data that would be fetched."""
    opened = open_recorded(spec)
    if parse_source(opened)[1] is None:
        raise UserError("it would be fetched: name the copy on this machine with --data KIND:PATH")
    return opened


def _default_data() -> tuple[str, str]:
    copy = local_copy()
    if copy is not None:
        return f"agentrewardbench:{copy}", f"judging the AgentRewardBench copy in {copy}"
    return SAMPLE, (
        "judging the bundled sample, for there is no AgentRewardBench copy on this machine: "
        f"fetch it with  {FETCH_HINT}"
    )


def _labels_of(data: str) -> str | None:
    """Find the labels of the data: beside it, in the installed package, or on the Hub."""
    kind, path = parse_source(data)
    if path is not None:
        for folder in (path, *path.resolve().parents[:2]):
            labels = folder / LABELS
            if folder.is_dir() and (labels.is_file() or special_kind(labels)):
                return f"trajudge:{folder / LABELS}"
            if kind.startswith("agentrewardbench") and (folder / "annotations.csv").is_file():
                return f"agentrewardbench:{folder}"
    if path is not None and holds_labels(kind, path):
        return f"{kind}:{path}"
    if not kind.startswith("agentrewardbench"):
        return None
    try:
        open_annotations(agentrewardbench.KIND)
    except UserError as error:
        if path is None:
            return f"{agentrewardbench.KIND}:{annotation_table()}"
        raise UserError(
            f"--data {data}: no annotations.csv lies beside it; name the labels with "
            f"--annotations agentrewardbench:PATH, or {error}"
        ) from error
    return agentrewardbench.KIND
