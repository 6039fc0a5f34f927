"""Pages for people: runs in a browser, labelling, and the report in one file.

A module is a page: the list of runs, a run, the table of its judgments, a judgment, a trajectory,
the comparison, the pages of a queue. ``rendering`` and ``web`` have what all pages share,
``security`` and ``serving`` the frame of the application. Nobody imports this room; it reads what
``eval`` scored and ``trajectories`` loaded.
"""
