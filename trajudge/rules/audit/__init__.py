"""Tools that audit rules: ``lint`` reads specifications, ``blind`` scores agents that see no page,
``mutate`` changes correct runs and asks whether the rule notices.

``suites`` has what each dialect brings for them. Nothing below this folder imports it.
"""
