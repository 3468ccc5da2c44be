// The words of the generated German-English corpus, with the forms its grammar needs.
#include "qkv/data/german_lexicon.h"

namespace qkv {
namespace {

constexpr Gender M = Gender::masculine, F = Gender::feminine, N = Gender::neuter;
constexpr unsigned kAlive = kPerson | kAnimal;

constexpr GermanNoun kNouns[] = {
    {"Mann", "Männer", M, "man", "men", kPerson},
    {"Frau", "Frauen", F, "woman", "women", kPerson},
    {"Kind", "Kinder", N, "child", "children", kPerson},
    {"Mädchen", "Mädchen", N, "girl", "girls", kPerson},
    {"Junge", "Jungen", M, "boy", "boys", kPerson, "Jungen"},
    {"Lehrerin", "Lehrerinnen", F, "teacher", "teachers", kPerson},
    {"Arzt", "Ärzte", M, "doctor", "doctors", kPerson},
    {"Bauer", "Bauern", M, "farmer", "farmers", kPerson, "Bauern"},
    {"Freundin", "Freundinnen", F, "friend", "friends", kPerson},
    {"Nachbar", "Nachbarn", M, "neighbour", "neighbours", kPerson, "Nachbarn"},
    {"König", "Könige", M, "king", "kings", kPerson},
    {"Köchin", "Köchinnen", F, "cook", "cooks", kPerson},
    {"Hund", "Hunde", M, "dog", "dogs", kAnimal},
    {"Katze", "Katzen", F, "cat", "cats", kAnimal},
    {"Pferd", "Pferde", N, "horse", "horses", kAnimal},
    {"Vogel", "Vögel", M, "bird", "birds", kAnimal},
    {"Maus", "Mäuse", F, "mouse", "mice", kAnimal},
    {"Elefant", "Elefanten", M, "elephant", "elephants", kAnimal, "Elefanten"},
    {"Ball", "Bälle", M, "ball", "balls", kThing},
    {"Tisch", "Tische", M, "table", "tables", kThing},
    {"Lampe", "Lampen", F, "lamp", "lamps", kThing},
    {"Fahrrad", "Fahrräder", N, "bicycle", "bicycles", kThing},
    {"Auto", "Autos", N, "car", "cars", kThing},
    {"Schlüssel", "Schlüssel", M, "key", "keys", kThing},
    {"Blume", "Blumen", F, "flower", "flowers", kThing},
    {"Regenschirm", "Regenschirme", M, "umbrella", "umbrellas", kThing | kOpenable},
    {"Tür", "Türen", F, "door", "doors", kOpenable},
    {"Fenster", "Fenster", N, "window", "windows", kOpenable},
    {"Kiste", "Kisten", F, "box", "boxes", kThing | kOpenable},
    {"Koffer", "Koffer", M, "suitcase", "suitcases", kThing | kOpenable},
    {"Apfel", "Äpfel", M, "apple", "apples", kFood},
    {"Brot", "Brote", N, "loaf", "loaves", kFood},
    {"Kuchen", "Kuchen", M, "cake", "cakes", kFood},
    {"Birne", "Birnen", F, "pear", "pears", kFood},
    {"Ei", "Eier", N, "egg", "eggs", kFood},
    {"Fisch", "Fische", M, "fish", "fish", kFood},
    {"Hemd", "Hemden", N, "shirt", "shirts", kClothes},
    {"Jacke", "Jacken", F, "jacket", "jackets", kClothes},
    {"Mantel", "Mäntel", M, "coat", "coats", kClothes},
    {"Hut", "Hüte", M, "hat", "hats", kClothes},
    {"Kleid", "Kleider", N, "dress", "dresses", kClothes},
    {"Buch", "Bücher", N, "book", "books", kReadable},
    {"Brief", "Briefe", M, "letter", "letters", kReadable},
    {"Zeitung", "Zeitungen", F, "newspaper", "newspapers", kReadable},
    {"Gedicht", "Gedichte", N, "poem", "poems", kReadable},
};

constexpr unsigned kSolid = kThing | kOpenable | kClothes | kReadable;
constexpr GermanAdjective kAdjectives[] = {
    {"alt", "alt", "old", kAlive | kSolid | kPlace},
    {"jung", "jung", "young", kAlive},
    {"klein", "klein", "small", kAnything | kOpenable | kPlace},
    {"groß", "groß", "big", kAnything | kOpenable | kPlace},
    {"schön", "schön", "beautiful", kAlive | kSolid | kPlace},
    {"müd", "müde", "tired", kAlive},
    {"hungrig", "hungrig", "hungry", kAlive},
    {"glücklich", "glücklich", "happy", kAlive},
    {"freundlich", "freundlich", "friendly", kAlive},
    {"schnell", "schnell", "fast", kAnimal},
    {"rot", "rot", "red", kThing | kOpenable | kClothes},
    {"blau", "blau", "blue", kThing | kOpenable | kClothes},
    {"grün", "grün", "green", kThing | kOpenable | kClothes},
    {"schwarz", "schwarz", "black", kAnimal | kThing | kOpenable | kClothes},
    {"weiß", "weiß", "white", kAnimal | kThing | kOpenable | kClothes},
    {"neu", "neu", "new", kSolid | kPlace},
    {"leer", "leer", "empty", kPlace},
    {"frisch", "frisch", "fresh", kFood},
    {"süß", "süß", "sweet", kFood},
    {"billig", "billig", "cheap", kGoods},
    {"lang", "lang", "long", kReadable | kClothes},
    {"langweilig", "langweilig", "boring", kReadable},
};

constexpr GermanVerb kVerbs[] = {
    {"sehen", "sieht", "gesehen", "", "see", "sees", "seen", "", kAlive, kAnything | kOpenable},
    {"suchen", "sucht", "gesucht", "", "look", "looks", "looked", "for", kAlive, kAnything},
    {"finden", "findet", "gefunden", "", "find", "finds", "found", "", kAlive, kAnything},
    {"kaufen", "kauft", "gekauft", "", "buy", "buys", "bought", "", kPerson, kGoods},
    {"verkaufen", "verkauft", "verkauft", "", "sell", "sells", "sold", "", kPerson, kGoods},
    {"tragen", "trägt", "getragen", "", "carry", "carries", "carried", "", kAlive, kThing | kAnimal},
    {"malen", "malt", "gemalt", "", "paint", "paints", "painted", "", kPerson, kPerson | kAnimal | kThing},
    {"zeichnen", "zeichnet", "gezeichnet", "", "draw", "draws", "drawn", "", kPerson, kPerson | kAnimal | kOpenable},
    {"lesen", "liest", "gelesen", "", "read", "reads", "read", "", kPerson, kReadable},
    {"schreiben", "schreibt", "geschrieben", "", "write", "writes", "written", "", kPerson, kReadable},
    {"essen", "isst", "gegessen", "", "eat", "eats", "eaten", "", kAlive, kFood},
    {"waschen", "wäscht", "gewaschen", "", "wash", "washes", "washed", "", kPerson, kClothes | kAnimal | kFood},
    {"lieben", "liebt", "geliebt", "", "love", "loves", "loved", "", kAlive, kAlive},
    {"besuchen", "besucht", "besucht", "", "visit", "visits", "visited", "", kPerson, kPerson},
    {"fragen", "fragt", "gefragt", "", "ask", "asks", "asked", "", kPerson, kPerson},
    {"fangen", "fängt", "gefangen", "", "catch", "catches", "caught", "", kAlive, kAnimal},
    {"füttern", "füttert", "gefüttert", "", "feed", "feeds", "fed", "", kPerson, kAnimal},
    {"bringen", "bringt", "gebracht", "", "bring", "brings", "brought", "", kAlive, kGoods},
    {"vergessen", "vergisst", "vergessen", "", "forget", "forgets", "forgotten", "", kPerson, kGoods},
    {"machen", "macht", "gemacht", "auf", "open", "opens", "opened", "", kPerson, kOpenable},
    {"machen", "macht", "gemacht", "zu", "close", "closes", "closed", "", kPerson, kOpenable},
    {"holen", "holt", "geholt", "ab", "pick", "picks", "picked", "up", kPerson, kPerson | kThing},
    {"rufen", "ruft", "gerufen", "an", "call", "calls", "called", "", kPerson, kPerson},
    {"werfen", "wirft", "geworfen", "weg", "throw", "throws", "thrown", "away", kPerson, kThing | kFood | kReadable},
    {"nehmen", "nimmt", "genommen", "mit", "take", "takes", "taken", "along", kPerson, kAnimal | kGoods},
    {"ziehen", "zieht", "gezogen", "an", "put", "puts", "put", "on", kPerson, kClothes},
    {"lesen", "liest", "gelesen", "vor", "read", "reads", "read", "out", kPerson, kReadable},
    {"heben", "hebt", "gehoben", "auf", "lift", "lifts", "lifted", "", kPerson, kThing},
    {"schauen", "schaut", "geschaut", "an", "watch", "watches", "watched", "", kAlive, kAlive | kThing},
    {"packen", "packt", "gepackt", "ein", "pack", "packs", "packed", "", kPerson, kGoods},
    {"stellen", "stellt", "gestellt", "vor", "introduce", "introduces", "introduced", "", kPerson, kPerson},
    {"lachen", "lacht", "gelacht", "", "laugh", "laughs", "laughed", "", kPerson, 0},
    {"schlafen", "schläft", "geschlafen", "", "sleep", "sleeps", "slept", "", kAlive, 0},
    {"singen", "singt", "gesungen", "", "sing", "sings", "sung", "", kPerson, 0},
    {"tanzen", "tanzt", "getanzt", "", "dance", "dances", "danced", "", kPerson, 0},
    {"arbeiten", "arbeitet", "gearbeitet", "", "work", "works", "worked", "", kPerson, 0},
    {"warten", "wartet", "gewartet", "", "wait", "waits", "waited", "", kAlive, 0},
    {"weinen", "weint", "geweint", "", "cry", "cries", "cried", "", kPerson, 0},
    {"laufen", "läuft", "gelaufen", "", "run", "runs", "run", "", kAlive, 0, true},
    {"schlafen", "schläft", "geschlafen", "ein", "fall", "falls", "fallen", "asleep", kAlive, 0, true},
    {"stehen", "steht", "gestanden", "auf", "get", "gets", "got", "up", kAlive, 0, true},
    {"kommen", "kommt", "gekommen", "an", "arrive", "arrives", "arrived", "", kAlive, 0, true},
};

constexpr GermanModal kModals[] = {
    {"will", "wollen", "want", "wants", "to"},
    {"kann", "können", "can", "can", ""},
    {"muss", "müssen", "must", "must", ""},
    {"soll", "sollen", "should", "should", ""},
};

constexpr GermanBelief kBeliefs[] = {
    {"sage", "sagt", "sagen", "say", "says"},           {"glaube", "glaubt", "glauben", "believe", "believes"},
    {"weiß", "weiß", "wissen", "know", "knows"},        {"hoffe", "hofft", "hoffen", "hope", "hopes"},
    {"denke", "denkt", "denken", "think", "thinks"},    {"sehe", "sieht", "sehen", "see", "sees"},
    {"träume", "träumt", "träumen", "dream", "dreams"},
};

constexpr GermanPlace kPlaces[] = {
    {"in", "in", {"Garten", "Gärten", M, "garden", "gardens", kPlace}},
    {"in", "in", {"Park", "Parks", M, "park", "parks", kPlace}},
    {"in", "in", {"Küche", "Küchen", F, "kitchen", "kitchens", kPlace}},
    {"in", "in", {"Schule", "Schulen", F, "school", "schools", kPlace}},
    {"in", "in", {"Zimmer", "Zimmer", N, "room", "rooms", kPlace}},
    {"in", "in", {"Wald", "Wälder", M, "forest", "forests", kPlace}},
    {"in", "in", {"Stadt", "Städte", F, "town", "towns", kPlace}},
    {"auf", "on", {"Straße", "Straßen", F, "street", "streets", kPlace}},
    {"auf", "on", {"Brücke", "Brücken", F, "bridge", "bridges", kPlace}},
    {"auf", "at", {"Markt", "Märkte", M, "market", "markets", kPlace}},
    {"vor", "in front of", {"Haus", "Häuser", N, "house", "houses", kPlace}},
    {"hinter", "behind", {"Kirche", "Kirchen", F, "church", "churches", kPlace}},
    {"neben", "next to", {"Brunnen", "Brunnen", M, "fountain", "fountains", kPlace}},
};

constexpr WordPair kTimes[] = {{"heute", "today"},         {"jetzt", "now"},           {"morgens", "in the morning"},
                               {"nachts", "at night"},     {"im Sommer", "in summer"}, {"abends", "in the evening"},
                               {"sonntags", "on Sundays"}, {"jeden Tag", "every day"}};

constexpr WordPair kConjunctions[] = {
    {"weil", "because"}, {"wenn", "when"}, {"obwohl", "although"}, {"während", "while"}, {"bevor", "before"}};

constexpr const char* kGermanSmall[] = {
    "null", "ein", "zwei",  "drei",     "vier",     "fünf",     "sechs",    "sieben",   "acht",     "neun",
    "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr const char* kGermanTens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                       "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
constexpr const char* kEnglishSmall[] = {
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr const char* kEnglishTens[] = {"",      "",      "twenty",  "thirty", "forty",
                                        "fifty", "sixty", "seventy", "eighty", "ninety"};

}  // namespace

std::span<const GermanNoun> german_nouns() { return kNouns; }
std::span<const GermanAdjective> german_adjectives() { return kAdjectives; }
std::span<const GermanVerb> german_verbs() { return kVerbs; }
std::span<const GermanModal> german_modals() { return kModals; }
std::span<const GermanBelief> german_beliefs() { return kBeliefs; }
std::span<const GermanPlace> german_places() { return kPlaces; }
std::span<const WordPair> german_times() { return kTimes; }
std::span<const WordPair> german_conjunctions() { return kConjunctions; }

std::string german_number(int n) {
  if (n < 20) return kGermanSmall[n];
  const std::string tens = kGermanTens[n / 10];
  return n % 10 == 0 ? tens : std::string(kGermanSmall[n % 10]) + "und" + tens;
}

std::string english_number(int n) {
  if (n < 20) return kEnglishSmall[n];
  const std::string tens = kEnglishTens[n / 10];
  return n % 10 == 0 ? tens : tens + "-" + kEnglishSmall[n % 10];
}

}  // namespace qkv
