"""Compare the verdicts of rules with the state of the environments.

``recording`` records thousands of runs without a browser, by the scripted agents and by agents that
deviate from the oracle (``turns``); ``comparing`` compares the rules' verdicts on them with the
labels from the state, after converting prose to a response of the protocol (``responses``),
``report`` counts, and ``package`` runs the released package on a sample.
"""
