"""Judges beside each other, and beside trivial baselines."""

from __future__ import annotations

from trajudge.eval.scoring.records.names import OVERALL, Label, Rate
from trajudge.trajectories.model import Record
from trajudge.trajectories.util.terminal import count_of, listed


class MetricDifference(Record):
    """``first`` minus ``second`` in one metric, on the ``n`` trajectories that both judged.

    ``low`` and ``high`` are 95 % limits over tasks
    (``eval.stats.intervals.clustered_differences``), ``p`` the level at which they exclude zero and
    ``p_holm`` that corrected for the number of pairs; None where undefined. ``note`` says why.
    """

    benchmark: str = OVERALL
    label: Label = "success"
    metric: Rate
    first: str
    second: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    note: str = ""


class McNemarResult(Record):
    """McNemar's exact test of who is right more often (accuracy; the two are swapped in
    whole tasks), and ``improvement``, the probability that on a task drawn at random a verdict of
    ``first`` is better than one of ``second`` (a tie counts half), with 95 % limits over tasks."""

    benchmark: str = OVERALL
    label: Label = "success"
    first: str
    second: str
    n: int
    only_first_right: int
    only_second_right: int
    p: float
    p_holm: float
    improvement: float | None = None
    improvement_low: float | None = None
    improvement_high: float | None = None


class Ranking(Record):
    """Judges by one metric, best first, those whose rate is ``undefined`` last; ``equal`` are those
    whose rate is exactly that of the judge before. ``ties`` are the longest runs of neighbours of
    whom no two are told apart (Demšar 2006's bars), then the other pairs that are not, ``apart``
    the pairs that are."""

    benchmark: str = OVERALL
    label: Label = "success"
    metric: Rate
    judges: tuple[str, ...]
    ties: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, str], ...]
    undefined: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    def order(self, most: int | None = None) -> str:
        """Write the judges from best to worst, and apart from them those that have no place; of
        more than ``most`` the first."""
        places = [judge for judge in self.judges if judge not in self.undefined]
        signed = [(" = " if judge in self.equal else " > ") + judge for judge in places]
        unplaced = f"undefined: {listed(self.undefined, most)}" if self.undefined else ""
        placed = listed(signed, most, sign="")[len(" > ") :]
        return "; ".join(filter(None, (placed, unplaced)))

    def tied(self, most: int | None = None) -> str:
        """Write the judges that are not told apart, without a sign that the order gives another
        meaning; empty where all are. Of more than ``most`` names (at least two) the first, of
        half as many groups."""
        names = None if most is None else max(most, 2)
        groups = [
            f"{', '.join(tie[:-1])} and {tie[-1]}"
            if names is None or len(tie) <= names
            else listed(tie, names)
            for tie in self.ties
        ]
        shown = len(groups) if names is None else names // 2
        more = [f"and {count_of(len(groups) - shown, 'more group')}"] * (len(groups) > shown)
        return "; ".join([*groups[:shown], *more])

    def puts_above(self, first: str, second: str) -> bool:
        """Tell whether ``first`` stands above ``second``, not level with it."""
        before, after = self.judges.index(first), self.judges.index(second)
        return any(judge not in self.equal for judge in self.judges[before + 1 : after + 1])


class Comparison(Record):
    """Every pair of judges on every label that both were asked for, over all benchmarks first."""

    differences: tuple[MetricDifference, ...] = ()
    discordances: tuple[McNemarResult, ...] = ()
    rankings: tuple[Ranking, ...] = ()


class EqualRecall(Record):
    """A judge's precision less that of a trivial ``baseline`` which is made to accept as many of
    the same ``n`` trajectories' successes: at the judge's ``recall``.

    The baseline accepts by its score, or else by its verdict, from the threshold at which its
    recall is the judge's; of the trajectories at the threshold a share. ``low`` and ``high`` are
    95 % limits over tasks that take this threshold for given; None where undefined.
    """

    judge: str
    baseline: str
    n: int
    recall: float
    precision: float
    baseline_precision: float
    difference: float
    low: float | None
    high: float | None
