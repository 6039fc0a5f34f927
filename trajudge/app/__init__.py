"""Pages for people: runs in a browser, and the report in one file.

``pages`` has what all pages share (templates, untrusted text, figures), ``server`` the frame of the
application, ``runs`` its pages of runs, ``reports`` makes the report. Nobody imports this room; it
reads what ``eval`` scored and ``trajectories`` loaded.
"""
