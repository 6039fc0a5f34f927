"""Judges of web-agent trajectories, and the models they ask.

``model`` has the nouns (Request, Reply, Verdict, Judgment), ``registry`` the judges by name,
``methods/`` a module a judge, ``replies`` reads verdicts out of replies, ``engine/`` stands between
a judge and a model (cache, limits, retries), ``adapters/`` hold one module a provider, ``models/``
what is known of models.
"""
