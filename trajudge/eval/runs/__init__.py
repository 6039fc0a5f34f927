"""Runs of judges. The way of one: ``settings`` (what is asked for) → ``plan`` (judge, model, data,
labels, folder) → ``execution`` (the runs of a command) → ``session`` (open the folder, judge what
is left, score) → ``outputs``.

``jobs`` are the judgments to make and the workers that make them, ``pricing`` what a run would
cost, ``progress`` its line; ``batches`` and ``ray`` are sessions that judge otherwise.
"""
