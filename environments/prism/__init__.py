"""PRISM: does an environment satisfy the five principles of paper 001, section 3?

``report`` holds what is asked of a benchmark and grades it by the rubric of appendix 20; ``own``
measures the answers for the applications of this package. ``trajudge env prism``.
"""
