"""What experts said of trajectories: records and sources.

``open_annotations("KIND:PATH")`` reads a source; ``primary_labels`` gives the mapping from
trajectory to label that everything is scored against.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from trajudge.annotations.model import Annotation, Labels, Role, primary_labels
from trajudge.trajectories.util.errors import UserError

__all__ = [
    "KINDS",
    "Annotation",
    "Labels",
    "Role",
    "open_annotations",
    "primary_labels",
]

KINDS = {
    "agentrewardbench": "trajudge.annotations.agentrewardbench",
    "online-mind2web": "trajudge.annotations.online_mind2web",
    "trajudge": "trajudge.annotations.store",
}


class _Source(Protocol):
    def load(self, path: Path | None = None) -> list[Annotation]: ...

    def detect(self, path: Path) -> bool: ...


def open_annotations(spec: str) -> list[Annotation]:
    """Read annotations from ``KIND:PATH``, a bare ``PATH`` (kind detected), a bare ``KIND`` (the
    source's own place) or ``sample``. Raises UserError."""
    if spec == "sample":
        from trajudge.trajectories.sample import sample_path  # noqa: PLC0415 - only where it is used

        spec = f"trajudge:{sample_path() / 'labels.jsonl'}"
    kind, colon, path = spec.partition(":")
    if kind in KINDS and (colon or not Path(spec).exists()):
        return _source(kind).load(Path(path) if path else None)
    place = Path(spec)
    if not place.exists():
        raise UserError(
            f"{spec}: no such file, and none of the kinds of annotations "
            f"({', '.join(KINDS)}): write KIND:PATH"
        )
    for candidate in map(_source, KINDS):
        if candidate.detect(place):
            return candidate.load(place)
    raise UserError(
        f"{spec}: holds no annotations of a known kind ({', '.join(KINDS)}): write KIND:PATH"
    )


def _source(kind: str) -> _Source:
    return cast(_Source, import_module(KINDS[kind]))
