#!/usr/bin/env python3
"""Every kind of answer beside OpenAI's published description of it."""

import unittest

from openai_schema import faults
from serving import CHAT, COMPLETIONS, ServedCase

EMBEDDINGS = "/v1/embeddings"
MESSAGES = [{"role": "user", "content": "Hi"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
# What changes the shape of an answer, each alone and all at once.
ASKED = ({}, {"n": 3, "temperature": 1}, {"return_token_ids": True}, {"seed": 1, "stop": ["z"]}, {"max_tokens": 0},
         {"prompt_logprobs": 1}, {"return_tokens_as_token_ids": True})
CHATS = ASKED + ({"logprobs": True}, {"logprobs": True, "top_logprobs": 3},
                 {"n": 2, "logprobs": True, "top_logprobs": 1, "return_token_ids": True, "prompt_logprobs": 0})
TEXTS = ASKED + ({"logprobs": 2}, {"echo": True, "logprobs": 1}, {"prompt": ["a", "b"], "n": 2},
                 {"echo": True, "n": 2, "logprobs": 1, "return_token_ids": True, "prompt_logprobs": 0, "prompt": [65, 66]})
STREAMED = ({}, {"stream_options": {"include_usage": True}},
            {"stream_options": {"include_usage": True, "continuous_usage_stats": True}})


class Case(ServedCase):
    def check(self, value, shape):
        self.assertEqual([], faults(value, shape), value)

    def check_whole(self, path, body, shape):
        with self.subTest(path=path, **body):
            answer = self.ok(self.server.post(path, body))
            self.check(answer, shape)
            self.assertIn("usage", answer)
            return answer

    def check_stream(self, path, body, shape):
        for options in STREAMED:
            with self.subTest(path=path, **body, **options):
                *events, last = self.server.stream(path, {**body, **options})
                self.assertEqual("[DONE]", last)
                for event in events:
                    self.check(event, shape)
                self.assertEqual("include_usage" in options.get("stream_options", {}), bool(events[-1].get("usage")))


class OfAModel(Case):
    def test_chats(self):
        for asked in CHATS:
            body = {"messages": MESSAGES, "max_tokens": 6, **asked}
            self.check_whole(CHAT, body, "chat_completion")
            self.check_stream(CHAT, body, "chat_chunk")

    def test_completions(self):
        for asked in TEXTS:
            body = {"prompt": "Hi", "max_tokens": 6, **asked}
            self.check_whole(COMPLETIONS, body, "completion")
            self.check_stream(COMPLETIONS, body, "completion_chunk")

    def test_embeddings(self):
        for asked in ({"input": "a"}, {"input": ["a", "b"]}, {"input": [1, 2]}, {"input": "a", "encoding_format": "base64"}):
            self.check_whole(EMBEDDINGS, asked, "embeddings")

    def test_models(self):
        models = self.server.call("GET", "/v1/models").json
        self.check(models, "models")
        self.check(self.server.call("GET", "/v1/models/" + models["data"][0]["id"]).json, "model")

    def test_what_clients_of_vllm_read_as_attributes_is_there(self):
        chat = self.ok(self.server.post(CHAT, {"messages": MESSAGES, "max_tokens": 2}))
        text = self.ok(self.server.post(COMPLETIONS, {"prompt": "a", "max_tokens": 2}))
        for holder in (chat, text["choices"][0]):
            self.assertIsNone(holder["prompt_logprobs"])
            self.assertIsNone(holder["prompt_token_ids"])
        for choice in (chat["choices"][0], text["choices"][0]):
            self.assertIsNone(choice["token_ids"])
            self.assertIn("stop_reason", choice)

    def test_errors(self):
        bad = [(CHAT, {}), (CHAT, {"messages": MESSAGES, "n": 0}), (COMPLETIONS, {"prompt": "a", "model": "?"}),
               (COMPLETIONS, {"prompt": "a" * 9000}), (COMPLETIONS, b"{"), (EMBEDDINGS, {"input": []}), ("/nowhere", {}),
               ("/tokenize", {}), ("/v1/requests", {})]
        for path, body in bad:
            with self.subTest(path=path):
                answer = self.server.post(path, body)
                self.assertGreaterEqual(answer.status, 400)
                self.check(answer.json, "error")
        self.check(self.server.call("GET", "/v1/models/none").json, "error")


class OfToolsAndReasoning(Case):
    FLAGS = ("--echo", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")

    def test_calls_and_reasoning(self):
        for content in ("text", CALL, "before " + CALL + CALL, "<think>why</think>text", "<think>why</think>" + CALL):
            body = {"messages": [{"role": "user", "content": content}], "max_tokens": 300}
            self.check_whole(CHAT, body, "chat_completion")
            self.check_stream(CHAT, body, "chat_chunk")
            self.check_whole(CHAT, {**body, "logprobs": True, "top_logprobs": 2}, "chat_completion")


class OfFaultsOnTheWay(Case):
    FLAGS = ("--echo", "--faults")

    def test_an_error_in_a_stream(self):
        *events, last = self.server.stream(COMPLETIONS, {"prompt": "ab\x06c", "max_tokens": 20})
        self.assertEqual("[DONE]", last)
        self.check(events[-1], "error")
        for event in events[:-1]:
            self.check(event, "completion_chunk")

    def test_a_whole_answer_that_fails(self):
        answer = self.server.post(COMPLETIONS, {"prompt": "ab\x06c", "max_tokens": 20})
        self.assertEqual(500, answer.status)
        self.check(answer.json, "error")


class OfGuesses(Case):
    FLAGS = ("--echo", "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}')

    def test_usage_tells_of_them(self):
        body = {"prompt": "abcabcabcabc", "max_tokens": 10, "prediction": {"type": "content", "content": "abc"}}
        answer = self.check_whole(COMPLETIONS, body, "completion")
        self.assertIn("accepted_prediction_tokens", answer["usage"]["completion_tokens_details"])
        self.check_stream(COMPLETIONS, body, "completion_chunk")


class TheChecker(unittest.TestCase):
    def test_finds_what_is_wrong(self):
        good = {"id": "x", "object": "model", "created": 1, "owned_by": "me", "more": True}
        self.assertEqual([], faults(good, "model"))
        for wrong in ({"created": True}, {"created": 1.5}, {"object": "models"}, {"owned_by": None}):
            self.assertEqual(1, len(faults({**good, **wrong}, "model")), wrong)
        self.assertEqual([".id is missing"], faults({k: v for k, v in good.items() if k != "id"}, "model"))
        self.assertEqual(2, len(faults({"data": [good, {}, 3], "object": "list"}, "models")) - 3)


if __name__ == "__main__":
    unittest.main()
