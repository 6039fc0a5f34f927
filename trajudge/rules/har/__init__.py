"""Network traces in files: the one home of HAR.

``records`` are a trace's entries, typed and decoded in part; ``unpacking`` opens every kind of file
that browsers and Playwright write them in, untrusted, ``reading`` decodes them and ``flaws`` names
what cannot be; ``writing`` makes entries and files of what a recorder saw, ``recorder`` is one for
Playwright; ``trimming`` leaves out what no rule reads.
"""
