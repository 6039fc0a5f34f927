"""The release mode beside the installed package ``webarena-verified`` 1.2.3, case by case.

The package lives in an environment of its own, made once from ``package.txt``; ``worker.py`` runs
there. Cases are drawn from a seed and judged by both sides.
"""
