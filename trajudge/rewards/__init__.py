"""Judges as rewards: a value for a trainer, or an abstention, never a number for a failure.

``reward`` is the record, ``shaping`` turns a judgment into a value, ``function`` adds calibration,
decision and version, ``rewarder`` asks the judge, ``abstaining`` is what a group makes of members
without a value, ``trainers`` holds one adapter a trainer, ``server`` the HTTP server of ``serve``.
Trainers are imported by nobody here.
"""
