#!/usr/bin/env python3
"""What /metrics says after requests over HTTP: series with vLLM's names mean what they mean there."""

import re
import unittest

from serving import CHAT, COMPLETIONS, STUB, Server, ServedCase, wait_for


def count(server, name):
    return server.total(f"vllm:{name}_count")


class OfRequests(ServedCase):
    FLAGS = ("--num-blocks", "128", "--max-model-len", "1024")

    def test_ten_in_turn(self):
        names = ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_params_n", "inter_token_latency_seconds",
                 "time_per_output_token_seconds", "iteration_tokens_total")
        before = {name: count(self.server, name) for name in names}
        body = {"prompt": list(range(65, 74)), "max_tokens": 10, "ignore_eos": True}
        for i in range(10):
            self.ok(self.server.post(COMPLETIONS, body)) if i % 2 else self.server.stream(COMPLETIONS, body)
        gained = {name: count(self.server, name) - before[name] for name in names}
        self.assertEqual(dict(zip(names, (10, 10, 10, 90, 90, 100))), gained)

    def test_the_cache_is_described(self):
        series, = self.server.metrics()["vllm:cache_config_info"]
        labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
        self.assertEqual(("16", "128", "2048", "2"), tuple(labels[name] for name in (
            "block_size", "num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency")))

    def test_without_max_tokens_the_rest_of_the_context_counts(self):
        before = self.server.total("vllm:request_params_max_tokens_sum")
        answer = self.ok(self.server.post(CHAT, {"messages": [{"role": "user", "content": "hi"}], "stop_token_ids": list(range(260))}))
        self.assertEqual(1024 - answer["usage"]["prompt_tokens"],
                         self.server.total("vllm:request_params_max_tokens_sum") - before)


class OfGuesses(ServedCase):
    FLAGS = ("--echo", "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 4}')

    def test_tokens_that_come_together_are_one_interval(self):
        body = {"prompt": "abcdabcdabcdabcdabcdabcd", "max_tokens": 20, "ignore_eos": True}
        answer = self.ok(self.server.post(COMPLETIONS, body))
        details = answer["usage"]["completion_tokens_details"]
        self.assertGreater(details["accepted_prediction_tokens"], 0)
        self.assertEqual(19 - details["accepted_prediction_tokens"], count(self.server, "inter_token_latency_seconds"))


class OfRefusals(unittest.TestCase):
    def test_the_queues_limits_and_all_reasons(self):
        with Server(STUB, "--max-queue-len", 1, "--step-delay-ms", 20) as server:
            held = server.open(COMPLETIONS, {"prompt": "a", "max_tokens": 100, "ignore_eos": True})
            wait_for("the first to be let in", lambda: server.call("GET", "/load").json["server_load"] == 1)
            self.assertEqual(429, server.post(COMPLETIONS, {"prompt": "b"}).status)
            held.close()
            metrics = server.metrics()
            by_limit, by_reason = metrics["vllm:admission_rejections_total"], metrics["octavo:rejections_total"]
            self.assertEqual([1], [value for labels, value in by_limit.items() if "max_num_queued_reqs" in labels])
            self.assertEqual([1], [value for labels, value in by_reason.items() if "max_queue_len" in labels])
            self.assertEqual((1, 1), (sum(by_limit.values()), sum(by_reason.values())))


if __name__ == "__main__":
    unittest.main()
