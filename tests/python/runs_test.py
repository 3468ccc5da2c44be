"""Runs, trainings, comparisons and the lab from Python: the program's own, to the byte."""
import filecmp
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np

import qkv
from memory import resident

PROGRAM = os.environ["QKV_PROGRAM"]
SMALL = dict(epochs=2, train_size=256)


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        cls.events = []
        cls.run_ = qkv.train("reverse", out=str(cls.root / "mine"), progress=cls.events.append, **SMALL)

    def test_the_same_bytes_as_the_programs(self):
        theirs = self.root / "theirs"
        subprocess.run([PROGRAM, "train", "reverse", "--epochs", "2", "--train-size", "256", "--out", theirs],
                       check=True, capture_output=True)
        files = sorted(os.path.relpath(f, theirs) for f in glob.glob(f"{theirs}/checkpoints/*/*.safetensors"))
        self.assertTrue(files)
        for file in files:
            self.assertTrue(filecmp.cmp(self.root / "mine" / file, theirs / file, shallow=False), file)
        ours, other = (json.loads((p / "config.json").read_text()) for p in (self.root / "mine", theirs))
        self.assertEqual(ours, other)
        self.assertEqual(sorted(os.listdir(self.root / "mine")), sorted(os.listdir(theirs)))

    def same_weights(self, folder):
        """The run in `folder` came to the bytes of the one that nobody stopped."""
        files = glob.glob(f"{self.run_.path}/checkpoints/*/model.safetensors")
        self.assertTrue(files)
        for file in files:
            self.assertTrue(filecmp.cmp(file, file.replace(self.run_.path, folder), shallow=False))

    def test_progress(self):
        evaluations = [e for e in self.events if e["kind"] == "evaluation"]
        self.assertEqual(len(evaluations), 2)
        self.assertIn("loss", evaluations[0]["validation"])

    def test_figures_and_weights(self):
        run = self.run_
        self.assertEqual(run.task, "reverse")
        self.assertEqual(run.settings["epochs"], "2")
        self.assertEqual(list(run.metrics["epoch"]), [1, 2])
        self.assertEqual({len(column) for column in run.metrics.values()}, {2})
        self.assertIn(run.result["loss"], run.metrics["loss"])  # of the weights it settled on
        weights = run.weights()
        self.assertEqual(sum(w.size for w in weights.values()), run.result["parameters"])
        weights["source_embedding.weight"][...] = 0
        self.assertTrue(run.weights()["source_embedding.weight"].any(), "a copy was promised")

    def test_predictions(self):
        one = self.run_.predict("abcd")
        self.assertIsInstance(one.text, str)
        self.assertEqual(self.run_.predict(["abcd", "ab"])[0], one)
        best = self.run_.predict(["abcd"], beam=4, n_best=3)[0]
        self.assertEqual(len(best), 3)
        self.assertGreaterEqual(best[0].score, best[1].score)
        said = subprocess.run([PROGRAM, "predict", self.run_.path, "abcd"], check=True, capture_output=True, text=True)
        self.assertIn(one.text, said.stdout)
        with self.assertRaisesRegex(qkv.ConfigError, "not in the alphabet"):
            self.run_.predict("xyz")
        with self.assertRaisesRegex(qkv.ConfigError, "does not draw"):
            self.run_.predict("abcd", sample=True)
        predict = self.run_.predict
        for kind, text, call in [
                (TypeError, "inputs must be a text", lambda: predict(5)),
                (TypeError, "inputs must be a text", lambda: predict(["ab", None])),
                (TypeError, "beam must be a whole number, not str", lambda: predict("ab", beam="x")),
                (TypeError, "beam must be a whole number, not float", lambda: predict("ab", beam=2.5)),
                (TypeError, "temperature must be a number", lambda: predict("ab", temperature="x")),
                (TypeError, "sample must be True or False", lambda: predict("ab", sample="x")),
                (ValueError, "seed must be at least 0", lambda: predict("ab", seed=-1)),
                (TypeError, "input must be a string", lambda: self.run_.trace(5)),
                (TypeError, "n must be a whole number", lambda: self.run_.examples("x")),
                (TypeError, "weights must be a string", lambda: qkv.open(self.run_.path, weights=5)),
        ]:
            with self.subTest(text), self.assertRaisesRegex(kind, text) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))

    def test_trace(self):
        trace = self.run_.trace("abcd")
        self.assertEqual(trace.source[:4], list("abcd"))
        weights = trace.weights("cross")
        self.assertEqual(weights.shape[2], len(trace.layer("cross").keys))
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        np.testing.assert_array_equal(trace.weights(head=0), weights[0])
        with self.assertRaisesRegex(qkv.ConfigError, "there is: cross 0"):
            trace.weights("encoder")

    def test_a_new_folder_is_not_an_old_one(self):
        with self.assertRaises(qkv.IoError):
            qkv.train("reverse", out=self.run_.path, progress=False, **SMALL)
        with self.assertRaisesRegex(qkv.ConfigError, "cannot change"):
            qkv.train(resume=self.run_.path, hidden=3, progress=False)

    def test_what_a_callback_raises_stops_and_saves(self):
        def stop(event):
            if event["kind"] == "evaluation":  # a slow machine tells of steps before
                raise RuntimeError("enough")

        folder = str(self.root / "stopped")
        with self.assertRaisesRegex(RuntimeError, "enough"):
            qkv.train("reverse", out=folder, progress=stop, **SMALL)
        self.assertEqual(len(qkv.open(folder).metrics["step"]), 1)
        run = qkv.train(resume=folder, progress=False)
        self.same_weights(folder)
        self.assertEqual(run.result["epochs"], 2)

    def test_interrupt_saves_and_the_run_continues_to_the_same_bytes(self):
        folder = str(self.root / "interrupted")
        script = textwrap.dedent(f"""
            import os, signal, qkv
            def first(event):
                if event["kind"] == "evaluation" and event["epoch"] == 1: os.kill(os.getpid(), signal.SIGINT)
            try:
                qkv.train("reverse", out={folder!r}, progress=first, **{SMALL!r})
            except KeyboardInterrupt as e:
                print(e)
            else:
                print("finished")
        """)
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        self.assertIn("saved; continue with: qkv.train(resume=", done.stdout)
        self.assertEqual(len(qkv.open(folder).metrics["step"]), 1)
        qkv.train(resume=folder, progress=False)
        self.same_weights(folder)

    def test_compare(self):
        folder = str(self.root / "compared")
        comparison = qkv.compare("reverse", attention=["none", "dot"], out=folder, progress=False, **SMALL)
        self.assertEqual(list(comparison.runs), ["none", "dot"])
        self.assertEqual(comparison.table["attention"], ["none", "dot"])
        self.assertIn("<iframe", comparison._repr_html_())
        # The program continues it, and finds nothing left to do.
        said = subprocess.run([PROGRAM, "compare", "--resume", folder, "--json"], check=True, capture_output=True)
        self.assertEqual(len(json.loads(said.stdout)["runs"]), 2)
        again = qkv.compare("reverse", attention=["none", "dot"], out=folder, progress=False, **SMALL)
        self.assertEqual(again.table["loss"], comparison.table["loss"])

    def test_a_thousand_opens_leak_nothing(self):
        def opened(n):
            for i in range(n):
                run = qkv.open(self.run_.path)
                if i % 10 == 0:
                    run.trace("ab").view(), run.predict("ab"), run.weights(), run.metrics

        opened(100)
        before, files = resident(), len(os.listdir("/proc/self/fd"))
        opened(1000)
        self.assertLess(resident() - before, 1 << 20)
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)

    def test_lab(self):
        result = qkv.lab("two-heads", t=5)
        self.assertTrue(result.agrees)
        self.assertEqual(result.predicted.shape, result.measured.shape)
        np.testing.assert_array_less(np.abs(result.predicted - result.measured), result.tolerance + 1e-12)
        self.assertIn(result.verdict, repr(result))
        self.assertIn("<iframe", result._repr_html_())
        with self.assertRaises(qkv.ConfigError):
            qkv.lab("two-heads", nonsense=1)

    def test_the_program_in_the_package(self):
        said = subprocess.run([sys.executable, "-m", "qkv", "--version"], check=True, capture_output=True, text=True)
        self.assertEqual(said.stdout.split()[:2], ["qkv", qkv.__version__])
        self.assertEqual(subprocess.run([sys.executable, "-m", "qkv", "sing"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
