"""Rules held to the state of the environments: how far do they agree?

``recording`` plays thousands of runs without a browser, by the scripted agents and by agents that
take turns which no oracle takes (``turns``); ``comparing`` holds the rules' verdicts on them to the
labels from the state, reading prose as a response of the protocol first (``responses``), ``report``
counts, and ``package`` asks the released package itself about a sample.
"""
