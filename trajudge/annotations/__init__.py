"""What experts said of trajectories: records and sources.

``open_annotations("KIND:PATH")`` reads a source; ``primary_labels`` gives the mapping from
trajectory to label that everything is scored against, ``open_labels`` that of a source. A source
with several opinions or columns names the ways to make one label of them: ``KIND/POLICY:PATH``
(``POLICIES`` of its module).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from trajudge.annotations.model import Annotation, Labels, Role, primary_labels
from trajudge.annotations.user_sources import DOOR, load_with
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.trajectories.util.errors import UserError

__all__ = [
    "KINDS",
    "Annotation",
    "Labels",
    "Role",
    "holds_labels",
    "label_policies",
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
    """What ``KIND/POLICY:PATH`` names; ``policy`` is None for a kind that has none."""

    kind: str
    policy: str | None
    path: Path | None

    def __str__(self) -> str:
        head = f"{self.kind}/{self.policy}" if self.policy else self.kind
        return f"{head}:{self.path}" if self.path else head


def open_annotations(spec: str) -> list[Annotation]:
    """Read annotations from ``KIND:PATH`` or ``KIND/POLICY:PATH``, a bare ``PATH`` (kind detected),
    a bare ``KIND`` (the source's own place), ``FILE.py:PATH`` or ``sample``. Raises UserError."""
    named = parse_labels(spec)
    if named.kind not in KINDS and named.path is not None:
        return load_with(named.kind, named.path)
    if named.policy is None:
        return _source(named.kind).load(named.path)
    return _policies(named.kind).load(named.path, named.policy)


def open_labels(spec: str, option: str = "--annotations") -> Labels:
    """Read the labels of the source that a user names with ``option``. Raises UserError, also for
    one that holds none."""
    labels = primary_labels(open_annotations(spec))
    if not labels:
        raise no_label(spec, option)
    return labels


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
    if not place.exists() and (named := DOOR.split(spec)):
        kind, path = named
        if kind == SAMPLE:
            DOOR.warn_of_name(kind)
        if not path or not Path(path).exists():
            raise UserError(f"--annotations {spec}: there is no file or folder {path!r}")
        return LabelSpec(kind, None, Path(path))
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
            f"{spec}: no label policy {policy!r} of {kind}: "
            + (f"use one of {', '.join(known)}" if known else f"it has none; write {kind}:PATH")
        )
    return policy or next(iter(known), None)


def label_policies(kind: str) -> tuple[str, ...]:
    """Name the label policies of a kind, the default first; none where a trajectory has its one
    label."""
    return tuple(getattr(_source(kind), "POLICIES", ())) if kind in KINDS else ()


def holds_labels(kind: str, path: Path) -> bool:
    """Tell whether trajectories of this kind have their labels in the same files."""
    return kind in KINDS and _source(kind).detect(path)


def _policies(kind: str) -> PolicySource:
    return cast(PolicySource, import_module(KINDS[kind]))


def _source(kind: str) -> AnnotationSource:
    return cast(AnnotationSource, import_module(KINDS[kind]))
