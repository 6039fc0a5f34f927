"""Judges as rewards: a value for a trainer, or an abstention, never a number for a failure.

``reward`` makes a judgment's value, ``rewarder`` asks the judge, ``trainers`` holds what each
trainer is given, ``serve`` starts the HTTP server (``server``, and what it knows: ``service``),
``watch`` says whether rewards can still be trusted. Trainers are imported by nobody here.
"""
