"""Facts about people as they say them in chats, and how they say later that a fact has changed or holds no more.

Every fact has forms of its first statement, of a change that says so, of another value said plainly, and of a
withdrawal; `<old>` and `<new>` are values. Questions name the person, `<who>`. The facts of `FACTS` at even places were
there when ranking was designed; those at odd places are held back to measure it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One kind of fact about a person.

    Attributes:
        name: what it is about.
        values: what it may be.
        stated: first statements.
        changed: statements of a new value that say that it is new.
        restated: statements of a new value that name no change.
        withdrawn: statements that the old value holds no more, without a new one.
        now: questions for what holds.
        before: questions for what held before.
        others: what a person says about somebody else.
    """

    name: str
    values: tuple[str, ...]
    stated: tuple[str, ...]
    changed: tuple[str, ...]
    restated: tuple[str, ...]
    withdrawn: tuple[str, ...]
    now: tuple[str, ...]
    before: tuple[str, ...]
    others: tuple[str, ...]


FACTS = (
    Fact(
        "home_city",
        ("Oslo", "Bergen", "Porto", "Lyon", "Gdansk", "Leeds"),
        ("I live in <old>, right by the station.", "My flat is in <old>, third floor and no lift."),
        ("We moved to <new> at the weekend, boxes everywhere!", "I have left <old> for good, <new> is home now."),
        ("Living in <new> is noisier than I thought.", "My street here in <new> gets swept every morning."),
        ("I gave up my flat in <old>, sleeping on sofas until I find something.",),
        ("Where does <who> live?", "Which city does <who> live in now?"),
        ("Where did <who> live before?", "Which city did <who> live in earlier?"),
        ("My cousin lives in <new> with two cats.",),
    ),
    Fact(
        "job",
        ("nurse", "welder", "librarian", "tram driver", "baker", "surveyor"),
        ("I work as a <old>, mostly early shifts.", "Being a <old> pays the bills for me."),
        ("I quit being a <old>, from Monday I am a <new>.", "Career change: I started as a <new> this week!"),
        ("My job as a <new> keeps me on my feet all day.", "As a <new> you meet the oddest people."),
        ("I no longer work as a <old>, they let half of us go.",),
        ("What does <who> do for a living?", "What is <who>'s job?"),
        ("What was <who>'s job before?", "What did <who> use to do for a living?"),
        ("My neighbour trains to become a <new>.",),
    ),
    Fact(
        "favourite_colour",
        ("green", "crimson", "turquoise", "mustard yellow", "violet", "white"),
        ("My favourite colour is <old>, always has been.", "If I may choose a colour I take <old>."),
        ("I have gone off <old>; these days my favourite colour is <new>.", "My new favourite colour is <new>."),
        ("<new> is my favourite colour, the whole hall is painted in it.", "Best colour of all: <new>."),
        ("I don't have a favourite colour anymore, <old> got boring.",),
        ("What is <who>'s favourite colour?", "Which colour does <who> like best?"),
        ("What was <who>'s favourite colour earlier?", "Which colour did <who> like best in the past?"),
        ("My sister wants her room in <new>.",),
    ),
    Fact(
        "pet",
        (
            "a beagle called Moss",
            "a tabby cat called Pip",
            "two rabbits",
            "a parrot called Rio",
            "a tortoise",
            "a pony",
        ),
        ("We have <old> at home.", "I look after <old>, my best friend."),
        ("We gave <old> to my aunt and got <new> instead.", "After the allergy test we now keep <new>."),
        (
            "<new> chewed through my charger, the joys of keeping animals at home.",
            "Walks and food for <new> again, our only pet.",
        ),
        ("Sad day, we had to say goodbye to <old>; no pets in the house any more.",),
        ("What pet does <who> have?", "Which animal lives with <who>?"),
        ("What pet did <who> have before?", "Which animal used to live with <who>?"),
        ("The boy next door got <new> for his birthday.",),
    ),
    Fact(
        "diet",
        ("vegetarian", "vegan", "on a keto diet", "pescatarian", "gluten-free", "off sugar"),
        ("I am <old>, so please no surprises at dinner.", "I eat <old> food only, I mean it: I am <old>."),
        ("I stopped being <old> last month, I am <new> now.", "Diet news: I switched and am <new> now."),
        ("I am <new>, so I bring my own lunch to the office.", "Being <new> at a barbecue is hard for me."),
        ("I have given up being <old>, I eat everything again.",),
        ("What diet is <who> on?", "How does <who> eat?"),
        ("What diet was <who> on before?", "How did <who> eat earlier?"),
        ("My boss turned <new> and talks of nothing else.",),
    ),
    Fact(
        "vehicle",
        ("a red Volvo", "an old Fiat", "a cargo bike", "a scooter", "a camper van", "an electric Kia"),
        ("I drive <old>, it gets me everywhere.", "My way to work is by <old>, ten minutes."),
        ("Sold <old> yesterday and picked up <new>.", "I replaced <old> with <new>, so much easier to park."),
        ("I take <new> to work, ten minutes door to door.", "Filled up <new>, I drive it every day."),
        ("I sold <old> and go on foot, no vehicle at all for me.",),
        ("What does <who> drive?", "Which vehicle does <who> have?"),
        ("What did <who> drive before?", "Which vehicle did <who> have previously?"),
        ("Dad rents <new> for the holidays.",),
    ),
    Fact(
        "instrument",
        ("the cello", "the drums", "the accordion", "the harp", "the bass guitar", "the oboe"),
        ("I play <old>, lessons every Tuesday.", "I have been learning <old> for a year, practising daily."),
        ("I dropped <old> and took up <new> instead.", "My teacher talked me into <new>, so no more <old>."),
        ("My lesson on <new> went well, the scales are coming along.", "Practised <new> until the neighbours knocked."),
        ("I have stopped playing <old>, my wrist hurts too much.",),
        ("Which instrument does <who> play?", "What instrument is <who> learning?"),
        ("Which instrument did <who> play before?", "What instrument was <who> learning earlier?"),
        ("My flatmate wants to learn <new>.",),
    ),
    Fact(
        "gym",
        ("Forma gym", "the harbour pool", "Iron Yard gym", "the climbing hall", "Studio Nine", "the rowing club"),
        ("I work out at <old> three times a week.", "I signed up at <old>, a year's membership."),
        ("I moved my membership from <old> to <new>.", "Changed to <new>, <old> was always full."),
        ("Sweating at <new> after work as always.", "My trainer at <new> is merciless."),
        ("I cancelled my membership at <old>, the sofa won.",),
        ("Where does <who> work out?", "Where does <who> train?"),
        ("Where did <who> work out before?", "Where did <who> use to train?"),
        ("My colleague lost ten kilos at <new>.",),
    ),
    Fact(
        "partner",
        ("Tomas", "Leonie", "Marek", "Sunniva", "Ebba", "Yusuf"),
        ("I am dating <old>, we met at the choir.", "<old> and I are a couple, three months already."),
        ("<old> and I split up; I am with <new> now.", "I am seeing somebody new, <new> from the bakery."),
        (
            "<new> and I have been a couple for weeks, and the flowers keep coming.",
            "My dear partner <new> cooked for me tonight.",
        ),
        ("<old> and I broke up, I am single.",),
        ("Who is <who> dating?", "Who is <who>'s partner?"),
        ("Who was <who> dating before?", "Who was <who>'s partner earlier?"),
        ("My best friend is engaged to <new>.",),
    ),
    Fact(
        "language",
        ("Portuguese", "Welsh", "Japanese", "Polish", "Arabic", "Greek"),
        ("I am learning <old>, twenty words a day.", "I take an evening course in <old>."),
        ("I swapped <old> for <new>, a new language for a new year.", "Gave up on <old>, I study <new> now."),
        ("My evening course in <new> had a test today.", "Twenty words of <new> a day, my head is full."),
        ("I quit learning <old>, no time for languages.",),
        ("Which language is <who> learning?", "What language does <who> study?"),
        ("Which language was <who> learning before?", "What language did <who> study earlier?"),
        ("My aunt teaches <new> at the college.",),
    ),
    Fact(
        "reading_group_time",
        ("Mondays", "Tuesday nights", "Wednesdays at seven", "Thursdays", "Friday noon", "Sunday mornings"),
        ("Our reading group meets on <old>.", "The reading group is on <old>, do come."),
        ("The reading group was moved from <old> to <new>.", "New slot for the reading group: <new>."),
        ("See you at the reading group, it is on <new>.", "I keep <new> free for the reading group."),
        ("Our reading group is dissolved, nobody could make <old>.",),
        ("When does <who>'s reading group meet?", "On which day is <who>'s reading group?"),
        ("When did <who>'s reading group meet before?", "On which day was <who>'s reading group at first?"),
        ("The chess people meet on <new>.",),
    ),
    Fact(
        "phone",
        ("a Motorola", "a Pixel", "an iPhone", "a Fairphone", "an old Nokia", "a Galaxy"),
        ("My phone is <old>, cracked screen and all.", "I use <old> as my phone."),
        ("I traded <old> for <new>, the new phone takes better pictures.", "New phone! I switched to <new>."),
        ("The battery of my phone, <new>, lasts two days.", "I wrote this on <new>, my phone."),
        ("I got rid of <old> and have no phone now, call the landline.",),
        ("What phone does <who> have?", "Which phone does <who> use?"),
        ("What phone did <who> have before?", "Which phone did <who> use previously?"),
        ("My nephew begs for <new> every day.",),
    ),
    Fact(
        "morning_drink",
        ("oat milk cappuccino", "black coffee", "mint tea", "hot chocolate", "chai latte", "espresso"),
        ("I start every day with <old>.", "My order at the cafe is always <old>."),
        ("I switched from <old> to <new> in the mornings.", "No more <old>: my usual order is <new> now."),
        ("I start every day with <new>, nothing else wakes me.", "At the cafe they bring me <new> without asking."),
        ("I have stopped drinking <old>, just water in the mornings.",),
        ("What does <who> drink in the morning?", "What is <who>'s usual order at the cafe?"),
        ("What did <who> drink in the morning before?", "What was <who>'s usual order at the cafe earlier?"),
        ("The man at the next table spilled <new>.",),
    ),
    Fact(
        "wedding_place",
        (
            "June in Lisbon",
            "the barn in May",
            "a beach in August",
            "the town hall",
            "the vineyard in September",
            "my parents' garden",
        ),
        ("The wedding will be at: <old>, invitations follow.", "We have booked the wedding, <old>."),
        ("We moved the wedding, <old> was impossible: it is <new>.", "Change of plan for the wedding: <new>."),
        ("The wedding at <new> needs forty chairs.", "Forty guests for the wedding, <new>, can you believe it."),
        ("We called off the wedding, <old> gave us the deposit back.",),
        ("Where is <who>'s wedding?", "What is the plan for <who>'s wedding?"),
        ("Where was <who>'s wedding planned at first?", "What was the first plan for <who>'s wedding?"),
        ("My brother's wedding was <new>, it rained.",),
    ),
    Fact(
        "dentist",
        ("Dr. Lindqvist", "Dr. Obi", "Dr. Halloran", "Dr. Petrov", "Dr. Sato", "Dr. Merz"),
        ("My dentist is <old>, very gentle.", "I see <old> for my teeth."),
        ("<old> retired, <new> is my dentist now.", "I changed dentists, <new> looks after my teeth now."),
        ("<new> found a hole in my tooth, at least a kind dentist.", "Dentist today, <new> was running late."),
        ("I have no dentist any more, <old> closed the practice.",),
        ("Who is <who>'s dentist?", "Which dentist does <who> see?"),
        ("Who was <who>'s dentist before?", "Which dentist did <who> see earlier?"),
        ("My mother swears by <new>.",),
    ),
    Fact(
        "book_project",
        ("a novel about bees", "a memoir", "a cookbook", "a crime series", "a libretto", "a guide to moss"),
        ("I am writing <old>, chapter two at the moment.", "My book project is <old>."),
        ("I threw <old> away, I am writing <new> now.", "New book project: <new> instead of <old>."),
        ("Wrote five pages of <new> today, my book grows.", "Chapter one of <new> is with my reader, the book lives."),
        ("I stopped writing <old>, the book is dead.",),
        ("What is <who> writing?", "What book is <who> working on?"),
        ("What was <who> writing before?", "What book did <who> work on earlier?"),
        ("The library has <new> on display.",),
    ),
    Fact(
        "allergy",
        ("peanuts", "shellfish", "pollen", "penicillin", "cats", "strawberries"),
        ("I am allergic to <old>, I swell up at once.", "Doctor says I have an allergy to <old>."),
        ("New test: not <old> at all, I am allergic to <new>.", "The allergy was never <old>; it is <new>."),
        ("I am allergic to <new>, my pills are always with me.", "My allergy to <new> flared up at lunch."),
        ("Good news, I am not allergic to <old> any more.",),
        ("What is <who> allergic to?", "Which allergy does <who> have?"),
        ("What was <who> thought to be allergic to at first?", "Which allergy did <who> have before?"),
        ("The class has a child allergic to <new>.",),
    ),
    Fact(
        "bank",
        ("Sunbank", "the credit union", "Postbank", "Nordea", "Triodos", "Monzo"),
        ("My account is with <old>.", "I bank with <old>, they are friendly."),
        ("I closed my account at <old> and bank with <new> now.", "Switched banks: <new> it is."),
        ("My account at <new> is blocked again, banks are a pain.", "The app of my bank, <new>, crashed at the till."),
        ("I closed my account at <old>, cash only for now.",),
        ("Which bank does <who> use?", "Where does <who> have an account?"),
        ("Which bank did <who> use before?", "Where did <who> have an account previously?"),
        ("My uncle works for <new>.",),
    ),
    Fact(
        "summer_holiday",
        ("Iceland", "Sicily", "Vietnam", "the Azores", "Scotland", "Morocco"),
        ("We are going to <old> this summer.", "Summer holiday is settled, <old> for two weeks."),
        (
            "The trip to <old> is off, we are going to <new> this summer.",
            "Holiday plans changed, <new> instead of <old>.",
        ),
        (
            "I bought the tickets for the summer, <new> here we come.",
            "Reading a guide to <new> for our summer holiday.",
        ),
        ("We cancelled the summer holiday in <old> and stay at home.",),
        ("Where is <who> going this summer?", "What are <who>'s plans for the summer holiday?"),
        (
            "Where had <who> planned to go this summer at first?",
            "What were <who>'s earlier plans for the summer holiday?",
        ),
        ("My boss went to <new> last year and loved it.",),
    ),
    Fact(
        "football_team",
        ("Juventus", "Ajax", "Celtic", "Benfica", "Malmo", "Sparta"),
        ("I support <old>, my scarf is older than me.", "My team is <old>, through thick and thin."),
        ("I am done with <old>, I support <new> now.", "I changed teams, <new> since the summer."),
        ("What a goal by <new>, I love my team.", "I support <new>, and my voice is gone after the match."),
        ("I don't support <old> any more, football is not for me.",),
        ("Which team does <who> support?", "What is <who>'s football team?"),
        ("Which team did <who> support before?", "What was <who>'s football team earlier?"),
        ("My landlord shouts for <new> every Saturday.",),
    ),
)

SMALL_TALK = """\
The bus was late again and I got soaked.
Did you sleep well?
I finally fixed the tap in the kitchen.
That film last night was far too long.
I burnt the rice, so it was toast for dinner.
My back hurts from all the gardening.
Can you recommend a podcast about history?
The meeting could have been an email.
I found ten euros in an old coat!
It smells of snow outside.
The printer at work jams every single day.
I need a nap.
We watched the stars from the roof.
My phone bill doubled, no idea why.
The kids next door built a den.
I have a cold and sound like a frog.
What should I bring to the party?
The train strike starts tomorrow.
I planted tomatoes on the balcony.
Somebody stole my umbrella.
The soup needs more salt.
I ran five kilometres without stopping.
The lift is broken again.
My grandmother turned ninety, what a feast.
I can't find my keys anywhere.
Lovely light this evening over the river.
The new bakery does amazing rolls.
I read half the night.
My inbox has two thousand unread mails.
We played cards until two.
Work was wild today, three people ill.
I got a parking ticket.
The cat next door sits in our garden.
I am so tired of this rain.
My cousin sent pictures from her journey.
Do you think it will hold until Friday?
I cleaned the windows, finally.
The museum was free today.
I had the best pancakes ever.
The heating makes strange noises.
""".splitlines()
REPLIES = """\
Good to know!
Oh, how did that go?
I see.
Ha, that sounds like you.
Thanks for the update.
Really? Say more.
Sounds like a lot.
Nice!
Hm, I would not have guessed.
Take care of yourself.
Noted.
That made me smile.
""".splitlines()
LEADS = ("", "", "", "By the way, ", "Oh, and ", "So, ", "Anyway: ", "Did I mention? ")
