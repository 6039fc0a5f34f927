"""Rule-based evaluators and the tools that audit them.

``dialects`` declares the kinds of task files. ``webarena/`` judges answers and stored pages as the
harnesses of WebArena and its descendants do; ``verified/`` holds answers and network traces
(``har/``) to WebArena Verified's specifications by the typed ``values/``, in our semantics and in
the release's. ``audit/`` asks what is wrong with such rules: it lints specifications, scores agents
that never see a page, and tests whether near misses are caught. Everything works offline.
"""
