"""What a notebook shows: self-contained pages."""
import base64
import html
import json
import re
import tempfile
import unittest

import numpy as np

import qkv


def page_of(framed):
    return html.unescape(re.search('srcdoc="([^"]*)"', framed).group(1))


def data_of(page):
    return json.loads(re.search('id="data">(.*?)</script>', page, re.S).group(1))


class Show(unittest.TestCase):
    def setUp(self):
        self.weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 4)).astype("f4")

    def test_the_numbers_are_in_the_page_and_nothing_is_loaded(self):
        view = qkv.show(self.weights, list("abcd"), list("vwxyz"), title="a <b> & c")
        page = page_of(view._repr_html_())
        self.assertEqual(page, view.html())
        self.assertNotRegex(page, r"""(src|href)=["']?https?:""")
        self.assertNotIn("fetch(", page)
        data = data_of(page)
        self.assertEqual(data["title"], "a <b> & c")
        site = data["sites"][0]
        self.assertEqual((site["rows"], site["columns"]), (list("abcd"), list("vwxyz")))
        np.testing.assert_array_equal(np.frombuffer(base64.b64decode(site["weights"]), "<f4").reshape(site["shape"]),
                                      self.weights)

    def test_what_it_takes(self):
        self.assertEqual(data_of(qkv.show(self.weights[0, 0]).html())["sites"][0]["shape"], [1, 1, 4, 5])
        layers = [w[None] for w in self.weights]  # Hugging Face: one [1, heads, q, k] for each layer
        self.assertEqual(data_of(qkv.show(layers).html())["sites"][0]["shape"], [2, 3, 4, 5])
        for bad, text in [([w[None].repeat(2, 0) for w in self.weights], "each layer holds 2 sentences"),
                          ([self.weights[0], self.weights[1, :, :2]], "layers of different shapes"), ([], "no layer")]:
            with self.assertRaisesRegex(qkv.ShapeError, text):
                qkv.show(bad)
        hostile = qkv.show(self.weights[0, 0], ["</script><script>alert(1)</script>", "b", "c", "d"]).html()
        self.assertNotIn("<script>alert", hostile)

    def test_it_is_saved(self):
        with tempfile.NamedTemporaryFile(suffix=".html") as file:
            qkv.show(self.weights).save(file.name)
            self.assertTrue(file.read().startswith(b"<!doctype html>"))


if __name__ == "__main__":
    unittest.main()
