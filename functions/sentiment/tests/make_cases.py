#!/usr/bin/env python3
"""Writes cases.json: a thousand texts of our own making, and what the pinned TextBlob says about each.

  python3 -m venv /tmp/textblob && /tmp/textblob/bin/pip install -r ../python/requirements.txt
  /tmp/textblob/bin/python make_cases.py

Each line of the file is [text, polarity, subjectivity]; numbers read back as the very doubles that TextBlob gave.
"""

import json
import pathlib
import random

from textblob import TextBlob

THINGS = """meal film book train sensor plug gateway summer winter city garden teacher doctor battery phone coffee
soup hotel bridge concert meeting report answer house kitchen river market song game neighbour""".split()
PEOPLE = ["I", "We", "She", "He", "They", "My sister", "Anna", "Mr. Brown", "The crew", "Dr. Hz.", "T. S. Moor"]
GOOD = """good great excellent wonderful lovely nice fine brilliant happy beautiful charming amazing perfect tasty
clever friendly elegant superb delightful fresh honest top-notch light-hearted thought-provoking""".split()
BAD = """bad terrible awful horrible poor ugly boring sad disgusting stupid cruel annoying dull nasty broken cheap
miserable dreadful disappointing pathetic long-winded mind-boggling dim-witted f*cking""".split()
PLAIN = """wooden metallic yearly electric northern public second early new old cold hot small large 13th 3rd full
main other own able same quiet open""".split()
UNKNOWN = "zorble quxly flim grompf vendle snark yttria blorpy mumbly wug zz q xy".split()
ADVERBS = """very really extremely quite rather slightly incredibly absolutely hardly barely truly terribly pretty
fairly so too completely utterly remarkably surprisingly""".split()
NEGATIONS = ["not", "never", "no", "isn't", "wasn't", "don't", "can't", "couldn't", "won't", "NOT", "No", "cannot"]
EMOTICONS = """:) :-) :( :-( :D :-D ;) ;-) :P :-p XD xD <3 ♥ :'( :/ :-/ :o :-O :c :c) :o) 8) 8-D >:( >:D o_O o.O °O° =)
=( =D :3 :] ;] :S :\\ :-. >.> *) *-) ;^) :^) :{ :}""".split()
MARKS = [".", "!", "?", "...", "!!", "?!", " !", " .", ";", ":", "", "!!!", " (!)", " ( ! )", "(!)", '."', "!)", ".'"]
LONG_FORMS = ["in good taste", "for sure", "used to", "in stock", "full of life", "done with", "adequate to",
              "implicit in", "across-the-board", "over-the-top", "state of the art", "well-off", "far-out"]
NUMBERS = ["3", "42", "3.14", "1,000", "50%", "$5", "-7", "1e9", "2nd", "20th", "12:30", "1/2", "#1", "0"]
UNICODE = ["naïve", "café", "größer", "добрый", "好", "👍", "😀", "élan", "İyi", "\u212aind", "Ⓧ", "straße", "señor",
           "ΣΑΣ", "e\u0301", "\u00a0", "\u2003", "\u2028", "\u3000", "\u200b", "“good”", "‘bad’", "it’s", "—", "…"]
SHORT = ["a", "is", "an", "of", "it", "to", "the", "and", "some", "such", "'", "''", "b.", "U.S.", "e.g.", "etc.",
         "vs.", "w/", "Mr.", "A|.", "x.y", "...", "....", "..a..", "-", "--", "(", ")", "[", "]", "*", "'d", "'ll"]
# Texts that no template makes.
HAND = [
    "", " ", "\n", "\n\n", "!", "!!!", "(!)", ".", "...", "'", '"', "n't", "not", "very", "very not good", "really not good",
    "really not a good day", "not really good", "not very good!", "no no good", "never never bad", "good!", "good !!!",
    "best!!!!!!!!!!", "worst !!!!!!!", "not good (!)", "What a great idea ( ! )", "great ( !)", "great (! )", "8-D", "18)",
    "boxD wins", "XD", "xd", ": )", ": - )", ":  )", "good:)", "good :)bad", ": c )", ": c", ":c )", ": o", ":o )",
    "good\n\nbad", "good\r\n\r\nbad", "good\n\n\n\nbad :\n\n)", "good END-OF-SENTENCE bad", "END-OF-SENTENCE.", "good\rbad",
    "very\n\ngood", "not\tgood", "good\u0085bad", "good\x1cbad", "good\x0bbad", "very good very bad", "very very very good",
    "extremely extremely bad", "extremely good extremely good", "not terribly bad", "terribly not bad", "hardly not bad",
    "quickly not bad", "not 'good'", "not a 'good' thing", "not 'a' good thing", "Not GOOD", "GOOD", "Good.Bad",
    "good.bad", "good,bad", "good-bad", "good/bad", "(good)", "[[good]]", "good)))", "*good*", "_good_", "~good~", "$good",
    "Good Mr. Bad Mr.", "It was good etc. and bad.", "It was so good vs. bad.", "U.S. great.", "a.m. great",
    "He said \"good!\" and left.", "He said 'bad.' and left.", "“Great.” “Awful!”", "Great.) Awful.", "..good..",
    "good....", "good...!", "good.!.", "good!.", "good?!", "Hz. good", "Hz good", "Tx.", "A|.", "AbC. good", "Abc.. good",
    "...good", "I can't say it's bad.", "It ain't bad", "shouldn't won't isn't", "dammit", "not dammit!",
    "\u212aind people", "\u212aIND", "very İs good", "very İ good", "not \u0130 good", "not é good", "not éé good", "°o°", "° O °",
    "°O° °o°", "♥ ♥♥", "<3<3", "< 3", "5 <3", "good <3 bad", ":-. good", ":-.", ": - .", ">.>", "> . >", ":'(", ": ' (", ":'''(",
    ";'(", "o_O", "o _ O", "O_o", "*-)", "* )", ":\\", ">:\\", "=/", "= /", ":^)", ":>", ":b", ":S", ":s", ": S good",
    "\ufeffgood", "good\u200bbad", "good\u2028bad", "good\u180ebad", "good\x00bad", "a" * 300, "good " * 50, "very " * 20 + "good",
]


def word(r):
    kind = r.random()
    if kind < 0.3:
        return r.choice(GOOD)
    if kind < 0.6:
        return r.choice(BAD)
    if kind < 0.75:
        return r.choice(PLAIN)
    if kind < 0.85:
        return r.choice(LONG_FORMS)
    return r.choice(UNKNOWN)


def cased(r, text):
    kind = r.random()
    if kind < 0.8:
        return text
    if kind < 0.87:
        return text.upper()
    if kind < 0.94:
        return text.title()
    return "".join(c.upper() if r.random() < 0.5 else c for c in text)


def phrase(r):
    parts = []
    if r.random() < 0.3:
        parts.append(r.choice(NEGATIONS))
    if r.random() < 0.25:
        parts.append(r.choice(SHORT))
    parts += [r.choice(ADVERBS) for _ in range(r.choice([0, 0, 1, 1, 2]))]
    if r.random() < 0.15:
        parts.append(r.choice(NEGATIONS))
    parts.append(word(r))
    return " ".join(parts)


def sentence(r):
    form = r.randrange(6)
    if form == 0:
        text = f"The {r.choice(THINGS)} was {phrase(r)}"
    elif form == 1:
        text = f"{r.choice(PEOPLE)} had a {phrase(r)} {r.choice(THINGS)} and {phrase(r)} {r.choice(THINGS)}"
    elif form == 2:
        text = f"{r.choice(PEOPLE)}'d say it's {phrase(r)}, {phrase(r)} but {phrase(r)}"
    elif form == 3:
        text = f"{phrase(r)} {r.choice(NUMBERS)} {r.choice(THINGS)}s for {r.choice(NUMBERS)} {phrase(r)}"
    elif form == 4:
        text = f"{r.choice(UNICODE)} {phrase(r)} {r.choice(UNICODE)}{r.choice(['', ' '])}{phrase(r)}"
    else:
        bag = [GOOD, BAD, PLAIN, UNKNOWN, ADVERBS, NEGATIONS, EMOTICONS, SHORT, NUMBERS, UNICODE, LONG_FORMS, MARKS]
        text = r.choice([" ", " ", "  ", ""]).join(r.choice(r.choice(bag)) for _ in range(r.randint(2, 12)))
    text = cased(r, text) + r.choice(MARKS)
    if r.random() < 0.3:
        text += r.choice([" ", " ", "", "  "]) + r.choice(EMOTICONS)
        text = text.replace(":)", ": )") if r.random() < 0.1 else text
    return text


def main():
    r = random.Random(20)
    texts = list(dict.fromkeys(HAND))
    while len(texts) < 1000:
        text = r.choice([" ", "\n", "\n\n", "\r\n\r\n", "", "\t"]).join(sentence(r) for _ in range(r.choice([1, 1, 2, 3])))
        if text not in texts:
            texts.append(text)
    lines = []
    for text in texts:
        polarity, subjectivity = TextBlob(text).sentiment
        lines.append(json.dumps([text, float(polarity), float(subjectivity)], ensure_ascii=True))
    path = pathlib.Path(__file__).parent / "cases.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
