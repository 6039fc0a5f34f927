"""Sandboxed web applications with known ground truth, and agents recorded in them.

The commands stand here. ``model`` holds the nouns, ``kit`` renders pages, ``apps`` are the
applications, ``checks`` says what makes a configuration a fair task, ``stages`` generates cases,
``serving`` is the server of runs, ``chromium`` the browser, ``agents`` who acts in it, ``verify``
the labels, ``recording`` plays episodes and keeps them, ``analysis`` says what they come to. Labels
follow from the state before and after a run, never from what an agent meant to do.
"""
