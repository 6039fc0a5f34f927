"""Choosing the judge and threshold that filter trajectories for fine-tuning.

``plan`` freezes the candidates before a label is read, ``evidence`` brings scores and labels
together, ``rates`` and ``correction`` test every candidate against the target, ``transport`` says
whether the choice transfers to another benchmark, ``decide`` draws the conclusion, which
``text`` words and ``plot`` draws. ``trajudge select`` is ``command``.
"""
