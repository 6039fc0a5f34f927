"""Adapters: each turns a Request into a Reply with one SDK.

``errors`` is what can go wrong, ``openai``, ``anthropic``, ``litellm`` and ``scripted`` the
adapters, ``capabilities`` and ``prices`` what is known of the models.
"""
