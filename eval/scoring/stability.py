"""What the judgments of a run say beside their scores: how steady, and what a cascade saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from trajudge.judges.methods.composed import SECOND_ASKED
from trajudge.judges.model import Judgment, Status
from trajudge.trajectories.model import TrajectoryKey


def stability_notes(judgments: Sequence[Judgment], trajectories: int) -> list[str]:
    """Sentences about one judge of so many trajectories for the notes below the tables."""
    flips = _flips(judgments) if len(judgments) > trajectories else []
    return [*flips, *_cascade(judgments)]


def flip_rate(judgments: Iterable[Judgment]) -> tuple[int, int]:
    """(trajectories whose samples disagree on success, trajectories with two verdicts or more);
    failed samples are left out."""
    verdicts: dict[TrajectoryKey, list[bool]] = defaultdict(list)
    for judgment in judgments:
        if judgment.status is Status.OK and judgment.success is not None:
            verdicts[judgment.key].append(judgment.success)
    repeated = [samples for samples in verdicts.values() if len(samples) > 1]
    return sum(len(set(samples)) > 1 for samples in repeated), len(repeated)


def _flips(judgments: Sequence[Judgment]) -> list[str]:
    flipped, repeated = flip_rate(judgments)
    if not repeated:
        return []
    rate = f"{100 * flipped / repeated:.1f} %"
    return [
        f"{judgments[0].judge}: samples disagree on {flipped} of {repeated} trajectories "
        f"(flip rate {rate})"
    ]


def _cascade(judgments: Sequence[Judgment]) -> list[str]:
    """Asked and spared; what was spared is priced by the mean of what was asked."""
    settled = [j for j in judgments if SECOND_ASKED in j.scores]
    if not settled:
        return []
    asked = [j for j in settled if j.scores[SECOND_ASKED]]
    spared = len(settled) - len(asked)
    shares = f"{len(asked)} of {len(settled)} trajectories"
    line = f"{judgments[0].judge}: the second member was asked on {shares}"
    # The ledger names the member before the stage: what the first one did not ask is the second's.
    first = {call.stage.split(" ")[0] for j in settled if j not in asked for call in j.calls}
    costs = [call.cost for j in asked for call in j.calls if call.stage.split(" ")[0] not in first]
    if asked and spared and costs and None not in costs:
        spent = sum(cost for cost in costs if cost is not None)
        line += (
            f"; it cost ${spent:.4f}, sparing the others about ${spent / len(asked) * spared:.4f}"
        )
    return [line]
