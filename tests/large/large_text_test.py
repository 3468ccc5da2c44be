"""A text too large to be held in memory at leisure: little memory, token files, and what happens when files change.

Usage: large_text_test.py PROGRAM [unittest's arguments]. Needs 400 MB in the temporary folder and some minutes."""
import gzip
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
SIZE = 150_000_000
MODEL = "--width 16 --layers 1 --heads 2 --block 64 --log-every 1 --val-share 0.001 --epochs 1 --threads 2".split()


def write_text(path):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyzäöüß漢", k=draw.randint(2, 9))) for _ in range(20_000)]
    lines = [" ".join(draw.choices(words, k=draw.randint(3, 20))) for _ in range(20_000)]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        while file.tell() < SIZE:
            draw.shuffle(lines)
            file.write("\n".join(lines) + "\n")


class LargeText(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="qkv-large-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.text = cls.folder / "text.txt"
        write_text(cls.text)

    def tearDown(self):
        for path in [*self.folder.glob("*.tokens"), *self.folder.glob("run*")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def start(self, name, *more, data=None):
        return subprocess.Popen([PROGRAM, "train", "text", "--data", str(data or self.text), *MODEL, *more, "--out",
                                 str(self.folder / name)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def trained(self, name, *more, data=None):
        """The checksum of its weights, its notes, and the most anonymous memory it was seen with, in MB."""
        process = self.start(name, *more, data=data)
        most = 0
        while process.poll() is None:
            found = re.search(r"RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())
            most = max(most, int(found[1]) // 1000 if found else 0)
            time.sleep(0.02)
        errors = process.communicate()[1]
        self.assertEqual(process.returncode, 0, errors)
        return self.weights(name), [l[5:] for l in errors.splitlines() if l.startswith("qkv: ")], most

    def weights(self, name):
        last = sorted(p for p in (self.folder / name / "checkpoints").iterdir() if p.name.isdigit())[-1]
        return [hashlib.sha256((last / file).read_bytes()).hexdigest()
                for file in ("model.safetensors", "optimizer.safetensors")]

    def packed(self):
        path = self.folder / "text.txt.gz"
        if not path.exists():
            with open(self.text, "rb") as plain, gzip.open(path, "wb", compresslevel=1) as file:
                shutil.copyfileobj(plain, file)
        return path

    def test_characters_need_little_memory(self):
        weights, notes, most = self.trained("run-file", "--steps", "10")
        self.assertLess(most, 100)
        self.assertEqual(notes, [])
        in_memory, _, more = self.trained("run-memory", "--steps", "10", data=self.packed())
        self.assertGreater(more, SIZE // 1_000_000)
        self.assertEqual(weights, in_memory)

    def test_words_come_from_a_token_file_made_once(self):
        arguments = ["--tokenizer", "word", "--vocabulary", "5000", "--steps", "10"]
        weights, notes, most = self.trained("run-file", *arguments)
        self.assertLess(most, 300)
        made = list(self.folder.glob("*.tokens"))
        self.assertEqual(len(made), 1)
        self.assertIn(str(made[0]), notes[-1])
        self.assertEqual(weights, self.trained("run-memory", *arguments, data=self.packed())[0])
        before = made[0].read_bytes()
        again, notes, _ = self.trained("run-again", *arguments)
        self.assertEqual((again, notes), (weights, []))
        with open(made[0], "r+b") as file:
            file.seek(1_000_000)
            file.write(b"damage")
        again, notes, _ = self.trained("run-damaged", *arguments)
        self.assertEqual(again, weights)
        self.assertEqual(notes[0], f"the token file {made[0]} is damaged; it is made again")
        self.assertEqual(hashlib.sha256(made[0].read_bytes()).digest(), hashlib.sha256(before).digest())

    def test_killed_and_resumed(self):
        for kind in ("char", "word"):
            arguments = ["--tokenizer", kind, "--vocabulary", "5000", "--checkpoint-every", "5", "--keep", "9"]
            weights = self.trained(f"run-{kind}", *arguments, "--steps", "60")[0]
            process = self.start(f"run-killed-{kind}", *arguments, "--steps", "60")
            self.wait_for(self.folder / f"run-killed-{kind}" / "checkpoints" / "00000010", process)
            process.kill()
            process.communicate()
            subprocess.run([PROGRAM, "train", "--resume", str(self.folder / f"run-killed-{kind}")], check=True,
                           capture_output=True)
            self.assertEqual(self.weights(f"run-killed-{kind}"), weights)

    def wait_for(self, path, process):
        deadline = time.time() + 120
        while not path.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.02)
        self.assertTrue(path.exists(), [p.name for p in path.parent.glob("*")])

    def test_a_text_that_is_cut_off_ends_the_training_with_one_line(self):
        text = self.folder / "run-short.txt"
        shutil.copy(self.text, text)
        process = self.start("run", "--steps", "100000", "--checkpoint-every", "5", data=text)
        self.wait_for(self.folder / "run" / "checkpoints" / "00000005", process)
        os.truncate(text, 1_000_000)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1)
        self.assertEqual([l for l in errors.splitlines() if l.startswith("qkv: ")],
                         [f"qkv: cannot read {text}: it was changed while it was being read; it must stay as it is until "
                          "the end"])

    def test_ctrl_c_while_tokens_are_made_leaves_nothing(self):
        process = self.start("run", "--tokenizer", "word")
        deadline = time.time() + 60
        while not list(self.folder.glob("*.tokens.tmp-*")) and time.time() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse((self.folder / "run").exists())
        self.trained("run", "--tokenizer", "word", "--steps", "2")
        self.assertEqual(list(self.folder.glob("*.tmp-*")), [])


if __name__ == "__main__":
    unittest.main()
