"""With the real model, questions find paraphrases, not only shared words."""

from __future__ import annotations

import pytest

from memstate_core.embed.encoder import Encoder
from memstate_core.retrieve.query import Question, answer

ENCODER = Encoder()
TURNS = {
    "dog": "We finally picked up the puppy from the shelter, he sleeps next to my bed.",
    "job": "My contract at the bakery ends in June, so I am sending out applications.",
    "trip": "The ferry to Crete takes nine hours, I booked us a cabin.",
    "car": "The mechanic says the gearbox will not survive another winter.",
    "piano": "I practise scales every morning before the neighbours wake up.",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Which pet did they adopt?", "dog"),
        ("Who is looking for new employment?", "job"),
        ("What is wrong with the vehicle?", "car"),
        ("Which musical instrument is played?", "piano"),
        ("Where are they going on holiday by ship?", "trip"),
    ],
)
def test_embeddings_find_what_terms_do_not(store, opened, monkeypatch, asked, meant):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    store.encoder = ENCODER
    for name, text in TURNS.items():
        store.topic(name, title=text)
        store.says(name, text)
    found = answer(opened(store), ENCODER, None, Question(asked, ("user:a",), top_k=1, evidence_k=1))
    assert [found["candidates"][0]["topic_id"], found["evidence"][0]["topic_id"]] == [meant, meant]
    question, turn = ENCODER.encode([asked, f"{TURNS[meant]}\n"])
    assert found["candidates"][0]["similarity"] == pytest.approx(float(question @ turn), abs=1e-4)
