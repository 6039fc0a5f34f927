"""The release's common treatment of text, and its string and location-name kinds.

A text of the form ``^...$`` is left alone and honoured as a pattern whoever wrote it. Letters that
have no Latin relative are kept here, where the release spells them out in Latin letters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from trajudge.rules.errors import BadPattern, InvalidValue
from trajudge.rules.limits import (
    SCALAR_CHARS,
    TEXT_CHARS,
    bounded,
    fullmatch,
    is_pattern,
    nfkc,
    unicode_text,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

_SIGNS = str.maketrans(dict.fromkeys("™®℠©"))
_HYPHEN = "[-\u00ad‐‑‒–—―−]"
_AT_LETTER = re.compile(rf"(?<=[A-Za-z]){_HYPHEN}|{_HYPHEN}(?=[A-Za-z])")
_BREAKS = re.compile(r"[\t\n\r]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# How the release spells signs, and letters of the scripts that are written letter by letter, in
# ASCII; "char=spelling". Other signs and marks are dropped; letters of other scripts stay.
_SPELT = (
    "ø=o Ø=O ł=l Ł=L đ=d Đ=D æ=ae Æ=AE œ=oe Œ=OE ı=i ð=d Ð=D þ=th Þ=Th ß=ss ħ=h Ħ=H ĸ=k ŋ=ng "
    "Ŋ=NG ŧ=t Ŧ=T ƒ=f ə=@ Ə=@ ǝ=@ ȷ=j ǽ=ae Ǽ=AE ǿ=o Ǿ=O €=EUR £=PS ¥=Y= ¢=C/ ¤=$? ₠=ECU ₡=CL "
    "₢=Cr ₣=FF ₤=L ₥=mil ₦=N ₧=Pts ₩=W ₪=NS ₫=D ₭=K ₮=T ₯=Dr ₰=Pf ₱=P ₲=G ₳=A ₴=UAH ₵=C| ₶=L "
    "₷=Sm ₸=T ₹=Rs ₺=L ₻=M ₼=m ₽=R ₾=l ₿=BTC ฿=Bh. ៛=KR ×=x ÷=/ ·=* °=deg ±=+- ¬=! ¦=| §=SS "
    "¶=P ¡=! ¿=? ⁄=/ ∕=/ ∖=\\ ∗=* ∣=| ∶=: ∼=~ ≤=<= ≥=>= ≦=<= ≧=>= −=- ‖=|| †=+ ‡=++ •=* ‣=*> "
    "‧=. …=... ‰=%0 ‱=%00 ‵=` ‸=^ ‹=< ›=> ※=* ‽=!? ‿=_ ⁀=- ⁁=^ ⁂=*** ⁎=* ⁓=~ ⁒=% ⁊=& ⁋=PP "
    "⁅=-[ ⁆=]- ℗=(p) ℣=V/ ℟=R/ ℮=e ⅍=A/S ♯=# ♠=spades ♡=hearts ♢=diamonds ♣=clubs ♤=spades "
    '♥=hearts ♦=diamonds ♧=clubs ✱=* ❘=| ❜=\' ❝=" ❞=" ❟=, ❠=,, ❢=! ⟦=[ ⟨=< ⟩=> ⦃={ ⦄=} ⹀== '
    '、=,_ 。=._ 〃=" 〈=< 〉=>_ 《=<< 》=>>_ 「=[ 」=]_ 『={ 』=}_ 【=[( 】=)]_ 〔=[ 〕=]_ '
    "〖=[[ 〗=]]_ 〘=(( 〙=))_ 〚=[[ 〛=]]_ 〜=~_ 〝=`` 〞='' 〟=,, 〰=~ ゠== ・=* 〇=0 ،=, "
    "؛=; ؟=? ٪=% ٫=. ٬=, ٭=* ۔=. ՚=' ՛=/ ՜=! ՝=, ՞=? ՟=. ։=: ֊=- ־=- ׀=| ׃=. ׳=' ״=\" ⓿=0 "
    "⓫=11 ⓬=12 ⓭=13 ⓮=14 ⓯=15 ⓰=16 ⓱=17 ⓲=18 ⓳=19 ⓴=20 ⓵=1 ⓶=2 ⓷=3 ⓸=4 ⓹=5 ⓺=6 ⓻=7 ⓼=8 ⓽=9 "
    "⓾=10 ˂=< ˃=> ˄=^ ˅=V ˖=+ ˗=- ˭== α=a β=b γ=g δ=d ε=e ζ=z η=e θ=th ι=i κ=k λ=l μ=m ν=n "
    "ξ=x Ξ=Ks ο=o π=p ρ=r ς=s σ=s τ=t υ=u φ=ph χ=kh ψ=ps ω=o ϗ=& ϛ=st ϝ=w ϟ=q ϡ=sp ϳ=j а=a "
    "б=b в=v г=g д=d е=e ж=zh з=z и=i к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh ц=ts "
    "ч=ch ш=sh щ=shch ъ=' ы=y ь=' э=e ю=iu я=ia ѐ=ie ё=io ђ=dj ѓ=gj є=ie ѕ=dz і=i ї=yi ј=j "
    "љ=lj њ=nj ћ=tsh ќ=kj џ=dzh ґ=g' ғ=g' қ=k' ң=n' ү=u ұ=u' һ=h ә=@ ө=o ӏ= Ӏ=` ‘=' ’=' ‚=, "
    "‛=' ′=' ʹ=' ʼ=' ´=' “=\" ”=\" „=,, ‟=\" ″=\" «=<< »=>> ‐=- ‑=- ‒=- –=- ﹣=- －=- —=-- "
    "―=-- ﹘=-- ⁃=--"
)
# Arrows, lines, boxes and other shapes; of a char that is named twice the last counts.
_SHAPES = {
    "=": "⇄⇆⇇⇉⇋⇌⇍⇎⇏⇐⇒⇔⇚⇛↹",
    "/": "↗↙⇗⇙╱",
    "\\": "↖↘⇖⇘↸╲",
    "~": "↜↝⇜⇝",
    "^": "↶↻▲△▴▵◬◭◮",
    "V": "↷↺▼▽▾▿",
    ">": "▶▷▸▹►▻",
    "<": "◀◁◂◃◄◅",
    "+": "".join(map(chr, [*range(0x250C, 0x254C), *range(0x2552, 0x2571)])),
    "X": "╳",
    "#": "▀▁▂▃▄▅▆▇█▉▊▋▌▍▎▏▐░▒▓■□▢▣▤▥▦▧▨▩▪▫▬▭▮▯▰▱◧◨◩◪◫" + "".join(map(chr, range(0x25F0, 0x25F8))),
    "*": "◦" + "".join(map(chr, [*range(0x25C6, 0x25D0), *range(0x25D0, 0x25E6)])),
    "O": "◯",
    "-": "─━┄┅┈┉╌╍═╴╶╸╺╼╾▔←→↔↚↛↞↠↢↣↤↦↩↪↫↬↭↮↼↽⇀⇁⇠⇢⇤⇥",
    "|": "│┃┆┇┊┋╎╏║╵╷╹╻╽╿▕↑↓↕↟↡↥↧↨↯↰↱↲↳↴↵↾↿⇂⇃⇅⇈⇊⇑⇓⇕⇞⇟⇡⇣",
}
_ASCII = str.maketrans(
    {
        char: spelt.replace("_", " ") if char != "‿" else "_"
        for char, _, spelt in (pair.partition("=") for pair in _SPELT.split())
    }
    | {char: spelt for spelt, chars in _SHAPES.items() for char in chars}
)
_EDGES = "'\"`.,;:!?"


def _latin(text: str) -> str:
    if text.isascii():
        return text
    text = _spelt(text)
    # A sign that is made of two, such as that of inequality, is dropped as one.
    signs = [
        char for char in set(text) if not char.isascii() and unicodedata.category(char) == "Sm"
    ]
    text = text.translate(dict.fromkeys(map(ord, signs)))
    text = _spelt(unicodedata.normalize("NFD", text))
    return text.translate({ord(char): _plain(char) for char in set(text) if not char.isascii()})


def _spelt(text: str) -> str:
    """Spell what the table has, capitals too."""
    text = text.translate(_ASCII)
    others = [char for char in set(text) if not char.isascii() and char != char.lower()]
    return text.translate(
        {ord(char): _ASCII[ord(low)] for char in others if ord(low := char.lower()[0]) in _ASCII}
    )


def _plain(char: str) -> str:
    """Return the Latin digit for a digit, nothing for a mark or a sign, and a letter as it is."""
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    category = unicodedata.category(char)
    return "" if category[0] in "MSP" or category in ("Nl", "No") else char


def treated(text: str) -> str:
    """Return text after the release's common treatment; a pattern as it is."""
    if is_pattern(text):
        return text
    text = nfkc(unicode_text(text).translate(_SIGNS))
    text = _visible(_BREAKS.sub(" ", _AT_LETTER.sub(" ", text)))
    return " ".join(_latin(text).split()).casefold()


def _visible(text: str) -> str:
    """Return the text without control, format, private and unassigned characters."""
    text = _CONTROL.sub("", text)
    if text.isascii():
        return text
    hidden = [char for char in set(text) if unicodedata.category(char).startswith("C")]
    return text.translate(dict.fromkeys(map(ord, hidden))) if hidden else text


def as_text(raw: JsonValue, limit: int = SCALAR_CHARS) -> JsonValue:
    """Return a text after the common treatment; anything else as it is."""
    return treated(bounded(raw, limit)) if isinstance(raw, str) else raw


def scalar_text(raw: JsonValue) -> str:
    """Return the text of any value as Python would print it, bounded."""
    try:
        return bounded(str(raw), TEXT_CHARS)
    except (ValueError, RecursionError) as error:
        raise InvalidValue("not a text") from error


def parse(raw: JsonValue) -> str:
    """Read a string: whatever is falsy is the empty text, and what is no text is printed."""
    if not raw:
        return ""
    if isinstance(raw, str):
        return treated(bounded(raw, TEXT_CHARS)).strip()
    return scalar_text(raw).lower().strip()


def parse_name(raw: JsonValue) -> str:
    """location-name."""
    if raw is None:
        raise InvalidValue("nothing")
    return parse(raw).lower()


def same(one: str, other: str) -> bool:
    """Equal, or either is a pattern that matches the other, or equal without edge punctuation."""
    if one == other or one.strip(_EDGES) == other.strip(_EDGES):
        return True
    return matches(one, other) or matches(other, one)


def matches(pattern: str, text: str, *, case_matters: bool = False) -> bool:
    """Tell whether a text is a pattern that matches another; one that is none matches nothing."""
    try:
        return is_pattern(pattern) and fullmatch(pattern, text, case_matters=case_matters)
    except BadPattern:
        return False


def _common_length(one: str, other: str) -> int:
    """Length of the longest common subsequence, by bit-parallel dynamic programming."""
    positions: dict[str, int] = {}
    for index, char in enumerate(one):
        positions[char] = positions.get(char, 0) | 1 << index
    full = (1 << len(one)) - 1
    row = full
    for char in other:
        matched = row & positions.get(char, 0)
        row = (row + matched) | (row - matched)
        row &= full
    return len(one) - row.bit_count()


_NO_WORD = re.compile(r"[\W_]")
_LATIN_1 = re.compile("[\x80-\xff]")  # what is left of them in patterns goes, without a gap


def likeness(one: str, other: str) -> int:
    """Per cent of two names' letters in common, in order, once their words are sorted."""
    first, second = (
        " ".join(sorted(_NO_WORD.sub(" ", _LATIN_1.sub("", name)).split()))
        for name in (one[:SCALAR_CHARS], other[:SCALAR_CHARS])
    )
    if not first or not second:
        return 100 if first == second else 0
    return round(200 * _common_length(first, second) / (len(first) + len(second)))


def same_name(one: str, other: str) -> bool:
    """Return whether names are 80 % alike. A name is never a pattern; the empty one equals itself
    alone."""
    if not one or not other:
        return one == other
    return likeness(one, other) >= 80
