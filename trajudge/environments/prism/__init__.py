"""PRISM: does an environment satisfy the five principles of Statistical Precipice?

``report`` holds what is asked of a benchmark and grades it by the rubric of its appendix 20;
``own`` measures the answers for the applications of this package. ``trajudge env prism``.
"""
