"""Whether a message is in a language that the reader cannot read."""

from __future__ import annotations

import re

_ENGLISH = """
    no not yes my me the of and to is it that was for are with as be this have from or had by but
    what were we when your there can an which their if will one about then them these so would into
    has its who been did after before because only than out up they you he she his her total
    answer i it's at on
"""
_FOREIGN = """
    der das dem ist sind wird wurde wurden werden und oder nicht kein keine keinen ein eine einen
    einem einer auf für fur mit von vom zum zur bis beim um uhr im es sie ich wir ihr hat haben sein
    insgesamt gibt läuft lauft kostet dauert beträgt betragt nach aus bei seit noch nur aber auch am
    le la les des du une est sont pas ne pour dans avec et ou qui que il elle nous vous jusqu'au
    au aux été ont cette ces coûte dure el los las del una es para por y que hay hasta está
    en cuesta dura fue lo gli della dei delle è sono di da che fino costa nel alla
    het een zijn niet geen voor met naar er op bij tot duurt kost heeft wordt
    och är det som på inte ett att av med till för kostar og ikke til
    jest są nie na za od się oraz
"""
_ENGLISH_WORDS = frozenset(_ENGLISH.split())
_FOREIGN_WORDS = frozenset(_FOREIGN.split()) - _ENGLISH_WORDS
_NEGATIONS = """
    nicht kein keine keinen keiner weder ohne pas jamais aucun aucune sans non nessun senza niet
    geen zonder inte ikke ingen utan uten nie ningún ninguno sin nunca nem não sem
"""
_NEGATION_WORDS = frozenset(_NEGATIONS.split())
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_LAST_LATIN = "\u024f"
ENOUGH = 2  # words of another language, more than there are English ones


def unreadable(message: str) -> bool:
    """Tell whether a message is not in English."""
    words = [word.casefold() for word in _WORD.findall(message)]
    foreign = sum(word in _FOREIGN_WORDS for word in words)
    english = sum(word in _ENGLISH_WORDS for word in words)
    foreign += sum(word[0] > _LAST_LATIN for word in words)
    mostly = len(words) > 1 and foreign and not english and foreign * 2 >= len(words)
    return bool((foreign >= ENOUGH and foreign > english) or mostly)


def negates(message: str) -> bool:
    """Tell whether a message in another language has a word of negation."""
    return any(word.casefold() in _NEGATION_WORDS for word in _WORD.findall(message))
