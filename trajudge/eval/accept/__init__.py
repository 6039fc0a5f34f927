"""Apply a decision: write what it accepts as training data, and certify it again for other agents
(``trajudge accept``).
"""
