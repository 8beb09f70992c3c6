#!/usr/bin/env python3
"""prometheus_client's parser on /metrics: every family has a type and a help text, histograms add up, counters count."""

import unittest

from frameworks import TEXT, EchoCase

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics  # noqa: E402
from prometheus_client.parser import text_string_to_metric_families as parse  # noqa: E402


class Metrics(EchoCase):
    def families(self):
        answer = self.server.call("GET", "/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        return {family.name: family for family in parse(answer.text)}

    def ask(self):
        return self.ok(self.server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": TEXT}]}))

    def test_every_family_is_whole(self):
        self.ask()
        families = self.families()
        self.assertGreater(len(families), 30)
        for family in families.values():
            with self.subTest(family.name):
                self.assertIn(family.type, ("counter", "gauge", "histogram"))
                self.assertTrue(family.documentation)
                self.assertTrue(family.samples)

    def test_buckets_add_up(self):
        self.ask()
        for family in self.families().values():
            if family.type != "histogram":
                continue
            for labels in {tuple(sorted((k, v) for k, v in s.labels.items() if k != "le")) for s in family.samples}:
                own = [s for s in family.samples if set(labels) <= set(s.labels.items())]
                buckets = [s.value for s in own if s.name.endswith("_bucket")]
                self.assertEqual(sorted(buckets), buckets, family.name)
                self.assertEqual([buckets[-1]], [s.value for s in own if s.name.endswith("_count")])

    def test_counters_count(self):
        def tokens():
            return sum(s.value for s in self.families()["vllm:generation_tokens"].samples if s.name.endswith("_total"))
        before = tokens()
        self.assertEqual(before + self.ask()["usage"]["completion_tokens"], tokens())

    def test_what_is_asked_for_as_openmetrics_parses_as_what_it_says_it_is(self):
        answer = self.server.call("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        parser = parse_openmetrics if "openmetrics" in answer.headers["Content-Type"] else parse
        self.assertTrue(list(parser(answer.text)))


if __name__ == "__main__":
    unittest.main()
