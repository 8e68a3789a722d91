"""Ten further facts about people, written before the rules of ranking that they measure and never looked at since.

Their relations and wordings are others than those of `changed_facts.FACTS`: changes name one value or both, withdrawals
say it in many ways, and half of the questions avoid the words of the statements.
"""

from __future__ import annotations

from changed_facts import Fact

FRESH_FACTS = (
    Fact(
        "medication",
        ("iron tablets", "beta blockers", "melatonin", "antihistamines", "vitamin D drops", "thyroid pills"),
        ("I take <old> every evening.", "My doctor put me on <old>.", "The pharmacist knows me, it's <old> as always."),
        (
            "The <old> did nothing for me, so the doctor put me on <new>.",
            "I take <new> now in place of <old>.",
            "As of this week it is <new> for me, not <old>.",
        ),
        ("Forgot my <new> at home, had to turn back.", "I take <new> with breakfast.", "Picked up my refill of <new>."),
        (
            "The doctor took me off <old>.",
            "I came off <old> completely, no pills at all.",
            "I don't need <old> anymore!",
        ),
        ("What medication does <who> take?", "Which pills is <who> on?"),
        ("What medication did <who> take before?", "Which pills was <who> on earlier?"),
        ("My uncle forgets to take his <new>.", "The neighbour's boy needs <new>."),
    ),
    Fact(
        "heating",
        ("a heat pump", "a wood stove", "a gas boiler", "wood pellets", "an oil burner", "infrared panels"),
        ("I heat the house with <old>.", "We have <old> for the heating.", "In winter we rely on <old>."),
        (
            "The plumber took out the old system, we heat with <new> now and not with <old>.",
            "I swapped <old> for <new> before the winter.",
            "<old> cost us a fortune, so we had <new> put in.",
        ),
        (
            "It is warm at home, <new> does its job.",
            "We heat with <new>, the bill is fine.",
            "A man came to check the heating, he says <new> is the best.",
        ),
        (
            "We had <old> taken out, no heating until spring.",
            "We don't heat with <old> any longer, just thick jumpers.",
            "<old> broke down for good, the house stays cold.",
        ),
        ("How does <who> heat the house?", "What kind of heating does <who> have?"),
        ("How did <who> heat the house before?", "What kind of heating did <who> have earlier?"),
        ("My parents want to get <new>.", "The school next door put in <new>."),
    ),
    Fact(
        "hairdresser",
        ("Nilufar", "Cosmin", "Berit", "Anselm", "Paloma", "Tadeusz"),
        (
            "<old> cuts my hair.",
            "I go to <old> for a haircut every six weeks.",
            "My hairdresser <old> gives the best advice.",
        ),
        (
            "<old> moved away, so <new> cuts my hair from now on.",
            "I changed to <new> for my haircuts, <old> got too dear.",
            "My new hairdresser is called <new>.",
        ),
        (
            "<new> gave me a fringe this time.",
            "I have a haircut with <new> on Thursday.",
            "<new> cuts my hair so well.",
        ),
        (
            "I don't go to <old> any longer, I cut my hair at home.",
            "<old> shut the salon, so I let my hair grow.",
            "No more haircuts with <old>, I shaved it all off.",
        ),
        ("Who cuts <who>'s hair?", "Who is <who>'s hairdresser?"),
        ("Who cut <who>'s hair before?", "Who was <who>'s hairdresser in the past?"),
        ("My sister has her hair done by <new>.", "Dad's barber <new> tells terrible jokes."),
    ),
    Fact(
        "volunteering",
        ("the animal shelter", "the food bank", "the hospice", "the lifeboat station", "the repair cafe", "the scouts"),
        (
            "I volunteer at <old> on Saturdays.",
            "I help out with <old>, unpaid of course.",
            "I've joined <old> as a volunteer.",
        ),
        (
            "I volunteer with <new> these days rather than <old>.",
            "After two years at <old> I have gone over to <new> as a volunteer.",
            "Handed in my keys at <old> and joined <new> as a helper.",
        ),
        (
            "Spent my Saturday helping at <new>.",
            "I volunteer for <new>, it fills the weekend.",
            "Long shift with <new>, all of us unpaid.",
        ),
        (
            "I had to step down from <old>, no time for volunteering.",
            "I no longer help out with <old>.",
            "My days as a volunteer with <old> are over.",
        ),
        ("Where does <who> volunteer?", "What charity does <who> help?"),
        ("Where did <who> volunteer earlier?", "What charity did <who> help before?"),
        ("My father in law runs <new>.", "A friend of mine met her husband through <new>."),
    ),
    Fact(
        "manager",
        ("Priyanka", "Gunnar", "Oksana", "Dermot", "Hyun-woo", "Fatoumata"),
        ("My manager is <old>.", "I report to <old>, who is fair but strict.", "<old> is my boss at work."),
        (
            "<old> has left the company and <new> is my boss.",
            "We were reorganised: I report to <new> rather than <old>.",
            "<new> took over from <old> as my manager.",
        ),
        (
            "<new>, my manager, wants a report by Friday.",
            "My boss <new> let us go home early.",
            "One-to-one with <new> at work.",
        ),
        (
            "<old> was let go, at present I have no manager at all.",
            "I don't report to <old> any more, I run my own thing.",
            "<old> isn't my boss anymore, nobody is.",
        ),
        ("Who is <who>'s manager?", "Who does <who> report to?"),
        ("Who was <who>'s manager before?", "Who did <who> report to previously?"),
        ("My neighbour complains about a boss called <new>.", "My wife's manager is <new>."),
    ),
    Fact(
        "laptop",
        ("a ThinkPad", "a MacBook", "a Chromebook", "a Surface", "a Framework", "a Zenbook"),
        ("I use <old> for everything.", "My laptop is <old>.", "I bought <old>, what a machine."),
        (
            "My laptop died, I replaced <old> with <new>.",
            "I traded <old> in for <new>.",
            "Finally upgraded: <old> out, <new> in.",
        ),
        (
            "The battery of my laptop, <new>, lasts all day.",
            "Writing this on <new>.",
            "I use <new> at home and on trips.",
        ),
        (
            "I sold my laptop, <old> was gathering dust.",
            "Somebody stole my laptop, <old>, and I am without one.",
            "I gave <old> away, my phone is enough.",
        ),
        ("What laptop does <who> use?", "Which computer does <who> have?"),
        ("What laptop did <who> use before?", "Which computer did <who> have earlier?"),
        ("My nephew got <new> for school.", "The man on the train spilled juice over <new>."),
    ),
    Fact(
        "childcare",
        (
            "the forest kindergarten",
            "a childminder",
            "grandma",
            "the Montessori house",
            "an au pair",
            "the church nursery",
        ),
        (
            "My daughter spends her days with <old>.",
            "We leave our little one with <old> while we work.",
            "For childcare we have <old>.",
        ),
        (
            "Our daughter changed from <old> to <new>.",
            "It didn't work out with <old>, now <new> looks after our little one.",
            "We have taken our daughter out of <old>, she goes to <new>.",
        ),
        (
            "Dropped my daughter off with <new> this morning.",
            "For our little one it's <new> on weekdays.",
            "Our childcare is <new>.",
        ),
        (
            "We gave notice to <old>, I stay at home with our daughter.",
            "Our daughter doesn't go to <old> any more, she starts school.",
            "We stopped the childcare with <old>.",
        ),
        ("Who looks after <who>'s daughter?", "What childcare does <who> have?"),
        ("Who looked after <who>'s daughter before?", "What childcare did <who> have earlier?"),
        ("My cousin's twins are with <new>.", "Colleagues rave about <new>."),
    ),
    Fact(
        "newspaper",
        ("the Courier", "the Herald", "the Tribune", "the Morning Post", "the Gazette", "the Observer"),
        ("I subscribe to <old>.", "I read <old> on the way to work.", "My paper is <old>, has been for ages."),
        (
            "I ended my subscription to <old> and took out one for <new>.",
            "I read <new> now, <old> has become shallow.",
            "Changed my paper from <old> to <new>.",
        ),
        (
            "I read a long piece in <new>, as every Sunday.",
            "I subscribe to <new>, the puzzles are great.",
            "My copy of <new> was wet again.",
        ),
        (
            "I let my subscription to <old> run out.",
            "I've stopped reading <old>, the news makes me sad.",
            "I no longer get <old> or any other paper.",
        ),
        ("Which newspaper does <who> read?", "What paper does <who> subscribe to?"),
        ("Which newspaper did <who> read before?", "What paper did <who> subscribe to earlier?"),
        ("My grandfather wrote for <new>.", "The woman upstairs reads <new> aloud."),
    ),
    Fact(
        "thesis_topic",
        ("peat bogs", "tidal power", "medieval seals", "bee dances", "river trade", "sleep in teenagers"),
        ("My thesis is about <old>.", "I am writing my thesis on <old>.", "For my thesis I look into <old>."),
        (
            "My supervisor talked me out of <old>, the thesis is about <new>.",
            "New subject for my thesis: <new>.",
            "I threw away the chapter on <old>; I write about <new> now.",
        ),
        (
            "My thesis on <new> grew by ten pages.",
            "I am deep in papers about <new> for my thesis.",
            "I write about <new> all day.",
        ),
        (
            "I abandoned my thesis on <old>.",
            "I've left university, there will be no thesis on <old>.",
            "The thesis about <old> is off, I am taking a break.",
        ),
        ("What is <who>'s thesis about?", "What does <who> write about at university?"),
        ("What was <who>'s thesis about at first?", "What did <who> write about at university before?"),
        ("There was a lecture on <new> in town.", "A friend wrote a novel about <new>."),
    ),
    Fact(
        "series",
        ("Harbour Lights", "The Cartographer", "Nine Winters", "Salt and Iron", "The Understudy", "Deep Field"),
        ("I am watching <old>, one episode a night.", "The series we follow is <old>.", "I am hooked on <old>."),
        (
            "I finished <old> and began <new>.",
            "We gave <old> a rest and watch <new> in the evenings.",
            "I'm on to <new> now that <old> got dull.",
        ),
        (
            "Two more episodes of <new> tonight.",
            "I am watching <new> with popcorn.",
            "I can't stop talking about <new>, what a series.",
        ),
        (
            "I gave up on <old> halfway, I don't watch any series.",
            "We stopped watching <old>.",
            "I've had enough of <old>, the television is in the cellar.",
        ),
        ("Which series does <who> watch?", "What is <who> watching in the evenings?"),
        ("Which series did <who> watch before?", "What was <who> watching in the evenings earlier?"),
        ("My flatmate hates <new>.", "Somebody at work is an extra in <new>."),
    ),
)
