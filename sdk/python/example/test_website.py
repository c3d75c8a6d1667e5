# SPDX-License-Identifier: Apache-2.0
import unittest

import website
from reconciled.testing import run


class Website(unittest.TestCase):
    def test_children_and_address(self):
        answer = run(website.website, {"metadata": {"name": "hello"}, "spec": {"html": "<h1>Hello</h1>", "replicas": 2}})
        self.assertEqual(answer["status"], {"address": "http://hello.default"})
        self.assertEqual([child["kind"] for child in answer["children"]], ["ConfigMap", "Deployment", "Service"])
        self.assertEqual(answer["children"][1]["spec"]["replicas"], 2)

    def test_without_a_page(self):
        self.assertEqual(run(website.website, {"spec": {}}), {"error": "the web site lacks spec.html", "permanent": True})

    def test_the_function_that_the_decorator_has_put_down(self):
        self.assertEqual(run(None, {}, action="finalize"), {})


if __name__ == "__main__":
    unittest.main()
