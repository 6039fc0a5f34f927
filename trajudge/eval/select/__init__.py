"""Choose the judge and threshold that filter trajectories for fine-tuning (``trajudge select``).

``plan`` freezes the candidates before a label is read, ``evidence`` brings scores and labels
together, ``rates`` tests every candidate against the target, ``transport`` finds whether the choice
holds on another benchmark, ``decide`` draws the conclusion, which ``text`` words and draws.
"""
