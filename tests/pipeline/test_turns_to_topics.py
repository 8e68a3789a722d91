"""Chats over two nights with the real encoder: topics continue, get edges and titles, and rebuild to the same state."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

POTTERY = [
    "I signed up for a pottery class at the Riverside Studio, it starts next week.",
    "A pottery class sounds lovely, will you work with the potter's wheel?",
    "Yes, the pottery class begins with the wheel, and then we glaze bowls and fire them in the kiln.",
    "I once made a clay vase in a pottery class and it cracked in the kiln.",
    "Our pottery teacher says that clay cracks when the kiln heats up too fast.",
    "Bring me a glazed bowl from your pottery class!",
]
TAXES = [
    "The tax office wants the receipts of last year by the end of May.",
    "Did you send the tax return to the accountant already?",
    "The accountant found two invoices that we can deduct from the tax.",
    "Then the tax refund should be about 800 euros.",
    "She files the tax return online on 12 April.",
    "Keep the receipts for ten years, says the tax office.",
]
CANOES = [
    "We rented two canoes for the trip down the Soca river.",
    "How long is the canoe trip, and where do you camp?",
    "The canoe trip takes nine days and we camp on gravel banks.",
    "Take dry bags for the canoes, the Soca has rapids below Bovec.",
    "The canoe rental gives us helmets for the rapids.",
    "Watch the water level of the river before you paddle.",
]
LATER = [
    "My pottery class fired the kiln yesterday and the glazed bowls came out blue.",
    "So the clay did not crack in the kiln this time?",
    "No, the pottery teacher heated the kiln slowly, for the Acme renewal gift I kept one bowl.",
    "Your pottery class was worth it, the glaze of that bowl is beautiful.",
    "Next month the pottery class works on the wheel with porcelain clay.",
    "Porcelain clay is hard to throw on the potter's wheel.",
]
ACME = {
    "observation_id": "crm/1", "topic_key": "acme-renewal", "title": "Acme renewal", "topic_kind": "deal",
    "observed_at": "2026-02-01T08:00:00Z", "fields": [{"name": "owner", "value": "Aya"}],
}  # fmt: skip


def rows(session: str, day: str, *segments: list[str]) -> list[dict[str, Any]]:
    """The turns of a session of two people, one per minute."""
    said = [text for segment in segments for text in segment]
    return [
        {
            "observation_id": f"{session}#{at}", "scope": {"type": "user", "id": "aya"}, "kind": "user_message",
            "actor": "Aya" if at % 2 == 0 else "Ben", "session_id": session, "turn": at,
            "observed_at": f"{day}T09:{at:02}:00Z", "text": text,
        }
        for at, text in enumerate(said)
    ]  # fmt: skip


def night(home: Path, moment: str, *dumped: dict[str, Any]) -> dict[str, Any]:
    dump = home.parent / f"{moment[:10]}.jsonl"
    dump.write_text("".join(json.dumps({"scope": {"type": "user", "id": "aya"}} | row) + "\n" for row in dumped))
    assert run_memstate(home, "import", str(dump)).code == 0
    done = run_memstate(home, "maintain", "--now", moment, "--json")
    assert done.code == 0, done.stderr
    answer: dict[str, Any] = done.document
    return answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("chats") / "home"
    night(
        home, "2026-03-02T02:00:00Z", ACME, *rows("a", "2026-03-01", POTTERY, TAXES), *rows("b", "2026-03-01", CANOES)
    )
    later = rows("c", "2026-03-20", LATER)
    later[2]["actor"] = "Cleo"
    night(home, "2026-03-21T02:00:00Z", *later)
    return home


@pytest.fixture(scope="module")
def topics(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run_memstate(home, "export").stdout.splitlines()]


def pottery(topics: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [topic for topic in topics if "ottery" in topic["title"] or "kiln" in topic["title"].lower()]
    return found


def test_a_later_night_continues_the_topic(topics: list[dict[str, Any]]) -> None:
    topic = pottery(topics)
    assert len(topic["observation_ids"]) == len(POTTERY) + len(LATER)
    current = {name: field["history"][0]["value"] for name, field in topic["fields"].items()}
    assert current["participants"] == ["Aya", "Ben", "Cleo"]
    assert current["period"] == "2026-03-01T09:00:00Z/2026-03-20T09:05:00Z"
    assert current["session"] == "c"


def test_the_summary_follows_the_newest_segment_and_the_old_one_stays_in_history(
    home: Path, topics: list[dict[str, Any]]
) -> None:
    topic_id = pottery(topics)["id"]
    record = run_memstate(home, "topic", topic_id, "--history", "--json").document
    newest, first = (revision["value"] for revision in record["topic_history"]["summary"])
    assert record["summary"] == newest
    assert any(sentence in newest for sentence in LATER)
    assert any(sentence in first for sentence in POTTERY)
    before = run_memstate(home, "topic", topic_id, "--as-of", "2026-03-10T00:00:00Z", "--json").document
    assert (before["title"], before["summary"]) == (record["title"], first)


def test_other_subjects_have_topics_of_their_own(topics: list[dict[str, Any]]) -> None:
    assert len(topics) == 4
    assert {len(topic["observation_ids"]) for topic in topics} == {1, 6, 12}


def test_topics_of_a_session_and_names_that_are_said_are_linked(topics: list[dict[str, Any]]) -> None:
    topic = pottery(topics)
    titles = {other["id"]: other["title"] for other in topics}
    outward = {(edge["kind"], titles[edge["to"]]) for edge in topic["edges"] if edge["from"] == topic["id"]}
    assert ("mentions", "Acme renewal") in outward
    (following,) = [title for kind, title in outward if kind == "associated_with"]
    assert following not in (topic["title"], "Acme renewal")


def test_a_topic_reads_well(home: Path, topics: list[dict[str, Any]]) -> None:
    answer = run_memstate(home, "topic", pottery(topics)["id"]).stdout
    assert "mentions  Acme renewal  [" in answer
    assert "Aya: " in answer or "Ben: " in answer


def test_the_reason_is_recorded(home: Path) -> None:
    from memstate_core.state.home import Home
    from memstate_core.state.ledger.ledger import Ledger

    recorded = Ledger(Home(home).ledger).scan("transitions").collect()
    reasons = recorded.filter(recorded["kind"] == "segment_placed")["reason"].to_list()
    assert sum("continues '" in reason and "probability" in reason for reason in reasons) == 1


def test_a_rebuild_gives_the_same_state_without_a_model(home: Path) -> None:
    assert run_memstate(home, "verify").code == 0
    before = run_memstate(home, "status", "--json").document["state_hash"]
    assert run_memstate(home, "rebuild").code == 0
    assert run_memstate(home, "status", "--json").document["state_hash"] == before
