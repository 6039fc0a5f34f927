"""Published judgments in the layout of AgentRewardBench.

``listing`` names the files of a folder, ``file`` and ``judgments`` read them, ``index`` and
``columns`` keep what was read in side files, ``source`` brings it together for scoring.
"""
