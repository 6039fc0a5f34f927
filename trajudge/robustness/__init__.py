"""Robustness: what a judge's verdict survives.

A ``Perturbation`` changes a trajectory in a way whose effect on the truth is known (``model``);
``apply`` carries it out, ``catalogue`` lists all of them, ``validity`` checks what was done.
"""
