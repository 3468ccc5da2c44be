#!/usr/bin/env python3
"""Writes tests/fixtures/bleu/cases.json: an independent, slow BLEU on generated sentences full of odd punctuation.

Tokenisation is by regular expressions on characters, n-grams are tuples, and every precision is an exact fraction:
nothing is shared with the C++ beyond the published rules.
"""
import json
import math
import pathlib
import random
import re
import sys
from collections import Counter
from fractions import Fraction

ALONE = "".join(chr(c) for c in range(32, 127) if not chr(c).isalnum() and chr(c) not in "'-.,")


def tokens_13a(text):
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, plain in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        text = text.replace(entity, plain)
    text = " " + text + " "
    text = "".join(f" {c} " if c in ALONE else c for c in text)
    text = re.sub(r"([^0-9])([.,])", r"\1 \2 ", text)
    text = re.sub(r"([.,])([^0-9])", r" \1 \2", text)
    text = re.sub(r"([0-9])(-)", r"\1 \2 ", text)
    return text.split()


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu(outputs, references, effective):
    matched, possible, length, wanted = [0] * 4, [0] * 4, 0, 0
    for i, output in enumerate(outputs):
        out = tokens_13a(output)
        refs = [tokens_13a(list_[i]) for list_ in references]
        length += len(out)
        wanted += min((abs(len(r) - len(out)), len(r)) for r in refs)[1]
        for n in range(1, 5):
            counts = ngrams(out, n)
            possible[n - 1] += sum(counts.values())
            matched[n - 1] += sum(min(c, max(ngrams(r, n)[g] for r in refs)) for g, c in counts.items())
    if not any(matched):
        return 0.0
    precisions, halvings = [], 0
    for top, bottom in zip(matched, possible):
        if bottom == 0:
            break
        if top == 0:
            halvings += 1
            top = Fraction(1, 2**halvings)
        precisions.append(Fraction(top) / bottom)
    if not effective:
        precisions += [Fraction(0)] * (4 - len(precisions))
    if min(precisions) == 0:
        return 0.0
    penalty = 1.0 if length >= wanted else math.exp(1 - wanted / length)
    return 100 * penalty * math.exp(math.fsum(math.log(p) for p in precisions) / len(precisions))


WORDS = """the a man dog two runs in red car. well, U.S. 3.14 1,000 10-year-old it's don't &quot;hi&quot; &amp;lt;b&gt; naïve
Straße ÄPFEL 5-6 (yes) [no] {so} a/b e-mail … – “quote” 100% $5.50 x@y.de #1 *star* ~ ^ _under_ <skipped> 7. .5 ,,  ...
end! what? a:b c;d 1.a a.1 ,9 9, é. .é ½ km² &lt; &gt;= co- op""".split(" ")


def sentence(rng, low=0, high=14):
    words = [rng.choice(WORDS) for _ in range(rng.randint(low, high))]
    return "".join(w + rng.choice([" ", " ", " ", " ", "  ", "\u00a0", "\u3000", ""]) for w in words)


def changed(rng, text):
    words = text.split(" ")
    return " ".join(rng.choice(WORDS) if rng.random() < 0.25 else w for w in words if rng.random() > 0.1)


rng = random.Random(2016)
cases = {"tokens": [], "scores": []}
for _ in range(150):
    text = sentence(rng)
    cases["tokens"].append([text, " ".join(tokens_13a(text))])
for number in range(40):
    first = [sentence(rng) for _ in range(rng.choice([1, 1, 3, 12]))]
    references = [first] + [[changed(rng, t) for t in first] for _ in range(rng.choice([0, 0, 1, 2]))]
    outputs = [changed(rng, t) for t in first]
    effective = rng.random() < 0.3
    score = bleu(outputs, references, effective)
    cases["scores"].append(dict(effective=effective, outputs=outputs, references=references, score=score))

out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/fixtures/bleu")
out.mkdir(parents=True, exist_ok=True)
(out / "cases.json").write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
