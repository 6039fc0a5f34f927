"""Labels and published verdicts of each format: one module each, named after the format.

To add a format, add a module with ``detect(path)`` and ``load(path)`` for labels, or
``read_verdicts(path)`` for published verdicts, or both (see ``LabelSource``, ``VerdictSource``).
"""

from __future__ import annotations

from trajudge.trajectories.plugins import format_modules

KINDS = format_modules(__name__, __path__)
"""The formats by name, each with its module."""
