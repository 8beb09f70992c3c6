#!/usr/bin/env python3
"""Fields that clients of other servers send: taken for what they mean, refused, or told to have no effect, but never ignored
in silence. And whose fault a failure is."""

import json
import unittest

from serving import CHAT, COMPLETIONS, ServedCase, text_of

MESSAGES = [{"role": "user", "content": "hi"}]
BODIES = {CHAT: {"messages": MESSAGES, "max_tokens": 3}, COMPLETIONS: {"prompt": "hi", "max_tokens": 3},
          "/v1/embeddings": {"input": "hi"}, "/tokenize": {"prompt": "hi"}, "/detokenize": {"tokens": [65]}}
GENERATE = (CHAT, COMPLETIONS)


class FieldCase(ServedCase):
    def post(self, path, **fields):
        return self.server.post(path, {**BODIES[path], **fields})

    def warnings(self, answer):
        self.assertEqual(200, answer.status, answer.body)
        return json.loads(answer.headers.get("X-Octavo-Warnings", "[]"))

    def accepted(self, path, **fields):
        answer = self.post(path, **fields)
        self.assertEqual([], self.warnings(answer))
        return answer.json


class Misspelled(FieldCase):
    FLAGS = ("--log-format", "json")

    def test_a_warning_names_what_is_meant(self):
        for path, wrong, meant in ((CHAT, "temprature", "temperature"), (COMPLETIONS, "maxTokens", "max_tokens"),
                                   (COMPLETIONS, "max-tokens", "max_tokens"), (CHAT, "top_kk", "top_k"),
                                   ("/v1/embeddings", "dimension", "dimensions"), ("/tokenize", "add_special_token",
                                                                                   "add_special_tokens")):
            with self.subTest(path=path, wrong=wrong):
                told, = self.warnings(self.post(path, **{wrong: 1}))
                self.assertIn(f"'{wrong}' is not known", told)
                self.assertIn(f"did you mean {meant}?", told)

    def test_streams_have_it_too_and_the_log(self):
        answer = self.post(CHAT, stream=True, temprature=0.5)
        self.assertEqual(1, len(self.warnings(answer)))
        request_id = answer.headers["X-Request-Id"]
        lines = [json.loads(line) for line in self.server.output().splitlines() if request_id in line]
        self.assertIn("temprature", lines[-1]["warnings"][0])

    def test_a_field_of_another_route_is_named(self):
        told, = self.warnings(self.post(COMPLETIONS, max_completion_tokens=9))
        self.assertIn("max_completion_tokens is a field of other routes", told)

    def test_what_is_nothing_of_ours_passes(self):
        for path in BODIES:
            self.assertEqual([], self.warnings(self.post(path, extra_things={"a": 1}, temprature=None)))

    def test_the_error_for_a_missing_field_says_it(self):
        for path, wrong in ((CHAT, "mesages"), (COMPLETIONS, "promt"), ("/v1/embeddings", "inputs"), ("/tokenize", "promt"),
                            ("/detokenize", "token")):
            answer = self.server.post(path, {wrong: MESSAGES})
            self.assert_refused(answer, 400)
            self.assertIn(f"'{wrong}' is not known", answer.error["message"])

    def test_a_body_full_of_unknown_names(self):
        strange = {f"temprature{i}" * (1 + i % 9): i for i in range(5000)} | {"\r\nSet-Cookie: \u00e9": 1, "temperaturé": 1}
        answer = self.post(COMPLETIONS, **strange)
        self.assertLess(len(answer.headers["X-Octavo-Warnings"]), 4096)
        self.assertNotIn("Set-Cookie", answer.headers)
        self.assertTrue(self.warnings(answer))


class Strict(FieldCase):
    FLAGS = ("--strict-fields",)

    def test_unknown_fields_are_refused_by_name(self):
        for path in BODIES:
            for name in ("temprature", "extra_things"):
                answer = self.post(path, **{name: 1})
                self.assert_refused(answer, 400, name, "unknown_parameter")
                self.assertIn("--strict-fields", answer.error["message"])
        self.assert_refused(self.post(COMPLETIONS, max_completion_tokens=9), 400, "max_completion_tokens")

    def test_known_ones_pass(self):
        for path in BODIES:
            self.accepted(path, model=None, extra_things=None)
        self.accepted(CHAT, user="me", metadata={}, tool_choice="none", typical_p=1)


class OfOtherServers(FieldCase):
    def test_best_of(self):
        for path in GENERATE:
            self.accepted(path, best_of=1)
            self.accepted(path, best_of=3, n=3)
            for fields in ({"best_of": 2}, {"best_of": 2, "n": 3}):
                self.assert_refused(self.post(path, **fields), 400, "best_of", "unsupported_parameter")
            for value in (0, "1", True):
                self.assert_refused(self.post(path, best_of=value), 400, "best_of")

    def test_what_each_choice_repeats_of_the_prompt_has_a_bound(self):
        ids = [5] * 1000
        self.accepted(COMPLETIONS, prompt=ids, n=4, max_tokens=1, prompt_logprobs=5)
        self.assert_refused(self.post(COMPLETIONS, prompt=ids, max_tokens=1, n=1024, prompt_logprobs=20), 413, "n", "request_too_large")

    def test_the_newer_name_counts(self):
        answer = self.post(CHAT, max_tokens=3, max_completion_tokens=5, ignore_eos=True)
        self.assertEqual(5, answer.json["usage"]["completion_tokens"])
        self.assertIn("max_tokens is 3", self.warnings(answer)[0])
        self.accepted(CHAT, max_tokens=4, max_completion_tokens=4)

    def test_tokens_by_their_ids(self):
        fields = {"return_tokens_as_token_ids": True, "return_token_ids": True, "temperature": 0}
        choice = self.accepted(COMPLETIONS, logprobs=1, **fields)["choices"][0]
        named = [f"token_id:{i}" for i in choice["token_ids"]]
        self.assertEqual(named, choice["logprobs"]["tokens"])
        self.assertEqual(named, [next(iter(top)) for top in choice["logprobs"]["top_logprobs"]])
        choice = self.accepted(CHAT, logprobs=True, top_logprobs=1, **fields)["choices"][0]
        content = choice["logprobs"]["content"]
        self.assertEqual([f"token_id:{i}" for i in choice["token_ids"]], [place["token"] for place in content])
        self.assertTrue(all(place["top_logprobs"][0]["token"] == place["token"] for place in content))

    def test_what_shapes_an_answer_is_refused(self):
        for path in GENERATE:
            for field, value in (("grammar", 'root ::= "a"'), ("json_schema", {}), ("json_schema", {"type": "object"})):
                self.assert_refused(self.post(path, **{field: value}), 400, field, "unsupported_parameter")

    def test_samplers_that_are_not_served_say_so(self):
        for path in GENERATE:
            told = self.warnings(self.post(path, mirostat=2, typical_p=0.5, repeat_penalty=1, dry_multiplier=0.0))
            self.assertEqual({"mirostat", "typical_p"}, {sentence.split()[0] for sentence in told})

    def test_a_template_is_no_variable_of_itself(self):
        for path, body in ((CHAT, {}), ("/tokenize", {"prompt": None, "messages": MESSAGES})):
            self.ok(self.post(path, **body, chat_template_kwargs={"a": 1}))
            answer = self.post(path, **body, chat_template_kwargs={"chat_template": "{{ messages }}"})
            self.assert_refused(answer, 400, "chat_template_kwargs.chat_template")

    def test_control_tokens_of_a_prompt_of_ids_are_echoed(self):
        bos, hi, eos = 262, [104, 105], 263
        for more in ({}, {"stream": True}):
            answer = self.post(COMPLETIONS, prompt=[bos, *hi, eos], echo=True, max_tokens=0, **more)
            text = text_of(answer.events()) if more else answer.json["choices"][0]["text"]
            self.assertEqual("<bos>hi<eos>", text)

    def test_times_of_a_token(self):
        timings = self.accepted(COMPLETIONS, max_tokens=8, ignore_eos=True)["timings"]
        for kind in ("prompt", "predicted"):
            per_token, per_second = timings[f"{kind}_per_token_ms"], timings[f"{kind}_per_second"]
            self.assertAlmostEqual(1000, per_token * per_second, delta=1)


class FillingIn(FieldCase):
    FLAGS = ("--echo", "--fill-in-middle")

    def test_the_marks_are_set(self):
        choice = self.accepted(COMPLETIONS, prompt="ab", suffix="cd", return_token_ids=True, max_tokens=20)["choices"][0]
        begin, hole, middle = choice["prompt_token_ids"][0], choice["prompt_token_ids"][3], choice["prompt_token_ids"][-1]
        self.assertEqual([begin, 97, 98, hole, 99, 100, middle], choice["prompt_token_ids"])
        self.assertEqual("<fim_prefix><fim_suffix><fim_middle>",
                         self.server.post("/detokenize", {"tokens": [begin, hole, middle]}).json["prompt"])
        ids = self.accepted(COMPLETIONS, prompt=[[97, 98]], suffix="cd", return_token_ids=True)["choices"][0]
        self.assertEqual(choice["prompt_token_ids"], ids["prompt_token_ids"])

    def test_what_it_does_not_go_with(self):
        for fields in ({"echo": True}, {"truncate_prompt_tokens": 2}):
            self.assert_refused(self.post(COMPLETIONS, suffix="cd", **fields), 400, "suffix")
        self.assert_refused(self.post(COMPLETIONS, suffix=5), 400, "suffix")
        long = self.post(COMPLETIONS, prompt=["a"] * 100, suffix="b" * 5000)
        self.assert_refused(long, 400, "suffix", "context_length_exceeded")
        self.accepted(COMPLETIONS, suffix="", echo=True)


class NoMarks(FieldCase):
    def test_a_suffix_is_refused(self):
        self.assert_refused(self.post(COMPLETIONS, suffix="cd"), 400, "suffix", "unsupported_parameter")


class AllLogprobs(FieldCase):
    FLAGS = ("--max-logprobs", "265")  # as many as there are tokens

    def test_minus_one_is_all(self):
        place = self.accepted(CHAT, logprobs=True, top_logprobs=-1, max_tokens=1)["choices"][0]["logprobs"]["content"][0]
        self.assertEqual(265, len(place["top_logprobs"]))
        for path in GENERATE:
            answer = self.accepted(path, prompt_logprobs=-1, **({"prompt": "abc"} if path == COMPLETIONS else {}))
            holder = answer if path == CHAT else answer["choices"][0]
            self.assertEqual(265, len(holder["prompt_logprobs"][1]))
        for value in (-2, 266):
            self.assert_refused(self.post(COMPLETIONS, prompt_logprobs=value), 400, "prompt_logprobs")


class FewerLogprobs(FieldCase):
    FLAGS = ("--max-logprobs", "264")

    def test_minus_one_is_refused(self):
        self.assert_refused(self.post(COMPLETIONS, logprobs=-1), 400, "logprobs")
        self.assert_refused(self.post(CHAT, logprobs=True, top_logprobs=-1), 400, "top_logprobs")


class WhoseFault(FieldCase):
    """A 500 is for what is ours; nothing that a client can write is."""

    def test_a_request_that_leaves_no_token(self):
        # The end of the answer alone, and it may not end yet; a word alone, which may not be written.
        for fields in ({"allowed_token_ids": [263], "min_tokens": 2}, {"allowed_token_ids": [97], "bad_words": ["a"]},
                       {"allowed_token_ids": [97], "stop_token_ids": [97], "min_tokens": 2},
                       {"allowed_token_ids": [97, 98], "bad_words": ["ab", "ba", "aa", "bb"]}):
            for path in GENERATE:
                with self.subTest(path=path, **fields):
                    answer = self.post(path, **fields)
                    self.assert_refused(answer, 400)
                    self.assertEqual("invalid_request_error", answer.error["type"])
                    self.assertIn("bar fewer", answer.error["message"])
                    events = self.post(path, stream=True, **fields).events()
                    self.assertEqual("invalid_request_error", events[-2]["error"]["type"])

    def test_extreme_values_are_not_our_fault(self):
        largest, least = 1.7e308, 5e-324
        for fields in ({"temperature": largest}, {"temperature": least}, {"top_p": least}, {"min_p": 1},
                       {"repetition_penalty": largest}, {"repetition_penalty": least},
                       {"logit_bias": {str(i): -100 for i in range(265)}}, {"logit_bias": {str(i): 100 for i in range(265)}},
                       {"presence_penalty": 2, "frequency_penalty": 2, "repetition_penalty": largest},
                       {"allowed_token_ids": list(range(265)), "bad_words": ["a"] * 100}, {"seed": 2**64 - 1}, {"seed": -2**63},
                       {"n": 128, "temperature": largest, "logprobs": 20}):
            with self.subTest(**{k: v if len(str(v)) < 60 else "..." for k, v in fields.items()}):
                self.assertIn(self.post(COMPLETIONS, **fields).status, (200, 400))
                self.assertEqual(200, self.post(COMPLETIONS).status)


class Overflow(FieldCase):
    """Words by which other programs know that a conversation has to be cut."""

    FLAGS = ("--max-model-len", "64")
    WORDS = "this model's maximum context length is 64 tokens"

    def test_the_words(self):
        long = "x" * 100
        for path, fields in ((CHAT, {"messages": [{"role": "user", "content": long}]}), (COMPLETIONS, {"prompt": long}),
                             (COMPLETIONS, {"max_tokens": 64}), ("/v1/embeddings", {"input": long})):
            with self.subTest(path=path):
                answer = self.post(path, **fields)
                self.assert_refused(answer, 400, code="context_length_exceeded")
                self.assertIn(self.WORDS, answer.error["message"])
        self.assertIn("the prompt is too long", self.post(COMPLETIONS, prompt=long).error["message"])


class OverflowOfTheCache(FieldCase):
    FLAGS = ("--num-blocks", "8", "--max-model-len", "256")

    def test_what_the_blocks_do_not_hold(self):
        answer = self.post(COMPLETIONS, prompt="x" * 200)
        self.assert_refused(answer, 400, code="context_length_exceeded")
        self.assertIn("this model's maximum context length is 128 tokens", answer.error["message"])


class Described(FieldCase):
    """Small things in which /openapi.json and the server did not agree."""

    def test_null_stands_for_absent(self):
        self.accepted("/v1/embeddings", encoding_format=None)
        schema = self.server.call("GET", "/openapi.json").json["components"]["schemas"]
        formats = schema["EmbeddingRequest"]["properties"]["encoding_format"]
        self.assertIn("null", formats["type"])

    def test_what_is_taken_and_what_is_not(self):
        self.accepted(COMPLETIONS, bad_words="a")
        for key in ("05", "-0", "+5", " 5", "5.0", "265", ""):
            self.assert_refused(self.post(COMPLETIONS, logit_bias={key: 1}), 400, "logit_bias")
        tool = {"role": "tool", "content": "x"}
        for message in (tool, {**tool, "tool_call_id": None}, {**tool, "tool_call_id": 5}):
            self.assert_refused(self.post(CHAT, messages=MESSAGES + [message]), 400)
        for role in ("user", "assistant"):
            for calls in ({}, "", 0, False):
                self.assert_refused(self.post(CHAT, messages=[{"role": role, "content": "x", "tool_calls": calls}]), 400,
                                    "messages[0].tool_calls")
        self.assert_refused(self.post(CHAT, stream_options={"include_usage": True}), 400, "stream_options")
        for texts in ({"prompt": "a", "content": "a"}, {"prompt": None}, {"prompt": "a", "messages": MESSAGES}):
            self.assert_refused(self.post("/tokenize", **texts), 400, "prompt")


if __name__ == "__main__":
    unittest.main()
