"""Rule-based evaluators and the tools that audit them.

``webarena/`` judges answers and stored pages as the original WebArena harness does; ``verified/``
holds answers and network traces to WebArena Verified's specifications by the typed ``values/``, in
our semantics and in the release's; the other modules ask what is wrong with such rules:
``weaknesses`` reads specifications, ``blind`` scores agents that never see a page, ``mutation``
tests whether near misses are caught. Everything works offline.
"""
