#!/usr/bin/env python3
"""Writes tests/fuzz/seeds: small files from which the fuzzers start. Needs spm_train (Debian package sentencepiece)."""
import gzip
import json
import pathlib
import struct
import subprocess
import tempfile
import zlib

SEEDS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "seeds"


def seed(target, name, data):
    path = SEEDS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, color, rows, extra=b"", before=b"", interlace=0):
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + before + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def halves(first, second):
    """Where the second file begins is the first byte, in parts of 256."""
    size = len(first) + len(second)
    cut = next(c for c in range(256) if size * c // 256 >= len(first))
    return bytes([cut]) + first + b" " * (size * cut // 256 - len(first)) + second


def pictures():
    seed("png", "grey", png(3, 2, 8, 0, b"\0\1\2\3\0\4\5\6"))
    seed("png", "rgb", png(2, 1, 8, 2, b"\0" + bytes(range(6))))
    seed("png", "rgba", png(2, 1, 8, 6, b"\0" + bytes(range(8))))
    seed("png", "deep", png(1, 1, 16, 2, b"\0" + bytes(6)))
    seed("png", "palette", png(4, 1, 2, 3, b"\0\x1b", chunk(b"PLTE", bytes(12)) + chunk(b"tRNS", b"\x80")))
    seed("png", "interlaced", png(2, 2, 8, 0, b"\0\1\0\2\0\3\4", interlace=1))
    seed("png", "text", png(1, 1, 8, 0, b"\0\7", chunk(b"zTXt", b"k\0\0" + zlib.compress(b" " * 99))))
    seed("png", "before", png(1, 1, 8, 0, b"\0\7", before=chunk(b"teXt", struct.pack(">II", 4096, 4096))))
    seed("png", "made", b"\3\3\x08\0\0\0\0\1" + b"\1abcd\2efgh\3ijkl\4mnop")
    seed("png", "made-palette", b"\5\7\4\3\1\x0c\2\1" + bytes(range(12)) + b"\x80\0")
    images = struct.pack(">IIII", 0x803, 2, 2, 2) + bytes(range(8))
    labels = struct.pack(">II", 0x801, 2) + b"\0\1"
    data = images + labels
    cut = next(c for c in range(256) if len(data) * c // 256 == len(images))
    seed("idx", "two", bytes([cut]) + data)
    packed = gzip.compress(images, mtime=0)
    seed("idx", "packed", halves(packed, labels))


def texts():
    seed("text", "plain", "Zwei Hunde.\r\n\n\xa0\nein Ü" + "b" * 120 + "\n")
    seed("text", "mark", b"\xef\xbb\xbfone\ntwo\xff\n")
    seed("text", "gzip", gzip.compress(b"one\ntwo\n", mtime=0))
    seed("text", "members", gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n" * 500, mtime=0) + b"\0\0")
    seed("pairs", "facts", "Where was Ada born?\tLondon\nWhere was Jürgen born?\tHof\n")
    seed("pairs", "documents", "Ada was born in London.\n\nHof is small.\n")
    seed("parallel", "two", halves(b"Ein Hund.\nZwei.\n", b"A dog.\nTwo.\n"))


def run_files():
    for task in ("reverse", "images", "translate"):
        settings = {"epochs": 2, "lr": 0.001, "seed": 1, "keep": 2, "clip": 1.0, "attention": "multi-head"}
        seed("config", task, json.dumps({"qkv": "0.1.0", "task": task, "simd": "AVX2", "settings": settings}))
    state = {"step": 7, "epoch": 1, "batch": 0, "tokens": 99, "seconds": 1.5, "cpu_seconds": 2.5, "loss_sum": 0.0,
             "loss_targets": 0, "evaluations": 1, "evaluations_since_best": 0, "best_step": 7, "best": 0.5,
             "stopped": "", "rng": {"seed": 1, "counter": 7}, "metrics_bytes": 100, "events_bytes": 50}
    seed("state", "good", json.dumps(state))
    seed("state", "infinite", json.dumps(state | {"best": "Infinity"}))
    step = {"kind": "step", "step": 5, "loss": 1.5, "lr": 0.1, "gradient_norm": 2.0}
    evaluation = {"kind": "evaluation", "step": 7, "epoch": 1, "train_loss": 1.0, "lr": 0.1, "seconds": 1.0,
                  "cpu_seconds": 1.0, "tokens_per_second": 10.0, "validation": {"loss": 1.0, "perplexity": None}}
    seed("metrics", "two", json.dumps(step) + "\n" + json.dumps(evaluation) + "\n")
    seed("json", "mixed", json.dumps({"a": [1, -2, 2.5, True, None, "ü"], "b": {"c": "Infinity", "d": {"e": []}}}))
    seed("json", "deep", "[" * 60 + "]" * 60)
    seed("checksums", "two", "ef46db3751d8e999  a\n44bc2cf5ad770999  b c\n")
    marks = ["<pad>", "<unk>", "<s>", "</s>"]
    seed("vocabulary", "word", json.dumps({"kind": "word", "pieces": marks + ["Hunde", "zwei"], "lowercase": True}))
    seed("vocabulary", "char", json.dumps({"kind": "char", "pieces": marks + ["a", "b"], "lowercase": False}))
    seed("vocabulary", "characters", json.dumps({"kind": "characters", "characters": " Wabe"}))
    seed("vocabulary", "images", json.dumps({"source": "shapes", "channels": 1, "height": 8, "width": 8,
                                             "classes": ["a", "b"], "mean": [0.5], "deviation": [0.25]}))


def recordings():
    rule = {"softcap": 0, "causal": True, "offset": 0, "window_left": -1, "window_right": -1, "normaliser": "softmax",
            "scale": 0.5}
    example = {"source": ["a", "b"], "target": ["b"], "output": "b", "notice": "cut",
               "candidates": [[{"token": "b", "p": 0.5, "id": 3}]],
               "picture": {"width": 2, "height": 1, "channels": 1, "pixels": "AAE=", "patch_rows": 1, "patch_columns": 1,
                           "first_patch": 0}}
    layers = [{"site": "self", "layer": 0, "rule": rule}, {"site": "alignment", "layer": 0}]
    text = json.dumps({"weights": "5", "traces": [{"input": "ab", "example": example, "layers": layers}]})
    seed("recordings", "plain", b"s\1\0\1\1\0\1\0\1" + text.encode())
    seed("recordings", "masked", b"s\1\1\1\1\0\1\7\1" + text.replace('"scale": 0.5', '"key_lens": [2]').encode())


def models():
    """With rules of normalisation, whose table is what a reader has to trust, and without."""
    with tempfile.TemporaryDirectory() as folder:
        text, rules = pathlib.Path(folder, "text"), pathlib.Path(folder, "rules.tsv")
        text.write_text("Zwei Hunde laufen.\nEin Hund schläft.\n" * 5, encoding="utf-8")
        rules.write_text("DF\t73 73\nFF21\t41\n2163\t49 56\n", encoding="utf-8")
        for kind in ("unigram", "bpe"):
            for name, option in (("rules", f"--normalization_rule_tsv={rules}"),
                                 ("plain", "--normalization_rule_name=identity")):
                model = pathlib.Path(folder, "m")
                subprocess.run(["spm_train", f"--input={text}", f"--model_prefix={model}", f"--model_type={kind}",
                                "--vocab_size=30", "--hard_vocab_limit=false", "--pad_id=0", "--unk_id=1", "--bos_id=2",
                                "--eos_id=3", "--minloglevel=2", option], check=True)
                data = model.with_suffix(".model").read_bytes()
                seed("sentencepiece", f"{kind}-{name}", data.replace(folder.encode(), b"/" + b"x" * (len(folder) - 1)))


pictures()
texts()
run_files()
recordings()
models()
