#!/usr/bin/env python3
"""A server that has warmed up needs no more memory, however many requests and tokens come: none is kept of any of them."""

import os
import threading
import unittest

from serving import CHAT, COMPLETIONS, SANITIZED, Answer, ServedCase, at_once, encode, memory, wait_for

COUNT = int(os.environ.get("OCTAVO_MEMORY_REQUESTS", "12000"))
CLIENTS = 8


@unittest.skipIf(SANITIZED, "what is freed is kept for a while")
class LargeRequests(ServedCase):
    def test_what_they_took_is_given_back(self):
        self.server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 1})
        before = memory(self.server)
        for mib in (4, 8, 12, 12, 6):
            answer = self.server.post(COMPLETIONS, {"prompt": "x" * (mib << 20), "max_tokens": 1})
            self.assert_refused(answer, 400, code="context_length_exceeded")
        wait_for("the memory to be back", lambda: memory(self.server) < before + (8 << 20))


@unittest.skipIf(SANITIZED, "what is freed is kept for a while")
class Memory(ServedCase):
    # A small pool, so that the prefix cache is full from early on.
    FLAGS = ("--num-blocks", "256", "--max-num-seqs", "16")
    # Arenas of the C library grow in steps, one for each thread, at their own moments.
    ENV = {"MALLOC_ARENA_MAX": "1"}

    def test_requests_leave_nothing_behind(self):
        self.run_requests(0, COUNT)  # warm
        before = memory(self.server)
        self.run_requests(COUNT, 2 * COUNT)
        middle = memory(self.server)
        self.run_requests(2 * COUNT, 3 * COUNT)
        after = memory(self.server)
        print(f"{3 * COUNT} requests: {before >> 10}, {middle >> 10}, {after >> 10} KiB after each third")
        # The heap's size moves by half a MiB with what the largest requests at once leave between them; 90 bytes kept
        # of each request are more than that.
        self.assertLess(after - middle, max(0.02 * middle, 1 << 20))
        wait_for("the server to be idle", lambda: not self.server.total("vllm:num_requests_running"))
        self.assertEqual(0, self.server.total("vllm:kv_cache_usage_perc"))

    def run_requests(self, begin, end):
        numbers, lock = iter(range(begin, end)), threading.Lock()

        def client():
            with self.server.connect() as connection:
                while True:
                    with lock:
                        i = next(numbers, None)
                    if i is None:
                        return
                    self.one(connection, i)
        at_once([client] * CLIENTS, limit_s=3600)

    def one(self, connection, i):
        """Prompts that never come twice, with whatever a request may ask for; some are refused, some cut off."""
        body = {"max_tokens": 4 + i % 29, "temperature": i % 2, "stream": i % 3 == 0, "stop": [f"{i}"], "n": 1 + i % 2,
                "cache_salt": f"salt {i % 100}", "user": f"user {i}"}
        if i % 4 == 0:
            path, body = CHAT, body | {"messages": [{"role": "user", "content": f"{i} of many"}], "logprobs": True, "top_logprobs": 5}
        else:
            path, body = COMPLETIONS, body | {"prompt": f"{i} of many", "logprobs": 5, "echo": i % 5 == 0}
        if i % 7 == 0:
            body["logit_bias"] = {str(10**6 + i): 1}  # no such token
        data, headers = encode(body, {"X-Request-Id": f"request-{i}"})
        if i % 11 == 0:
            return self.server.open(path, body | {"max_tokens": 300}).close()
        connection.request("POST", path, data, headers)
        answer = Answer(connection.getresponse())
        if answer.status != (400 if i % 7 == 0 else 200):
            raise AssertionError(f"{i}: {answer.status} {answer.body}")


if __name__ == "__main__":
    unittest.main()
