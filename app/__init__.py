"""Pages for people: the report in one file.

``pages`` has what all pages share (templates, untrusted text, figures), ``reports`` makes the
report of runs. Nobody imports this room; it reads what ``eval`` scored and ``trajectories`` loaded.
"""
