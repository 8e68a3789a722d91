"""The words and sentences of synthetic dumps; `<name>` is a placeholder."""

from __future__ import annotations


def _words(text: str, separator: str = " ") -> tuple[str, ...]:
    return tuple(text.split(separator))


KINDS = ("project", "person", "device", "place", "decision", "incident", "preference", "supplier")
ADJECTIVES = _words(
    "amber autumn blue borrowed brass bright broken calm chalk coastal copper crooked dawn distant "
    "double dry early eastern evening fallow first floating folded foreign frozen gentle glass golden "
    "granite green hidden hollow inner iron late little lower lunar marble mended mild modern narrow "
    "northern old open outer painted paper patient plain portable quiet rapid red remote round rural "
    "salted second shared silent silver slow southern spare steady stone summer tall tidal upper urban "
    "warm western white winter wooden yellow"
)
NOUNS = _words(
    "archive atlas bakery ballot bridge budget cable calendar camera canal catalogue choir cinema "
    "clinic compass contract courier crane cellar dashboard database dictionary engine exhibition "
    "experiment ferry festival firewall forecast garden gateway generator glossary greenhouse harbour "
    "heater inspection interview invoice kitchen laboratory ladder lantern lease ledger lecture library "
    "lighthouse loom magazine market mast mill mortgage museum network notebook nursery orchard oven "
    "panel parcel passport pavilion pension pipeline playground printer prototype pump quarry recipe "
    "refund renewal reservoir roof satellite scanner schedule school sensor server shuttle signal "
    "stable studio subscription survey telescope theatre thesis tower tractor translation turbine "
    "vaccine valve warehouse workshop"
)
PLACES = _words(
    "Alder Quay,Ash Hollow,Beacon Row,Birch Lane,Bramble End,Candle Court,Castle Steps,Chapel Green,"
    "Cinder Hill,Copper Yard,Dove Street,Elm Crossing,Fallow Field,Fern Gate,Fisher Wharf,"
    "Foxglove Bank,Glass Alley,Harrow Road,Heron Point,Holly Rise,Juniper Square,Kestrel Ridge,"
    "Larch Corner,Lime Terrace,Mallow Park,Maple Cut,Meadow Lock,Mill Pond,Nettle Walk,Orchard Side,"
    "Otter Bridge,Pear Tree Close,Quarry Bend,Raven Tower,Reed Island,Rowan Avenue,Saddler Mews,"
    "Thistle Common,Weaver Bay,Willow Ford",
    separator=",",
)
PEOPLE = _words(
    "Ada,Bruno,Chidi,Dana,Emre,Farah,Goran,Hana,Idris,Jun,Kaia,Luca,Mina,Nils,Oona,Pavel,Rosa,Sami,"
    "Tove,Uma,Viktor,Wanda",
    separator=",",
)
STATUSES = ("proposed", "planned", "running", "waiting", "paused", "done", "dropped")
TAGS = ("urgent", "legal", "outdoor", "shared", "costly", "seasonal", "pilot", "remote", "fragile", "weekly")
REASONS = (
    "a new count",
    "handed over",
    "the weather",
    "a better offer",
    "a mistake was found",
    "asked by the board",
)
PROVENANCES = ("api", "ui", "llm", "mcp", "import")
OBSERVATION_KINDS = (
    "explicit_memory",
    "explicit_memory",
    "explicit_memory",
    "tool_result",
    "file_edit",
    "system_event",
)
EXTENSIONS_UP = ("part_of", "extends", "derives")
EXTENSIONS_DOWN = ("has_detail", "has_subtopic")
ASSOCIATIONS = ("mentions", "references", "associated_with", "collaborates_with", "supports")

SUMMARIES = (
    "The <adjective> <noun> at <place> that <person> looks after, next to the <other>.",
    "A <noun> for <place>, <adjective> by design and paid for by the <other>.",
    "What <person> found out about the <adjective> <noun> while working on the <other> in <place>.",
    "Everything around the <noun> in <place>, from the <adjective> parts to the <other>.",
    "How the <adjective> <noun> came to <place> and why <person> keeps it apart from the <other>.",
    "<person> uses the <noun> at <place> whenever the <adjective> <other> cannot be reached.",
)
DEVELOPMENTS = (
    "Lately the work has slowed down.",
    "It is now open to everybody.",
    "A second team in <town> wants the same.",
    "<helper> has taken over most of it.",
    "The papers are with the office in <town>.",
    "It needs <number> more hours.",
)
SENTENCES = (
    "I went to <place> today to look at the <adjective> <noun>.",
    "The <noun> at <place> needs about <number> more hours before the <other> can follow.",
    "<person> thinks that the <other> matters more than the <noun>.",
    "Could you compare the <adjective> <noun> with the <other> that we saw in <place>?",
    "It cost <number> euros, and <person> says the <noun> is worth it.",
    "For the <noun> I would keep the <adjective> version and leave the <other> alone.",
    "Remember that <person> wants a word on the <noun> before Friday.",
    "There are <number> of them at <place>, all beside the <noun>.",
    "The <adjective> <noun> broke again, so the <other> has to wait.",
    "Then start with the <other> and come back to the <noun> when <person> has time.",
)
OBSERVATION = (
    '{"observation_id":"bench-<seed>/<row>","scope":{"type":"user","id":"bench-<scope>"},"kind":"<source_kind>",'
    '"observed_at":"<observed_at>","provenance":"<provenance>","source_uri":"bench/<provenance>",<named>,'
    '"topic_kind":"<kind>","title":"<title>","summary":"<summary>","fields":[<fields>],"edges":[<edges>]}\n'
)
TURN = (
    '{"observation_id":"bench-<seed>/chat-<session>#<turn>","scope":{"type":"user","id":"bench-<scope>"},'
    '"kind":"<speaker>_message","actor":"<speaker>","session_id":"bench-<seed>/chat-<session>","turn":<turn>,'
    '"observed_at":"<observed_at>","text":"<text>"}\n'
)
