"""Task specifications in WebArena Verified's form, and what rules say of recorded runs by them.

``tasks`` writes the specification of a case: ``answers`` what is to be answered, ``requests`` which
requests the oracle's walk (``oracle``) sends, ``states`` what the state must hold afterwards.
``responses`` reads a last message as that protocol's response, ``comparing`` holds the rules'
verdicts on recorded runs to the labels from the state and ``agreement`` counts.
"""
