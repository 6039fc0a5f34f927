"""The catalogue: every perturbation by name, built once from the entries in ``families``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from hashlib import sha256
from inspect import signature
from typing import Any

import orjson

from trajudge.robustness.apply import compose
from trajudge.robustness.families import FAMILIES, family_file
from trajudge.robustness.injections import sampled_injections
from trajudge.robustness.model import (
    STEP_CHANNELS,
    Attacker,
    Channel,
    LabelQuestion,
    Perturbation,
    Relation,
    Transform,
)
from trajudge.robustness.transforms import TRANSFORMATIONS, recorded_again
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.tables import Table

# Groups of channels, by their name in entries.
_TOGETHER = {"step": STEP_CHANNELS, "run": STEP_CHANNELS | {Channel.ANSWER, Channel.METADATA}}


@cache
def catalogue() -> Mapping[str, Perturbation]:
    """Return every perturbation by name, by family; within a family re-recorded ones follow
    edits, and perturbations of the call are last."""
    made = [one for name in FAMILIES for one in _family(name)]
    made.sort(key=lambda one: (one.asking is not None, one.grade == "native"))
    return {one.name: one for one in made}


def _family(file: str) -> Iterator[Perturbation]:
    content = family_file(file)
    if file == "injections":
        yield from sampled_injections()
    for name, entry in content["perturbations"].items():
        kind = content["kinds"][entry["like"]] if "like" in entry else {}
        fields = {key: content[key] for key in ("family", "version", "source")} | kind | entry
        try:
            yield _perturbation(name, fields)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"families/{file}.yaml, {name}: {error}") from error


def _perturbation(name: str, entry: Mapping[str, Any]) -> Perturbation:
    """Build a perturbation from its entry. Raises KeyError, TypeError or ValueError for an
    invalid one."""
    fields = {key: value for key, value in entry.items() if key not in ("like", "truth", "with")}
    relations = _relations(entry.get("truth", {}))
    arguments = entry.get("with", {})
    if entry.get("grade") == "native":
        change: Transform = partial(recorded_again, variant=name, relations=relations, **arguments)
    else:
        function = TRANSFORMATIONS[fields.pop("change")]
        signature(function).bind(None, None, **arguments)
        change = partial(function, **arguments)
    channels = frozenset(
        channel
        for word in fields["channels"]
        for channel in (_TOGETHER[word] if word in _TOGETHER else (Channel(word),))
    )
    made = {"name": name, "relations": relations, "change": change, "channels": channels}
    return Perturbation.model_validate(fields | made)


def _relations(truth: Mapping[str, bool | str]) -> dict[LabelQuestion, Relation]:
    """Parse the effect on the truth: ``true``, ``false`` or ``drops``; other questions keep
    theirs."""
    named = {LabelQuestion(name): Relation(str(word).lower()) for name, word in truth.items()}
    return dict.fromkeys(LabelQuestion, Relation.KEEP) | named


def catalogue_version() -> str:
    """Return a hash of the perturbations and their versions."""
    known = sorted((name, one.version) for name, one in catalogue().items())
    return f"v1-{sha256(orjson.dumps(known)).hexdigest()[:8]}"


def core_suite() -> list[str]:
    """List the names of ``--suite core``."""
    rows: Any = family_file("core")
    return [name for row in rows for name in row]


def chosen(names: Sequence[str]) -> list[Perturbation]:
    """Return perturbations by name; ``A+B`` composes two. Raises UserError for an unknown one."""
    return [reduce(compose, map(_named, name.split("+"))) for name in names]


def _named(name: str) -> Perturbation:
    if (known := catalogue().get(name)) is None:
        raise UserError(
            f"--perturbation {name}: is unknown{did_you_mean(name, catalogue()) or ':'} "
            f"trajudge data perturb --list  shows all {len(catalogue())}"
        )
    return known


def find_perturbation(name: str) -> Perturbation | None:
    """Return a perturbation of the catalogue or a composition; None for another name."""
    try:
        (one,) = chosen([name])
    except UserError:
        return None
    return one


@cache
def twins() -> frozenset[str]:
    """Return the benign twins of attacks, by attack."""
    return frozenset(one.twin for one in catalogue().values() if one.twin)


def families() -> list[Table]:
    """Return a table of the families: perturbations, attackers and changed channels."""
    head = ("perturbation", "attack by", "what is changed")
    titles = {family_file(name)["family"]: family_file(name)["title"] for name in FAMILIES}
    rows: dict[str, list[tuple[str, str, str]]] = {family: [] for family in titles}
    for one in catalogue().values():
        by = "" if one.attacker is Attacker.NONE else one.attacker.value
        rows[one.family].append((one.name, by, one.summary))
    return [Table(f"{key}: {titles[key]}", head, rows[key], names=3) for key in rows]
