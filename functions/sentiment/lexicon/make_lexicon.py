#!/usr/bin/env python3
"""Writes lexicon.inc and emoticons.inc from the lexicon inside the installed TextBlob (python/requirements.txt).

  python3 -m venv /tmp/textblob && /tmp/textblob/bin/pip install -r ../python/requirements.txt
  /tmp/textblob/bin/python make_lexicon.py

A row is what TextBlob looks at for a word whose part of speech it does not know: polarity, subjectivity and intensity,
averaged over its senses, and whether it may be an adverb, which then scales the word that follows. Adverbs that
TextBlob derives from adjectives are in it. Words that a text can never hold as one token (with a space or an
apostrophe) are left out. Values are written in the shortest form that reads back as the same double.
"""

import importlib.metadata
import pathlib

from textblob._text import EMOTICONS
from textblob.en import sentiment

HERE = pathlib.Path(__file__).parent


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    sentiment.load()
    words = {word: tags for word, tags in dict.items(sentiment) if " " not in word and "'" not in word}
    assert all(word.isascii() and word == word.lower() for word in words)
    head = f"// From TextBlob {importlib.metadata.version('textblob')} by make_lexicon.py; see README.md for source and licence.\n"
    with open(HERE / "lexicon.inc", "w", encoding="utf-8") as out:
        out.write(head + "// word, polarity, subjectivity, intensity, adverb\n")
        for word in sorted(words):
            polarity, subjectivity, intensity = words[word][None]
            assert intensity > 0
            adverb = "true" if "RB" in words[word] else "false"
            out.write(f"{{{quoted(word)}, {polarity!r}, {subjectivity!r}, {intensity!r}, {adverb}}},\n")
    with open(HERE / "emoticons.inc", "w", encoding="utf-8") as out:
        out.write(head + "// emoticon, polarity; in the order in which they are tried\n")
        for (_, polarity), texts in EMOTICONS.items():
            for text in sorted(texts):
                out.write(f"{{{quoted(text)}, {polarity!r}}},\n")


if __name__ == "__main__":
    main()
