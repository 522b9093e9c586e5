"""Word lists and small grammars that values are drawn from. Knows no schema.

Lists are short on purpose: values are combinations (a first and a last name, an adjective and a
noun, syllables), so that a model learns to copy them and cannot learn them by heart.
"""

from __future__ import annotations

import random
from typing import Final


def listed(text: str) -> tuple[str, ...]:
    """The words of `a,b,c`."""
    return tuple(text.split(","))


CITIES: Final = listed(
    "Lisbon,Nairobi,Osaka,Toronto,Leipzig,Santiago,Oslo,Mumbai,Porto,Accra,Kyoto,Calgary,Bremen,"
    "Lima,Bergen,Pune,Madrid,Dakar,Sapporo,Halifax,Dresden,Quito,Tromso,Jaipur,Milan,Tunis,Busan,"
    "Denver,Graz,Bogota,Malmo,Hanoi,Turin,Rabat,Taipei,Austin,Basel,Caracas,Aarhus,Manila,Geneva,"
    "Lagos,Seoul,Portland,Vienna,Cusco,Helsinki,Jakarta,Naples,Cairo,Perth,Phoenix,Krakow,Havana,"
    "Riga,Karachi,Seville,Kampala,Brisbane,Nashville,Prague,Salvador,Tallinn,Dhaka,Valencia,Lusaka,"
    "Adelaide,Boise,Gdansk,Medellin,Vilnius,Colombo,Granada,Harare,Auckland,Tucson,Budapest,Cordoba,"
    "Reykjavik,Kathmandu,Marseille,Windhoek,Wellington,Omaha,Sofia,Rosario,Antwerp,Amman,Lyon,"
    "Cape Town,Salt Lake City,Buenos Aires,New Delhi,San Jose,Mexico City,Tel Aviv,Kuala Lumpur,"
    "Saint Petersburg,Las Palmas,Rio de Janeiro,Fort Worth,Hong Kong,Addis Ababa,Santa Fe,"
    "Los Angeles,New York,San Diego,Abu Dhabi,Ho Chi Minh City,Baton Rouge,Cleveland,Tampa"
)
COUNTRIES: Final = listed(
    "Portugal,Kenya,Japan,Canada,Germany,Chile,Norway,India,Ghana,Peru,Spain,Senegal,Mexico,Austria,"
    "Tunisia,Brazil,Sweden,Vietnam,Italy,Morocco,Ecuador,Denmark,Indonesia,Egypt,Poland,Cuba,Latvia,"
    "Pakistan,Uganda,Australia,Estonia,Bangladesh,Zambia,Lithuania,Colombia,Sri Lanka,Zimbabwe,"
    "New Zealand,Hungary,Argentina,Iceland,Nepal,France,Namibia,Bulgaria,Belgium,Jordan,Finland,"
    "South Korea,Costa Rica,Saudi Arabia,United Kingdom,United States,South Africa,Switzerland,"
    "Turkey,Greece,Ireland,Thailand,Malaysia,Nigeria,Ethiopia,Bolivia,Uruguay,Croatia,Serbia"
)
STATES: Final = listed(
    "Ohio,Texas,Bavaria,Ontario,Kerala,Queensland,Oregon,Andalusia,Punjab,Florida,Tuscany,Quebec,"
    "California,Saxony,Hokkaido,Nevada,Catalonia,Alberta,Victoria,Brittany,Utah,Gujarat,Sicily,Maine,"
    "Patagonia,Scotland,Montana,Lombardy,Normandy,Alaska,Minas Gerais,New South Wales,Tyrol"
)
FIRST_NAMES: Final = listed(
    "Maria,Kenji,Amina,Tom,Ingrid,Luca,Priya,Omar,Elena,Noah,Chidi,Yuki,Hannah,Diego,Fatima,Erik,"
    "Mei,Samuel,Olga,Rafael,Zainab,Peter,Anika,Jonas,Leila,Marcus,Sofia,Tariq,Greta,Mateo,Nadia,"
    "Oliver,Ruth,Ivan,Carmen,David,Asha,Henrik,Lucia,Kwame,Emma,Viktor,Rosa,Daniel,Julia,Hassan,"
    "Clara,Pavel,Grace,Andre,Miriam,Felix,Thandi,George,Irene,Bruno,Helen,Arjun,Alice,Stefan"
)
LAST_NAMES: Final = listed(
    "Lopez,Sato,Yusuf,Becker,Dahl,Rossi,Sharma,Haddad,Petrova,Miller,Okafor,Tanaka,Schmidt,Garcia,"
    "Rahman,Larsen,Chen,Adams,Ivanova,Silva,Bello,Novak,Gupta,Weber,Karimi,Hughes,Moreau,Aziz,"
    "Lindqvist,Torres,Popov,Bennett,Cohen,Kovacs,Ortiz,Morgan,Patel,Nielsen,Romano,Mensah,Clarke,"
    "Hoffmann,Castillo,Foster,Nagy,Mahmoud,Fischer,Dvorak,Walker,Costa,Levi,Keller,Dlamini,Price,"
    "Jansen,Ferrari,Murphy,Reddy,Brandt,Horvat,Quinn,Eriksen,Vargas,Sullivan,Baptiste,Watanabe"
)
LANGUAGES: Final = listed(
    "English,Spanish,Japanese,Swahili,German,Hindi,French,Arabic,Portuguese,Turkish,Korean,Italian,"
    "Polish,Vietnamese,Dutch,Greek,Thai,Swedish,Bengali,Hebrew,Czech,Finnish,Urdu,Danish"
)
COLORS: Final = listed(
    "red,blue,green,yellow,black,white,orange,purple,brown,pink,grey,turquoise,navy,crimson"
)
ADJECTIVES: Final = listed(
    "renewable,coastal,urban,digital,organic,medieval,solar,marine,ancient,modern,rural,arctic,"
    "tropical,industrial,clinical,public,wireless,mobile,portable,vintage,handmade,seasonal,local,"
    "global,electric,hybrid,synthetic,volcanic,nocturnal,migratory,ceramic,acoustic,classical,"
    "abstract,ethical,financial,academic,advanced,automated,early,deep,northern,alpine,desert,"
    "interactive,multilingual,pediatric,chronic,dental,visual,remote,cooperative,historic"
)
NOUNS: Final = listed(
    "energy,reefs,gardening,history,robotics,architecture,farming,transport,photography,nutrition,"
    "pottery,migration,storage,lighting,education,medicine,music,design,logistics,tourism,forestry,"
    "astronomy,irrigation,poetry,recycling,banking,navigation,genetics,textiles,cooking,fishing,"
    "insurance,marketing,mining,painting,therapy,training,wildlife,trade,planning,security,sailing,"
    "batteries,bridges,markets,rivers,festivals,sensors,bicycles,theatre,journalism,carpentry,"
    "glaciers,vaccines,satellites,museums,folklore,ceramics,orchards,beekeeping,typography"
)
THINGS: Final = listed(
    "lamp,kettle,backpack,drill,sofa,headset,monitor,tent,blender,jacket,keyboard,bicycle,camera,"
    "printer,desk,watch,speaker,helmet,toaster,router,mug,notebook,chair,scooter,tripod,lens,"
    "thermostat,guitar,novel,puzzle,candle,umbrella,wallet,charger,mattress,pan"
)
_SYLLABLES: Final = listed(
    "bren,ta,vo,lu,mi,kor,dal,ne,sti,ra,ven,zo,pel,ha,qui,tor,ma,lin,sel,ko,fi,dra,no,ber,al,ti,"
    "gan,ri,os,tek,pra,won,ey,ul,cas,mer,ju,hol,ba,syn"
)
_COMPANY_ENDINGS: Final = ("Systems", "Labs", "Group", "Foods", "Motors", "Energy", "Health", "")
_STREETS: Final = ("Maple Street", "Station Road", "Park Avenue", "Mill Lane", "Elm Drive")
_SENTENCES: Final = (
    "The {thing} arrived {adverb} and works well",
    "Let's meet on {day} to talk about {topic}",
    "I am not happy with the {thing} I bought on {day}",
    "Our team finished the report on {topic}",
    "Please send me the papers about {topic} before {day}",
    "The talk on {topic} was {adverb} good",
    "We open a new office in {city} on {day}",
    "Reminder: bring the {thing} to {city}",
)
_ADVERBS: Final = ("late", "early", "quickly", "surprisingly", "damaged", "safely")
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def person(rng: random.Random) -> str:
    """A first and a last name."""
    return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"


def place(rng: random.Random) -> str:
    """A city, sometimes with its region, a state or a country."""
    match rng.randrange(8):
        case 0:
            return f"{rng.choice(CITIES)}, {rng.choice(COUNTRIES)}"
        case 1:
            return rng.choice(COUNTRIES)
        case 2:
            return rng.choice(STATES)
        case _:
            return rng.choice(CITIES)


def topic(rng: random.Random) -> str:
    """An adjective and a noun, or a noun."""
    noun = rng.choice(NOUNS)
    return noun if rng.random() < 0.2 else f"{rng.choice(ADJECTIVES)} {noun}"


def invented(rng: random.Random) -> str:
    """A name of two or three syllables, capitalised, that no language has."""
    return "".join(rng.sample(_SYLLABLES, rng.choice((2, 2, 3)))).capitalize()


def company(rng: random.Random) -> str:
    """An invented company."""
    return f"{invented(rng)} {rng.choice(_COMPANY_ENDINGS)}".strip()


def product(rng: random.Random) -> str:
    """A thing, with an adjective, a colour or an invented brand."""
    thing = rng.choice(THINGS)
    before = rng.choice((invented(rng), rng.choice(COLORS), rng.choice(ADJECTIVES), ""))
    return f"{before} {thing}".strip()


def title(rng: random.Random) -> str:
    """The title of a book, film, song or report."""
    first, second = rng.choice(ADJECTIVES).capitalize(), rng.choice(NOUNS).capitalize()
    return rng.choice(
        (f"The {first} {second}", f"{second} of {rng.choice(CITIES)}", f"{first} {second}")
    )


def sentence(rng: random.Random) -> str:
    """A short sentence without a full stop."""
    return rng.choice(_SENTENCES).format(
        thing=rng.choice(THINGS),
        topic=topic(rng),
        city=rng.choice(CITIES),
        day=rng.choice(DAYS),
        adverb=rng.choice(_ADVERBS),
    )


def identifier(rng: random.Random) -> str:
    """An id of letters and digits, with or without a dash, or digits alone."""
    letters = "".join(rng.choices("ABCDEFGHJKLMNPRSTUVWX", k=rng.choice((1, 2, 3))))
    digits = str(rng.randint(100, 999999))
    return rng.choice((letters + digits, f"{letters}-{digits}", digits))


def email(rng: random.Random) -> str:
    """An address at a domain that is reserved for examples."""
    name = person(rng).lower()
    return rng.choice((name.replace(" ", "."), name.split()[0])) + rng.choice(
        ("@example.org", "@example.com", "@mail.example.net")
    )


def address(rng: random.Random) -> str:
    """A house number and a street, sometimes with the city."""
    street = f"{rng.randint(1, 999)} {rng.choice(_STREETS)}"
    return street if rng.random() < 0.5 else f"{street}, {rng.choice(CITIES)}"


def word(rng: random.Random) -> str:
    """A lower-case name for files, users and databases."""
    return rng.choice((rng.choice(NOUNS), invented(rng).lower(), rng.choice(THINGS)))
