"""What may be handed in, what is refused and how, memory, threads and processes."""
import array
import ctypes
import inspect
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import unittest

import numpy as np

import qkv
from memory import resident
from qkv import _qkv


class OnlyDlpack:
    """An array of another library, known by DLPack alone."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, stream=None):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class LiesAboutDlpack:
    def __dlpack__(self, stream=None):
        return None


def draw(*shape, dtype="f4", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Refused(unittest.TestCase):
    """Bad input is an exception with one clear sentence, never a crash."""

    def refuses(self, kind, text, call):
        with self.assertRaises(kind) as raised:
            call()
        message = str(raised.exception)
        self.assertIn(text, message)
        self.assertNotIn("\n", message)

    def test_every_bad_input(self):
        x = draw(2, 3, 4)
        attend = lambda q=x, k=x, v=x, **rule: lambda: qkv.attention(q, k, v, **rule)
        for kind, text, call in [
                (TypeError, "q has dtype int64", attend(q=x.astype(int))),
                (TypeError, "k has dtype object", attend(k=x.astype(object))),
                (TypeError, "v has dtype complex64", attend(v=x.astype("c8"))),
                (TypeError, "q has dtype >f4", attend(q=x.astype(">f4"))),
                (TypeError, "q has dtype float128", attend(q=x.astype("f16"))),
                (TypeError, "q is a list", attend(q=x.tolist())),
                (TypeError, "q is a str", attend(q="abc")),
                (TypeError, "q is a NoneType", attend(q=None)),
                (TypeError, "dtype", attend(q=np.array(["a"]))),
                (ValueError, "expected [B,H,L,D]", attend(*(np.float32(1),) * 3)),
                (ValueError, "expected [B,H,L,D]", attend(*(draw(4),) * 3)),
                (ValueError, "expected [B,H,L,D]", attend(*(draw(1, 1, 1, 2, 2),) * 3)),
                (ValueError, "axes", attend(q=np.zeros((1,) * 12, "f4"))),
                (ValueError, "head sizes differ: q=[2,3,4], k=[2,3,2]", attend(k=x[..., :2])),
                (ValueError, "batch sizes differ", attend(q=x[:1])),
                (ValueError, "dtype", attend(q=x.astype("f8"))),
                (ValueError, "mask=[5,5] does not broadcast", attend(mask=np.ones((5, 5), bool))),
                (ValueError, "more than four axes", attend(mask=np.ones((1,) * 5, bool))),
                (TypeError, "mask has dtype float64", attend(mask=np.ones((3, 3)))),
                (ValueError, "bias=[7] does not broadcast", attend(bias=draw(7))),
                (TypeError, "valid_lens must be whole numbers", attend(valid_lens=[1.5, 2.0])),
                (TypeError, "valid_lens must be whole numbers", attend(valid_lens="ab")),
                (ValueError, "valid lengths", attend(valid_lens=[1, 2, 3])),
                (ValueError, "valid length 4 outside [0, 3]", attend(valid_lens=[1, 4])),
                (ValueError, "valid length -1 outside", attend(valid_lens=np.array([2**64 - 1, 1], "u8"))),
                (TypeError, "mask is a list; expected an array of booleans", attend(mask=[[True] * 3] * 3)),
                (TypeError, "q has a __dlpack__ that gives no unused capsule", attend(q=LiesAboutDlpack())),
                (ValueError, "unknown normaliser 'soft'", attend(normaliser="soft")),
                (TypeError, "normaliser must be a string", attend(normaliser=None)),
                (ValueError, "unknown score", attend(score="cosine")),
                (ValueError, "additive=w", attend(score="additive")),
                (ValueError, "dropout must be in [0, 1)", attend(dropout=1)),
                (ValueError, "seed must be at least 0", attend(seed=-1)),
                (TypeError, "seed must be a whole number", attend(seed=2**80)),
                (TypeError, "scale must be a number", attend(scale="big")),
                (ValueError, "scale must be a finite number", attend(scale=float("nan"))),
                (TypeError, "causal must be True or False", attend(causal="no")),
                (ValueError, "window must be a number or (left, right)", attend(window=(1, 2, 3))),
                (ValueError, "a window must be at least 0", attend(window=-5)),
                (ValueError, "q_offsets", attend(q_offsets=[0, 5], k_offsets=[0, 2])),
                (ValueError, "differ in length", attend(q_offsets=[0, 2])),
                (TypeError, "unexpected keyword argument 'casual'", attend(casual=True)),
                (TypeError, "missing 1 required positional argument: 'v'", lambda: qkv.attention(x, x)),
                (ValueError, "expected", lambda: qkv.attention_stats(np.float32(1), np.float32(1))),
                (ValueError, "unknown stage", lambda: qkv.attention_weights(x, x, stage="end")),
                (ValueError, "d_out is f32 [1]", lambda: qkv.attention_grad(draw(1), x, x, x)),
                (ValueError, "[masked_softmax]", lambda: qkv.masked_softmax(draw(2, 3), [1])),
                (ValueError, "[rotary]", lambda: qkv.rotary(draw(2, 3), [1, 2])),
                (TypeError, "n must be a whole number", lambda: qkv.sinusoidal_positions("a", 2)),
                (ValueError, "from 1 to 4096", lambda: qkv.set_num_threads(0)),
                (OSError, "no run", lambda: qkv.open("/nowhere")),
                (ValueError, "reverse, translate", lambda: qkv.train("sing")),
                (ValueError, "has no setting 'colour'", lambda: qkv.train("reverse", colour=1)),
                (ValueError, "experiment", lambda: qkv.lab("nothing")),
                (TypeError, "task must be a string", lambda: qkv.train(5)),
                (TypeError, "progress must be", lambda: qkv.train("reverse", progress=5)),
                (TypeError, "seeds must be a whole number", lambda: qkv.compare("reverse", seeds="x")),
                (TypeError, "attention must be a string", lambda: qkv.compare("reverse", attention=5)),
                (ValueError, "names no mechanism", lambda: qkv.compare("reverse", attention=[])),
                (TypeError, "name must be a string", lambda: qkv.lab(5)),
                (ValueError, "give x, or q and k", lambda: qkv.explain(q=[[1.0, 2.0]])),
                (TypeError, "x is a list; expected a matrix of numbers", lambda: qkv.explain(x=[[1, 2], [3]])),
                (TypeError, "digits must be a whole number", lambda: qkv.explain().text("x")),
                (TypeError, "tokens must be a list", lambda: qkv.show(draw(2, 2), 5)),
                (ValueError, "3 tokens for 2 queries", lambda: qkv.show(draw(2, 2), ["a", "b", "c"])),
                (TypeError, "dtype int64", lambda: qkv.show(np.ones((2, 2), int))),
        ]:
            with self.subTest(text):
                self.refuses(kind, text, call)

    def test_errors_are_qkvs_and_pythons(self):
        for mine, python in [(qkv.ShapeError, ValueError), (qkv.ConfigError, ValueError), (qkv.IoError, OSError),
                             (qkv.DTypeError, TypeError)]:
            self.assertTrue(issubclass(mine, python) and issubclass(mine, qkv.Error))

    def test_a_tensor_on_another_device(self):
        class Elsewhere:
            def __dlpack_device__(self):
                return (2, 0)  # CUDA

            def __dlpack__(self):
                raise AssertionError("must not be asked for")

        self.refuses(TypeError, "q is on another device", lambda: qkv.attention(Elsewhere(), draw(1, 2, 3), draw(1, 2, 3)))


class Taken(unittest.TestCase):
    def test_rules_and_signatures_agree(self):
        names = list(inspect.signature(qkv.attention).parameters)[3:]
        self.assertEqual(names, list(_qkv.rule_names))
        for function in (qkv.attention_grad, qkv.attention_weights, qkv.attention_stats, qkv.explain):
            for name, parameter in inspect.signature(function).parameters.items():
                if name in names:
                    self.assertEqual(parameter.default, inspect.signature(qkv.attention).parameters[name].default)

    def test_everything_public_is_listed_and_described(self):
        public = {n for n in dir(qkv) if not n.startswith("_") and not inspect.ismodule(getattr(qkv, n))}
        self.assertEqual(public | {"__version__"}, set(qkv.__all__))
        for name in public:
            self.assertTrue(inspect.getdoc(getattr(qkv, name)), name)

    def test_strided_read_only_and_unaligned(self):
        x = draw(2, 6, 5, 8)
        plain = qkv.attention(x, x, x)
        locked = x.copy()
        locked.flags.writeable = False
        np.testing.assert_array_equal(qkv.attention(locked, locked, locked), plain)
        backwards = np.ascontiguousarray(x[:, ::-1, ::-1, ::-1])[:, ::-1, ::-1, ::-1]
        np.testing.assert_array_equal(qkv.attention(backwards, backwards, backwards), plain)
        raw = np.zeros(x.nbytes + 1, "u1")
        shifted = raw[1:].view("f4").reshape(x.shape)
        shifted[...] = x
        np.testing.assert_array_equal(qkv.attention(shifted, shifted, shifted), plain)
        fields = np.zeros(x.shape, [("a", "u1"), ("x", "f4")])
        fields["x"] = x
        np.testing.assert_array_equal(qkv.attention(fields["x"], x, x), plain)
        np.testing.assert_array_equal(qkv.attention(np.asfortranarray(x), x, x), plain)

    def test_axes(self):
        x = draw(3, 4, 5)
        whole = qkv.attention(x[:, None], x[:, None], x[:, None])[:, 0]
        np.testing.assert_array_equal(qkv.attention(x, x, x), whole)
        np.testing.assert_array_equal(qkv.attention(x[0], x[0], x[0]), whole[0])
        self.assertEqual(qkv.attention_weights(x, x).shape, (3, 4, 4))
        self.assertEqual(qkv.attention_weights(x[0], x[0]).shape, (4, 4))
        self.assertEqual(qkv.attention_stats(x, x).entropy.shape, (3, 4))
        self.assertEqual(qkv.attention_grad(x[0], x[0], x[0], x[0]).q.shape, (4, 5))

    def test_empty_arrays(self):
        none = np.zeros((0, 2, 3), "f4")
        self.assertEqual(qkv.attention(none, none, none).shape, (0, 2, 3))
        x = draw(1, 2, 3)
        np.testing.assert_array_equal(qkv.attention(x, x[:, :0], x[:, :0]), np.zeros((1, 2, 3)))
        self.assertEqual(qkv.attention(x[:, :0], x, x).shape, (1, 0, 3))
        self.assertEqual(qkv.attention(x[..., :0], x[..., :0], x).shape, (1, 2, 3))

    def test_half_precision_at_the_border(self):
        x = draw(2, 3, 4, dtype="f2")
        out = qkv.attention(x, x, x)
        self.assertEqual(out.dtype, np.float16)
        wide = x.astype("f4")
        np.testing.assert_array_equal(out, qkv.attention(wide, wide, wide).astype("f2"))
        self.assertEqual(qkv.attention_grad(x, x, x, x).q.dtype, np.float16)

    def test_buffers_of_others(self):
        x = draw(1, 4, 2)
        plain = qkv.attention(x, x, x)
        view = memoryview(array.array("f", x.ravel().tolist())).cast("B").cast("f", (1, 4, 2))
        np.testing.assert_array_equal(qkv.attention(view, view, view), plain)
        c_array = ((ctypes.c_float * 2) * 4 * 1).from_buffer_copy(x.tobytes())
        np.testing.assert_array_equal(qkv.attention(c_array, c_array, c_array), plain)

    def test_dlpack_both_ways(self):
        x = draw(2, 3, 8, 4)
        out = qkv.attention(OnlyDlpack(x), OnlyDlpack(x.transpose(0, 1, 2, 3)), OnlyDlpack(x))
        np.testing.assert_array_equal(out, qkv.attention(x, x, x))
        back = np.from_dlpack(out)
        self.assertEqual(back.ctypes.data, out.ctypes.data)
        references = sys.getrefcount(x)
        for _ in range(100):
            qkv.attention(OnlyDlpack(x), OnlyDlpack(x), OnlyDlpack(x))
        self.assertEqual(sys.getrefcount(x), references)

    def test_results_are_writable_and_live_on(self):
        x = draw(4, 64, 32)
        outs = [qkv.attention(x, x, x) for _ in range(50)]
        first = outs[0].copy()
        del outs[10:]
        for out in outs:
            np.testing.assert_array_equal(out, first)
        outs[0][...] = 0
        np.testing.assert_array_equal(outs[1], first)

    def test_nothing_is_copied_at_32768(self):
        """In a process of its own: what a call adds to the most memory it ever had is its results."""
        script = textwrap.dedent("""
            import numpy as np, qkv
            def most():
                with open("/proc/self/status", encoding="ascii") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
            rule = dict(causal=True, window=(32, None))
            q, k, v = (np.full((1, 16, 32768, 16), 0.5, "f4") for _ in range(3))  # 32 MiB each
            small = q[:, :, :256]
            qkv.attention_grad(small, small, small, small, **rule)
            before = most()
            out = qkv.attention(q, k, v, **rule)
            forward = most() - before
            assert np.allclose(out, 0.5)
            address = out.ctypes.data
            del out
            again = qkv.attention(q, k, v, **rule)
            print(forward, address == again.ctypes.data, end=" ")
            before = most()
            grads = qkv.attention_grad(q, q, k, v, **rule)
            print(most() - before)
        """)
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        forward, same, both = done.stdout.split()
        self.assertLess(float(forward), 32 + 8, "an input or the result was copied")
        self.assertEqual(same, "True", "the result's memory is not used again")
        self.assertLess(float(both), 16 + 3 * 32 + 8, "an input or a gradient was copied")

    def test_statistics_and_weights_agree(self):
        q, k = draw(2, 3, 7, 8), draw(2, 3, 9, 8, seed=1)
        weights = qkv.attention_weights(q, k, causal=True, offset=2)
        stats = qkv.attention_stats(q, k, causal=True, offset=2)
        np.testing.assert_array_equal(stats.argmax, weights.argmax(-1))
        np.testing.assert_allclose(stats.max_weight, weights.max(-1), rtol=1e-5)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        scores = qkv.attention_weights(q, k, causal=True, offset=2, stage="biased")
        np.testing.assert_allclose(stats.lse, np.log(np.exp(scores).sum(-1)), rtol=1e-5)

    def test_masked_softmax_and_positions(self):
        x = draw(2, 2, 4)
        p = qkv.masked_softmax(x, [2, 3])
        np.testing.assert_array_equal(p[0, :, 2:], 0)
        np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-6)
        np.testing.assert_allclose(qkv.masked_softmax(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(qkv.sinusoidal_positions(3, 4)[1], [np.sin(1), np.cos(1), np.sin(.01), np.cos(.01)],
                                   rtol=1e-6)
        self.assertEqual(qkv.alibi_bias(2, 3, 5).shape, (2, 3, 5))
        y = draw(5, 2, 4)
        np.testing.assert_allclose(np.linalg.norm(qkv.rotary(y, range(5)), axis=-1), np.linalg.norm(y, axis=-1),
                                   rtol=1e-5)

    def test_explain(self):
        e = qkv.explain(q=[[1.0, 0]], k=[[1.0, 0], [0, 1]], v=[[10.0], [20]], scale=1)
        weights = np.exp([1, 0]) / np.exp([1, 0]).sum()
        shown = [x for x in e.steps.values() if x.shape == (1, 2) and np.allclose(x, weights)]
        self.assertTrue(shown, e.steps)
        self.assertIn("softmax", e.text())
        self.assertIn("\\", e.latex())
        self.assertGreater(len(qkv.explain(example="heads").steps), 10)


class ThreadsAndProcesses(unittest.TestCase):
    def test_python_runs_while_qkv_computes(self):
        x = draw(1, 4, 1500, 64)
        ticks, done = [0], threading.Event()

        def count():
            while not done.is_set():
                ticks[0] += 1
                done.wait(0.0005)

        counter = threading.Thread(target=count)
        counter.start()
        for _ in range(3):
            qkv.attention(x, x, x)
        done.set()
        counter.join()
        self.assertGreater(ticks[0], 3)

    def test_many_threads_at_once(self):
        x = draw(4, 2, 65, 16)
        plain = qkv.attention(x, x, x, causal=True)
        wrong = []

        def work():
            for _ in range(20):
                if not np.array_equal(qkv.attention(x, x, x, causal=True), plain):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_children_of_fork(self):
        x = draw(8, 2, 129, 16)
        plain = qkv.attention(x, x, x)  # the pool is running now
        with multiprocessing.get_context("fork").Pool(3) as pool:
            for out in pool.map(attend_in_child, [x] * 6):
                np.testing.assert_array_equal(out, plain)
        np.testing.assert_array_equal(qkv.attention(x, x, x), plain)

    def test_many_calls_leak_nothing(self):
        x = draw(1, 1, 8, 8)
        mask = np.ones((8, 8), bool)

        def calls(n):
            for _ in range(n):
                qkv.attention(x, x, x, mask=mask, valid_lens=[5])
                qkv.attention_grad(x, x, x, x)
                np.from_dlpack(qkv.attention(OnlyDlpack(x), x, memoryview(x)))
                qkv.show(mask.astype("f4"))
                try:
                    qkv.attention(x, x, x, bias=x[..., :3, :3])
                except ValueError:
                    pass

        calls(3000)
        before = resident()
        calls(10000)
        self.assertLess(resident() - before, 1 << 20)


def attend_in_child(x):
    return qkv.attention(x, x, x)


if __name__ == "__main__":
    unittest.main()
