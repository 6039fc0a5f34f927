"""What experts said of trajectories: records and sources.

``open_annotations("KIND:PATH")`` reads a source; ``primary_labels`` gives the mapping from
trajectory to label that everything is scored against, ``open_labels`` that of a source. A source
with several opinions or columns names the ways to make one label of them: ``KIND/POLICY:PATH``
(``POLICIES`` of its module); any other source takes those of ``LABELS_BY``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from trajudge.annotations import store
from trajudge.annotations.model import (
    LABELS_BY,
    Annotation,
    Labels,
    LabelsBy,
    Role,
    SampleFrame,
    corrected_trajectories,
    label_conflicts,
    opinions_by_trajectory,
    primary_labels,
)
from trajudge.annotations.user_sources import DOOR, load_with
from trajudge.trajectories.plugins import warn_once
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.util.errors import UserError
from trajudge.util.tables import folded, screen_width
from trajudge.util.terminal import count_of

__all__ = [
    "KINDS",
    "LABELS_BY",
    "Annotation",
    "Labels",
    "LabelsBy",
    "Role",
    "frame_of",
    "holds_labels",
    "label_policies",
    "labels_by",
    "no_label",
    "open_annotations",
    "open_labels",
    "parse_labels",
    "primary_labels",
]

KINDS = {
    "agentrewardbench": "trajudge.annotations.agentrewardbench",
    "cuaverifierbench": "trajudge.annotations.cuaverifierbench",
    "online-mind2web": "trajudge.annotations.online_mind2web",
    "toolcalls": "trajudge.annotations.toolcalls",
    "trajudge": "trajudge.annotations.store",
}


class AnnotationSource(Protocol):
    """What a module of ``KINDS`` offers."""

    def load(self, path: Path | None = None) -> list[Annotation]: ...

    def detect(self, path: Path) -> bool: ...


class PolicySource(Protocol):
    """One with label policies: their names, the default first."""

    POLICIES: tuple[str, ...]

    def load(self, path: Path | None = None, policy: str | None = None) -> list[Annotation]: ...


class LabelSpec(NamedTuple):
    """What ``KIND/POLICY:PATH`` names; ``policy`` is None where none is named and the kind has no
    default."""

    kind: str
    policy: str | None
    path: Path | None

    def __str__(self) -> str:
        head = f"{self.kind}/{self.policy}" if self.policy else self.kind
        return f"{head}:{self.path}" if self.path else head


def open_annotations(spec: str) -> list[Annotation]:
    """Read annotations from ``KIND:PATH`` or ``KIND/POLICY:PATH``, a bare ``PATH`` (kind detected),
    a bare ``KIND`` (the source's own place), ``FILE.py:PATH`` or ``sample``; under a policy of
    ``LABELS_BY`` one a trajectory. Raises UserError.

    A note says how many labels an annotator contradicted, and where second opinions differ.
    """
    named = parse_labels(spec)
    if named.kind not in KINDS and named.path is not None:
        opened = load_with(named.kind, named.path)
    elif own_policies(named.kind):
        return _policies(named.kind).load(named.path, named.policy)
    else:
        opened = _source(named.kind).load(named.path)
    return _settled(str(named.path or spec), named.policy, opened)


def _settled(spec: str, policy: str | None, opened: list[Annotation]) -> list[Annotation]:
    """Apply a policy of ``LABELS_BY``, and say once what was chosen among contradicting lines."""
    if len({each.key for each in opened}) == len(opened):
        return opened
    if corrected := corrected_trajectories(opened):
        warn_once(
            f"note: {spec}: an annotator labelled {count_of(corrected, 'trajectory')} twice, "
            "differently: the last label counts\n"
        )
    if policy is not None:
        return [*primary_labels(opened, cast(LabelsBy, policy)).values()]
    conflicts = label_conflicts(opinions_by_trajectory(opened))
    if conflicts.differing and not conflicts.undeclared:
        note = (
            f"note: {spec}: annotators differ on {conflicts.differing} of "
            f"{count_of(conflicts.several, 'trajectory')} that several labelled: the primary label "
            "counts (--labels-by)"
        )
        warn_once("".join(line + "\n" for line in folded(note, screen_width())))
    return opened


def labels_by(spec: str | None, by: LabelsBy | None) -> str | None:
    """Return ``spec`` (``--annotations``) with the policy that ``--labels-by`` names. Raises
    UserError where the source has label policies of its own, another is named already, or there is
    no ``spec`` to apply it to."""
    if by is None:
        return spec
    if spec is None:
        raise UserError(
            f"--labels-by {by}: a run holds one label a trajectory: name the annotators' labels "
            "with --annotations KIND:PATH"
        )
    named = parse_labels(spec)
    if own := own_policies(named.kind):
        raise UserError(
            f"--labels-by {by}: {named.kind} has label policies of its own: write  --annotations "
            f"{named.kind}/POLICY:PATH  with one of {', '.join(own)}"
        )
    if named.policy not in (None, by):
        raise UserError(f"--labels-by {by}: --annotations {spec} names another: leave one out")
    return str(named._replace(policy=by))


def open_labels(spec: str, option: str = "--annotations") -> Labels:
    """Read the labels of the source that a user names with ``option``. Raises UserError, also for
    one that holds none."""
    labels = settled_labels(spec, open_annotations(spec))
    if not labels:
        raise no_label(spec, option)
    return labels


def settled_labels(spec: str, annotations: Iterable[Annotation]) -> Labels:
    """Return the label of every trajectory. Raises UserError that names the source where its
    annotators differ."""
    try:
        return primary_labels(annotations)
    except UserError as error:
        raise UserError(f"{spec}: {error}") from None


def frame_of(spec: str | None) -> SampleFrame | None:
    """Read what the labels of a specification were drawn from; None where their file does not say
    so. Raises UserError as ``parse_labels``."""
    named = None if spec is None else parse_labels(spec)
    if named is None or named.path is None or named.kind != store.KIND:
        return None
    return store.read_frame(named.path)


def no_label(spec: str, option: str = "--annotations") -> UserError:
    """Make the error of a source that a user names and that holds no label."""
    return UserError(
        f"{option} {spec}: holds no label (an annotation whose role is primary or adjudicated): "
        "name another file"
    )


def parse_labels(spec: str) -> LabelSpec:
    """Parse an ``--annotations`` value, with the kind's default policy where it names none;
    ``sample`` is the bundled one's.

    Raises UserError for a path, a kind or a policy that is not there.
    """
    if spec == SAMPLE:
        DOOR.warn_of_namesake(spec)
    spec = resolve_sample(spec, "labels.jsonl")
    head, colon, path = spec.partition(":")
    kind, slash, policy = head.partition("/")
    if kind in KINDS and (colon or not (slash or Path(spec).exists())):
        DOOR.warn_of_namesake(kind)
        return LabelSpec(kind, _known(spec, kind, policy), Path(path) if path else None)
    place = Path(spec)
    source, _, by = head.rpartition("/")
    user_spec = f"{source}:{path}" if by in LABELS_BY else spec
    by = by if by in LABELS_BY else ""
    if not place.exists() and (named := DOOR.split(user_spec)):
        kind, path = named
        if kind == SAMPLE:
            DOOR.warn_of_name(kind)
        if not path or not Path(path).exists():
            raise UserError(f"--annotations {spec}: there is no file or folder {path!r}")
        return LabelSpec(kind, by or None, Path(path))
    if not place.exists():
        kinds = ", ".join(DOOR.names(KINDS))
        raise UserError(
            f"{spec}: no such file, and none of the kinds of annotations ({kinds}): write KIND:PATH"
        )
    for kind in KINDS:
        if _source(kind).detect(place):
            return LabelSpec(kind, _known(spec, kind, ""), place)
    if place.suffix == ".py":
        raise UserError(f"--annotations {spec}: a source needs its labels: write {spec}:PATH")
    raise UserError(
        f"{spec}: holds no annotations of a known kind ({', '.join(DOOR.names(KINDS))}): write "
        "KIND:PATH"
    )


def _known(spec: str, kind: str, policy: str) -> str | None:
    known = label_policies(kind)
    if policy and policy not in known:
        raise UserError(
            f"{spec}: no label policy {policy!r} of {kind}: use one of {', '.join(known)}"
        )
    return policy or next(iter(own_policies(kind)), None)


def label_policies(kind: str) -> tuple[str, ...]:
    """Name the label policies of a kind: its own, the default first, or those of ``LABELS_BY``."""
    return own_policies(kind) or LABELS_BY


def own_policies(kind: str) -> tuple[str, ...]:
    """Name the label policies that only this kind has, the default first; none of most kinds."""
    return tuple(getattr(_source(kind), "POLICIES", ())) if kind in KINDS else ()


def holds_labels(kind: str, path: Path) -> bool:
    """Tell whether trajectories of this kind have their labels in the same files."""
    return kind in KINDS and _source(kind).detect(path)


def _policies(kind: str) -> PolicySource:
    return cast(PolicySource, import_module(KINDS[kind]))


def _source(kind: str) -> AnnotationSource:
    return cast(AnnotationSource, import_module(KINDS[kind]))
