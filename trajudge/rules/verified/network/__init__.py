"""What a run sent and received, and whether it is what the task asks for.

``read`` loads traces, ``events`` are their requests, ``sites`` say whose they are, ``addresses``,
``bodies`` and ``jsonpath`` take them apart, ``checks`` holds them to a specification in the sound
mode and ``release`` in the published package's.
"""
