"""Sandboxed web applications with known ground truth, and agents recorded in them.

``spec`` holds the nouns (App, Scenario, Operation, Config), ``kit`` the page model that every
application is written in, ``apps`` the applications, ``axes`` what varies, ``site`` an application
in one configuration, ``walk`` a visitor without a browser. Labels follow from the state before and
after a run, never from what an agent meant to do.
"""
