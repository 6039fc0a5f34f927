"""Labels and published verdicts of each format: one module each, whose file name is the format's.

Adding a format is adding a module here with ``detect(path)`` and ``load(path)`` for labels, or
``read_verdicts(path)`` for published verdicts, or both (see ``LabelSource``, ``VerdictSource``).
"""

from __future__ import annotations

from trajudge.trajectories.plugins import format_modules

KINDS = format_modules(__name__, __path__)
"""The formats by name, each with its module."""
