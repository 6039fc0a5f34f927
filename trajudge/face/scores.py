"""Scores and comparisons as data: frames, tables in a notebook, plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trajudge.eval.reporting.caveats import SHOWN, notes
from trajudge.eval.reporting.comparison_tables import comparison_screen, comparison_tables
from trajudge.eval.reporting.finding import finding
from trajudge.eval.reporting.results import COLUMNS, result_rows
from trajudge.eval.reporting.summary import summary, summary_parts
from trajudge.eval.reporting.tables import tables
from trajudge.eval.scoring import records
from trajudge.face.html import folded_html, screen_html, tables_html
from trajudge.trajectories.util.errors import MissingExtra, UserError
from trajudge.trajectories.util.terminal import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


SHOWN_BELOW = 7  # coverage, cost, and five warnings; the others stand with all tables

_LABELS = "labels=KIND:PATH (of the sample's own trajectories: labels='sample')"


class Scores(records.ScoreReport):
    """Scores of judges against expert labels, with the rule-based baseline.

    ``scores`` holds a record per judge, benchmark and label; ``to_frame`` the same as a table.
    """

    @classmethod
    def of(cls, scores: records.ScoreReport) -> Scores:
        """Return the same scores with a frame, plots and HTML for notebooks."""
        return cls.model_construct(**dict(scores))

    def to_frame(self) -> DataFrame:
        """Return a row per judge (``evaluator`` tells the baseline), benchmark, agent and label:
        rates as fractions with the limits of their 95 % intervals (``_low``, ``_high``)."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        return DataFrame(result_rows(self), columns=list(COLUMNS))

    def plot(
        self, kind: Literal["precision", "success_rate"] = "precision", axes: Axes | None = None
    ) -> Axes:
        """Draw precision per benchmark, or every agent's success rate, with intervals.

        ``axes`` are those to draw into (None: new ones). Raises MissingExtra without matplotlib,
        UserError if the scores hold nothing to draw.
        """
        try:
            from matplotlib import pyplot  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra("matplotlib", "plots", "Scores.plot") from error
        from trajudge.eval.reporting.plots import draw_precision, draw_success_rates  # noqa: PLC0415

        draw = {"precision": draw_precision, "success_rate": draw_success_rates}.get(kind)
        if draw is None:
            raise UserError(f"plot: kind is {kind!r}: choose from precision, success_rate")
        if axes is None:
            axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")[1]
        if not draw(axes, self):
            raise UserError(f"plot {kind!r}: nothing is scored: give score the experts' labels")
        return axes

    def __repr__(self) -> str:
        return f"<Scores: {finding(self, None)[0]}; print() shows them>"

    def __str__(self) -> str:
        """Return the first screen of ``trajudge score``: finding, table, what weakens it."""
        rest, full = "All tables: to_frame()", "to_frame()"
        return summary(self, rest=rest, full=full, option=_LABELS).rstrip("\n")

    def _repr_html_(self) -> str:
        above, table, below = summary_parts(self, option=_LABELS)
        shown = tables_html([table] if table else [], below[:SHOWN_BELOW], above=above)
        everything = tables_html(tables(self), list(notes(self)))
        return shown + folded_html(everything)


class JudgeComparison(records.Comparison):
    """Judges against each other: every pair's differences with intervals and corrected p-values.

    ``warnings`` say what speaks against the comparison: a judge in several versions.
    """

    warnings: tuple[str, ...] = ()

    def to_frame(self) -> DataFrame:
        """Return a row per pair of judges, benchmark, label and metric: ``difference`` is that of
        ``first`` minus ``second``, with its 95 % limits and ``p_holm``."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        columns = list(records.MetricDifference.model_fields)
        return DataFrame([one.model_dump() for one in self.differences], columns=columns)

    def __repr__(self) -> str:
        judges = sorted({name for one in self.differences for name in (one.first, one.second)})
        return f"<JudgeComparison: {listed(judges, SHOWN)}; print() shows it>"

    def __str__(self) -> str:
        """Return one screen: the order of the judges, their differences overall, the warnings."""
        return comparison_screen(self, self.warnings, option=_LABELS).rstrip("\n")

    def _repr_html_(self) -> str:
        everything = tables_html(comparison_tables(self), list(self.warnings))
        return screen_html(str(self)) + folded_html(everything)
