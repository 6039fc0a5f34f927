"""The file of canaries: what a judge was asked of each run, by hash, and what it said twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import to_json

from trajudge.robustness.measures.pairing import judged_run
from trajudge.robustness.measures.pairs import IDENTITY, verdicts_of
from trajudge.robustness.measures.report import read_variants
from trajudge.trajectories.model import Record, TrajectoryKey
from trajudge.util.errors import UserError
from trajudge.util.files import read_utf8, save_bytes
from trajudge.util.validation import first_error


class Canary(Record):
    """One line: ``requests`` are the hashes of what the judge sent about the run as it was (none:
    it asks no model), ``verdicts`` what it said then, and when the same was drawn again."""

    judge: str
    key: TrajectoryKey
    requests: tuple[str, ...] = ()
    verdicts: tuple[bool, bool]


Canaries = Mapping[str, Mapping[TrajectoryKey, Canary]]


def frozen(folders: Sequence[Path], attacked: Path) -> list[Canary]:
    """Return a canary of each run, and each judge, of which there are both verdicts. Raises
    UserError where there is none."""
    identities = {
        one.key: one.of for one in read_variants(attacked) if one.perturbation == IDENTITY
    }
    canaries = []
    for run in map(judged_run, folders):
        for name, judgments in () if run.sources_only else run.judgments.items():
            said = verdicts_of(judgments)
            for again, source in identities.items():
                if source not in said or again not in said:
                    continue
                clean, second = said[source], said[again].success
                if clean.success is not None and second is not None:
                    asked = tuple(sorted(clean.requests))
                    both = (clean.success, second)
                    canaries.append(Canary(judge=name, key=source, requests=asked, verdicts=both))
    if not canaries:
        raise UserError(
            "--drift: no run has two verdicts of one judge: leave the perturbation identity in"
        )
    return canaries


def write_canaries(file: Path, canaries: Sequence[Canary]) -> None:
    """Write the file, a line each. Raises UserError."""
    save_bytes(file, b"".join(to_json(one) + b"\n" for one in canaries))


def read_canaries(file: Path) -> Canaries:
    """Read the file, by judge and run. Raises UserError naming the line."""
    found: dict[str, dict[TrajectoryKey, Canary]] = {}
    try:
        lines = read_utf8(file).splitlines()
    except OSError as error:
        raise UserError(
            f"--drift {file}: cannot be read ({error.strerror}): name another file"
        ) from error
    for number, line in enumerate(lines, start=1):
        try:
            one = Canary.model_validate_json(line)
        except ValidationError as error:
            raise UserError(
                f"--drift {file}: line {number} is damaged ({first_error(error, 'the line')}): "
                "restore the file from a copy, or remove it, so that it is written anew"
            ) from error
        found.setdefault(one.judge, {})[one.key] = one
    if not found:
        raise UserError(f"--drift {file}: is empty: remove it, so that it is written anew")
    return found
