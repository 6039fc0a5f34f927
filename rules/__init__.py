"""Rule-based evaluators and the tools that audit them.

``webarena/`` judges answers and stored pages as the original WebArena harness does; the other
modules ask what is wrong with such rules: ``weaknesses`` reads the specifications, ``naive`` runs
agents that do nothing, ``mutation`` asks whether near misses are caught. Everything works offline.
"""
