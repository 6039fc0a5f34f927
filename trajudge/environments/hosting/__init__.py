"""Runs for agents that bring their own browser, for people, and for trainers over HTTP.

Two listeners: pages are on the *site*, at an origin of each run's own, and the *control* listener
speaks JSON with whoever runs the agents. Truth is with the second alone: no response to a run's
token holds a label, a seed, a level or a predicate.
"""
