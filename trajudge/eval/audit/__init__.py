"""``trajudge audit``: how wrong a rule-based evaluator is, where, and what it changes.

``facets`` says what a task is (site, evaluation method, difficulty, template), ``errors`` counts
the rule's errors by facet, ``ranking`` what they do to success rates and to the order of agents,
``cases`` lists where judges and expert agree against the rule or against the expert.
"""
