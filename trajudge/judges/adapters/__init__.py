"""Adapters: each turns a Request into a Reply with one SDK, or with none.

``errors`` is what can go wrong, ``openai``, ``anthropic``, ``litellm``, ``http`` and ``scripted``
the adapters, ``capabilities`` and ``prices`` what is known of the models.
"""
