"""Robustness of judges: verdicts on trajectories with a known change.

A ``Perturbation`` (``model``) changes a trajectory in a way whose effect on the truth is known;
``catalogue`` lists all of them, ``apply`` applies one and validates the result.
"""
