"""Expert labels of trajectories: records and sources.

``open_annotations("KIND:PATH")`` reads a source; ``primary_labels`` returns the label of each
trajectory for scoring, ``open_labels`` that of a source. A source with several opinions or columns
names its policies to combine them: ``KIND/POLICY:PATH`` (``POLICIES`` of its module); any other
source has those of ``LABELS_BY``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from trajudge.annotations import store
from trajudge.annotations.model import (
    LABELS_BY,
    Label,
    Labels,
    LabelsBy,
    Role,
    SampleFrame,
    corrected_trajectories,
    label_conflicts,
    opinions_by_trajectory,
    primary_labels,
)
from trajudge.annotations.sources import KINDS
from trajudge.trajectories.model import TrajectoryKey
from trajudge.trajectories.plugins import PluginPoint, warn_once
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.util.errors import UserError
from trajudge.util.tables import folded, screen_width
from trajudge.util.terminal import count_of

TABLE = "table"
"""The kind of a table of the user's own, with any columns."""

__all__ = [
    "KINDS",
    "LABELS_BY",
    "Label",
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
    "policy_note",
    "primary_labels",
    "with_columns",
]

PLUGINS = PluginPoint(
    group="trajudge.annotations",
    option="--annotations",
    role="source",
    signature="def load(path)",
    gives="annotations",
)


class LabelSource(Protocol):
    """The interface of a module of ``annotations.sources`` with labels.

    Optional: ``POLICIES`` names its own label policies, the default first; ``load`` then takes one
    as its second argument. A ``load`` whose path has a default reads the labels without a path.
    """

    def load(self, path: Path, /) -> list[Label]: ...

    def detect(self, path: Path) -> bool: ...


class LabelSpec(NamedTuple):
    """The parts of ``KIND/POLICY:PATH``; ``policy`` is None if none is given and the kind has no
    default. ``columns`` of a table are those of ``--columns`` and ``--words``:
    ``table/POLICY[label=ok;gut=yes]:PATH``."""

    kind: str
    policy: str | None
    path: Path | None
    columns: str = ""

    def __str__(self) -> str:
        head = f"{self.kind}/{self.policy}" if self.policy else self.kind
        head += f"[{self.columns}]" if self.columns else ""
        return f"{head}:{self.path}" if self.path else head


def open_annotations(spec: str, keys: Iterable[TrajectoryKey] | None = None) -> list[Label]:
    """Read annotations from ``KIND:PATH`` or ``KIND/POLICY:PATH``, a bare ``PATH`` (the kind is
    detected), a bare ``KIND`` (the source's default path), ``FILE.py:PATH`` or ``sample``; with a
    policy of ``LABELS_BY`` one per trajectory. Raises UserError.

    ``keys`` are the trajectories to which a user's table is joined; a note describes how. Another
    note counts labels that an annotator contradicted, and differing second opinions.
    """
    named = parse_labels(spec)
    if named.kind not in KINDS:
        opened = list(PLUGINS.read(named.kind, named.path, of=(Label,)))
        return _settled(str(named.path), named.policy, opened)
    if named.kind == TABLE and named.path is not None:
        opened, report = _tables().load(named.path, named.columns, keys)
        if report:
            warn_once(report)
        return _settled(str(named.path), named.policy, opened)
    load: Any = _source(named.kind).load
    if named.path is None and signature(load).parameters["path"].default is Parameter.empty:
        raise UserError(f"annotations of kind {named.kind!r} need a path: write {named.kind}:PATH")
    places = () if named.path is None else (named.path,)
    if own_policies(named.kind):
        return cast(list[Label], load(*places, named.policy))
    opened = load(*places)
    return _settled(str(named.path or spec), named.policy, opened)


def _settled(spec: str, policy: str | None, opened: list[Label]) -> list[Label]:
    """Apply a policy of ``LABELS_BY``, and note once how contradicting annotations were
    resolved."""
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
    """Return ``spec`` (``--annotations``) with the policy of ``--labels-by``. Raises UserError
    if the source has its own label policies, another policy is given already, or there is no
    ``spec``."""
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


def with_columns(spec: str | None, columns: str | None, words: str | None) -> str | None:
    """Return ``spec`` (``--annotations``) with the columns and words of a table. Raises
    UserError if it is not a table."""
    if not columns and not words:
        return spec
    option = f"--columns {columns}" if columns else f"--words {words}"
    if spec is None:
        raise UserError(f"{option}: name the table of labels with --annotations FILE")
    is_file = Path(spec).is_file()
    named = LabelSpec(TABLE, None, Path(spec)) if is_file else parse_labels(spec)
    if named.kind != TABLE:
        raise UserError(
            f"{option}: {spec} is of kind {named.kind}, whose columns are known: leave it out, or "
            f"name a table, --annotations {TABLE}:FILE"
        )
    _tables().check_columns(columns, words)
    return str(named._replace(columns=";".join([columns or "", *([words] if words else [])])))


def _tables() -> Any:
    """Import the module of tables, which parsing a command line does not need."""
    return import_module(KINDS[TABLE])


def open_labels(
    spec: str, option: str = "--annotations", keys: Iterable[TrajectoryKey] | None = None
) -> Labels:
    """Read the labels of the source given by ``option``; a table is joined to ``keys``. Raises
    UserError, also for a source without labels."""
    labels = settled_labels(spec, open_annotations(spec, keys))
    if not labels:
        raise no_label(spec, option)
    return labels


def settled_labels(spec: str, annotations: Iterable[Label]) -> Labels:
    """Return the label of every trajectory. Raises UserError with the source's name if
    annotators differ."""
    try:
        return primary_labels(annotations)
    except UserError as error:
        raise UserError(f"{spec}: {error}") from None


def frame_of(spec: str | None) -> SampleFrame | None:
    """Return the frame from which the labels of a specification were drawn; None if their file
    has none. Raises UserError as ``parse_labels``."""
    named = None if spec is None else parse_labels(spec)
    if named is None or named.path is None or named.kind != store.KIND:
        return None
    return store.read_frame(named.path)


def no_label(spec: str, option: str = "--annotations") -> UserError:
    """Return the error of a source without labels."""
    return UserError(
        f"{option} {spec}: holds no label (an annotation whose role is primary or adjudicated): "
        "name another file"
    )


_TABLE = re.compile(
    rf"{TABLE}(?:/(?P<policy>[^\[:]*))?(?:\[(?P<columns>.*?)\])?:(?P<path>.+)", re.DOTALL
)


def parse_labels(spec: str) -> LabelSpec:
    """Parse an ``--annotations`` value, with the kind's default policy if it has none; ``sample``
    is the bundled sample's.

    Raises UserError for a path, a kind or a policy that does not exist.
    """
    if spec == SAMPLE:
        PLUGINS.warn_of_namesake(spec)
    spec = resolve_sample(spec, "labels.jsonl")
    if own := _TABLE.fullmatch(spec):
        policy = _known(spec, TABLE, own["policy"] or "")
        return LabelSpec(TABLE, policy, Path(own["path"]), own["columns"] or "")
    head, colon, path = spec.partition(":")
    kind, slash, policy = head.partition("/")
    if kind in KINDS and (colon or not (slash or Path(spec).exists())):
        PLUGINS.warn_of_namesake(kind)
        return LabelSpec(kind, _known(spec, kind, policy), Path(path) if path else None)
    place = Path(spec)
    source, _, by = head.rpartition("/")
    user_spec = f"{source}:{path}" if by in LABELS_BY else spec
    by = by if by in LABELS_BY else ""
    if not place.exists() and (named := PLUGINS.split(user_spec)):
        kind, path = named
        if kind == SAMPLE:
            PLUGINS.warn_of_namesake(kind, with_path=True)
        if not path or not Path(path).exists():
            raise UserError(f"--annotations {spec}: there is no file or folder {path!r}")
        return LabelSpec(kind, by or None, Path(path))
    if not place.exists():
        if place.suffix or "/" in spec:
            raise UserError(f"{spec}: no such file: give the path of the table with the labels")
        kinds = ", ".join(PLUGINS.names(_label_kinds()))
        raise UserError(
            f"{spec}: no such file, and none of the kinds of annotations ({kinds}): write KIND:PATH"
        )
    for kind in _label_kinds():
        if _source(kind).detect(place):
            return LabelSpec(kind, _known(spec, kind, ""), place)
    if place.suffix == ".py":
        raise UserError(f"--annotations {spec}: a source needs its labels: write {spec}:PATH")
    kinds = ", ".join(PLUGINS.names(_label_kinds()))
    raise UserError(f"{spec}: holds no annotations of a known kind ({kinds}): write KIND:PATH")


def _known(spec: str, kind: str, policy: str) -> str | None:
    known = label_policies(kind)
    if policy and policy not in known:
        raise UserError(
            f"{spec}: no label policy {policy!r} of {kind}: use one of {', '.join(known)}"
        )
    return policy or next(iter(own_policies(kind)), None)


def label_policies(kind: str) -> tuple[str, ...]:
    """Return the label policies of a kind: its own, the default first, or those of
    ``LABELS_BY``."""
    return own_policies(kind) or LABELS_BY


def own_policies(kind: str) -> tuple[str, ...]:
    """Return the kind's own label policies, the default first; empty for most kinds."""
    return tuple(getattr(_source(kind), "POLICIES", ())) if kind in KINDS else ()


def holds_labels(kind: str, path: Path) -> bool:
    """Return True if the files of trajectories of this kind also contain their labels."""
    return kind in _label_kinds() and _source(kind).detect(path)


def _source(kind: str) -> LabelSource:
    """Import the module of a kind. Raises UserError for one without labels."""
    module = import_module(KINDS[kind])
    if not hasattr(module, "load"):
        raise UserError(
            f"{kind} has no labels: use one of {', '.join(PLUGINS.names(_label_kinds()))}"
        )
    return cast(LabelSource, module)


def _label_kinds() -> list[str]:
    """Return the formats with labels; a table, which may have any columns, is detected last."""
    kinds = [kind for kind, name in KINDS.items() if hasattr(import_module(name), "load")]
    return sorted(kinds, key=lambda kind: kind == TABLE)


# The share of differing labels from which the choice of a policy is part of the result.
_NOISE = 0.05


def policy_note(spec: str, keys: Iterable[TrajectoryKey] | None = None) -> str:
    """Describe in one sentence how many labels the policy of ``KIND/POLICY:PATH`` gives, and how
    many other policies would change; "" without a policy. A table is joined to ``keys``."""
    named = parse_labels(spec)
    if named.policy is None:
        return ""
    labels = primary_labels(open_annotations(spec, keys))
    sentences = [f"labels: {named.policy}, {_counts(labels)}"]
    for other in label_policies(named.kind):
        if other in (named.policy, "each"):
            continue
        try:
            others = primary_labels(open_annotations(str(named._replace(policy=other)), keys))
        except UserError:  # the files of this policy were not fetched
            continue
        sentences.append(_difference(labels, other, others))
    return "; ".join(sentences)


def _counts(labels: Labels) -> str:
    decided = [label.success for label in labels.values() if label.success is not None]
    unsure = len(labels) - len(decided)
    left_out = f", {unsure} unsure left out" if unsure else ""
    return f"{count_of(len(decided), 'run')} ({sum(decided)} successful){left_out}"


def _difference(labels: Labels, other: str, others: Labels) -> str:
    pairs = [
        (label.success, others[key].success)
        for key, label in labels.items()
        if key in others and label.success is not None and others[key].success is not None
    ]
    differing = sum(one != another for one, another in pairs)
    text = f"{other} would give {_counts(others)}"
    if not pairs:
        return text
    share = differing / len(pairs)
    text += f" and differ on {differing} of {len(pairs)} ({share:.1%})"
    return text + (": the labels are noisy, name the policy" if share > _NOISE else "")
