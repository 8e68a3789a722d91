"""What the form of a turn says about it, whatever the question: how much it says, whether it asks or names a change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

_CLOSING = r"[\"'\u{201d}\u{2019})\]]*"
_ASKS = rf"[?\u{{61f}}]+[!?]*{_CLOSING}(?:\s|$)|[\u{{ff1f}}]+"
_ENDS = rf"[.!?\u{{61f}}\u{{2026}}]+{_CLOSING}(?:\s|$)|[\u{{3002}}\u{{ff01}}\u{{ff1f}}]+"
"""Ends of sentences; the marks of scripts without spaces end one wherever they stand."""

_ENDED = (
    r"no longer|(?:any|no) ?more|any longer|never|used to|former|stop(?:ped|ping)?|quit|ceased|end(?:ed|ing)|finished|"
    r"drop(?:ped|ping)|cancel\w*|abandon\w*|left|leaving|lost|sold|died|passed away|got rid|resign\w*|retired?|"
    r"dissolved|disbanded|clos(?:ed|ing) down|closed|shut|break-?up|divorc\w+|separated|unsubscribed|"
    r"expir(?:e[ds]?|ing)|laps(?:e[ds]?|ing)|"
    r"fired|let go|moved (?:out|away)|(?:done|through|fed up) with|(?:is|are|was|were) (?:off|over)|gone off|"
    r"discontinu\w+|terminat\w+|revoked|withdr(?:ew|awn)|scrapped|ditched|uninstalled|"
    r"(?:pulled|backed|dropped|opted) out|part(?:ed|ing) (?:ways|with)|sa(?:id|y|ying) goodbye"
)
_PARTICLES = {
    r"g(?:ave|iven?|iving)": "up|away|back|notice",
    r"thr(?:ew|own?|owing)": "away|out",
    r"call(?:ed|ing)": "off",
    r"(?:broke|broken|breaking|split|splitting)": "up|off",
    r"stepp(?:ed|ing)": "down|back",
    r"hand(?:ed|ing)": "in|back|over",
    r"(?:sent|sending)": "back",
    r"trad(?:ed|ing)": "in",
    r"sign(?:ed|ing)": "over",
    r"phas(?:ed|ing)": "out",
    r"(?:wound|winding)": "up|down",
    r"(?:laid|laying)": "off",
    r"(?:ran|run|running)": "out",
}
"""Verbs that end something with a particle, which may stand behind their object: "gave it away"."""

_PARTED = "|".join(
    rf"{verb}(?:\s+[^\s.!?\x{{2026}}]+){{0,4}}?\s+(?:{particles})" for verb, particles in _PARTICLES.items()
)
_BEGAN = (
    r"now|nowadays|these days|lately|recently|currently|from now on|as of|since|for good|new|another|different|"
    r"start(?:ed|ing)?|began|begun|joined|signed up|took (?:up|over)|moved"
)
_EXCHANGED = (
    r"instead|rather than|in place of|not [^.!?]{1,40}\bbut|chang(?:ed|ing)|switch\w*|swap(?:ped|ping)?|replac\w+|"
    r"traded|exchanged|upgraded|transferred|mistaken|wrong|turned out|correction"
)
_CHANGE = rf"(?i)\b(?:{_ENDED}|{_PARTED}|{_BEGAN}|{_EXCHANGED})\b"

Values = npt.NDArray[np.float64]


def text_lengths(texts: pl.Series) -> Values:
    """The natural logarithm of the number of characters of each text; NaN where there is none (n)."""
    characters = texts.str.strip_chars().str.len_chars().cast(pl.Float64)
    lengths: Values = np.log(characters.replace(0.0, None).fill_null(np.nan).to_numpy())
    return lengths


def asking_shares(texts: pl.Series) -> Values:
    """The share of the sentences of each text that end with a question mark, 0 to 1 (n)."""
    text = texts.fill_null("").str.strip_chars()
    ends = text.str.count_matches(_ENDS)
    unended = (~text.str.contains(rf"(?:{_ENDS})$")).cast(pl.UInt32)
    asking: Values = (text.str.count_matches(_ASKS) / (ends + unended)).to_numpy()
    return asking


def says_changed(texts: pl.Series) -> npt.NDArray[np.bool_]:
    """Whether each text has a word of change (n)."""
    found: npt.NDArray[np.bool_] = texts.fill_null("").str.contains(_CHANGE).to_numpy()
    return found
