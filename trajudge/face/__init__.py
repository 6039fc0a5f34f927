"""The public functions, a module for each of: data, judging, scores, decisions.

``trajudge`` gives their names; the commands and these functions call the same code.
"""
