#!/usr/bin/env python3
"""What a request may say: what is wrong is refused with the name of the field, before anything runs."""

import base64
import json
import struct
import unittest

from serving import CHAT, COMPLETIONS, Answer, ServedCase, at_once, choices, finish_of, text_of

MESSAGES = [{"role": "user", "content": "hi"}]
NESTED = 1_000_000
BOTH = (CHAT, COMPLETIONS)


def nested(depth):
    return b"[" * depth + b"]" * depth


class RequestCase(ServedCase):
    def request(self, path, **fields):
        """A good short request with these fields; ABSENT ones left out."""
        body = {"messages": MESSAGES} if path == CHAT else {"prompt": "hi"}
        return {"max_tokens": 3, "temperature": 0, **body, **fields}

    def post(self, path, **fields):
        return self.server.post(path, self.request(path, **fields))

    def refused(self, path, field, value, status=400, **more):
        with self.subTest(path=path, **{field: value if len(str(value)) < 80 else "..."}):
            self.assert_refused(self.post(path, **{field: value}, **more), status, field)

    def accepted(self, path, **fields):
        with self.subTest(path=path, **fields):
            return self.ok(self.post(path, **fields))

    def raw(self, body, path=CHAT, content_type="application/json"):
        headers = {"Content-Type": content_type} if content_type else {}
        return self.server.call("POST", path, body, headers)

    def tearDown(self):
        self.ok(self.post(COMPLETIONS))  # whatever came before, the next request is answered


class Values(RequestCase):
    def test_max_tokens(self):
        for path in BOTH:
            for value in (-1, -2**31, 2**40, 1.5, "10", True, [], {}):
                self.refused(path, "max_tokens", value)
            self.accepted(path, max_tokens=None)
        for value in (-1, -2**31, 2**40, 1.5, "10", True):
            self.refused(CHAT, "max_completion_tokens", value, max_tokens=None)
        self.accepted(CHAT, max_completion_tokens=None)
        self.assertEqual(2, self.accepted(CHAT, max_tokens=None, max_completion_tokens=2, ignore_eos=True)
                         ["usage"]["completion_tokens"])
        both = self.accepted(CHAT, max_tokens=3, max_completion_tokens=4, ignore_eos=True)
        self.assertEqual(4, both["usage"]["completion_tokens"], "the newer name counts")

    def test_no_tokens_at_all(self):
        for path in BOTH:
            answer = self.post(path, max_tokens=0)
            if answer.status != 400:
                self.assertEqual("length", self.ok(answer)["choices"][0]["finish_reason"])
                self.assertEqual(0, answer.json["usage"]["completion_tokens"])
        scored = self.accepted(COMPLETIONS, prompt="scored", max_tokens=0, echo=True, logprobs=1)
        self.assertEqual("scored", scored["choices"][0]["text"])
        # As it was sent, not as its ids spell it, which end with <eos>.
        kept = self.accepted(COMPLETIONS, prompt=["scored", "twice"], max_tokens=0, echo=True, skip_special_tokens=False)
        self.assertEqual(["scored", "twice"], [choice["text"] for choice in kept["choices"]])
        logprobs = scored["choices"][0]["logprobs"]
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertEqual(scored["usage"]["prompt_tokens"], len(logprobs["tokens"]))

    def test_ranges(self):
        vocabulary = self.vocabulary()
        infinite = float("inf")
        table = {
            "temperature": ([-1, "1", True, -0.001, [0]], [0, 1e-9, 1, 2, None]),
            "top_p": ([0, -1, 1.1, "1"], [1e-9, 0.5, 1, None]),
            "top_k": ([-2, 1.5, "1", 2**31], [-1, 0, 1, vocabulary, None]),
            "min_p": ([-0.1, 1.1, "0"], [0, 1e-9, 1, None]),
            "repetition_penalty": ([0, -1, "1"], [0.5, 1, 2, None]),
            "presence_penalty": ([-2.1, 2.1, "0"], [-2, 0, 2, None]),
            "frequency_penalty": ([-2.1, 2.1], [-2, 0, 2, None]),
            "min_tokens": ([-1, 1.5, "1"], [0, 3, None]),
            "n": ([0, -1, 10**9, 1.5, "2", True], [1, 2, None]),
            "seed": (["1", 1.5, [1], 2**70], [0, 42, 2**31, None]),
            "stop": ([1, [1], [""], "", [None], {"a": 1}], [None, [], "x", ["x", "y"]]),
            "stop_token_ids": (["1", [-1], [vocabulary + 10], ["1"], [2**40]], [None, [], [1, 2]]),
            "logit_bias": ([{str(vocabulary + 10): 1}, {"-1": 5}, {"abc": 1}, {"5": 1e9}, {"5": "1"}, [1], "x"],
                           [None, {}, {"5": 1.5}, {"5": -100, "6": 100}]),
            "allowed_token_ids": ([[-1], [vocabulary + 10], "1", [1.5]], [None, [65, 66]]),
            "bad_words": ([1, [1], [""]], [None, [], ["no"]]),
            "ignore_eos": (["true", 1, []], [True, False, None]),
            "stream": (["true", 1, 0], [False, None]),
            "stream_options": ([True, "x", []], [None]),
            "skip_special_tokens": ([1, "x"], [True, False, None]),
            "user": ([], ["somebody", None]),
            "priority": (["high", 1.5, [1]], [0, None]),
        }
        for path in BOTH:
            for field, (bad, good) in table.items():
                for value in bad:
                    self.refused(path, field, value)
                for value in good:
                    self.accepted(path, **{field: value})
        for field in ("temperature", "top_p", "min_p", "presence_penalty", "repetition_penalty"):
            for value in (infinite, -infinite, float("nan")):  # Infinity and NaN are no JSON
                body = json.dumps(self.request(CHAT, **{field: value})).encode()
                self.assert_refused(self.raw(body), 400)
            huge = json.dumps(self.request(CHAT, **{field: 5})).replace(f'"{field}": 5', f'"{field}": 1e999').encode()
            self.assert_refused(self.raw(huge), 400)

    def vocabulary(self):
        """The size of the vocabulary, found by what is refused."""
        low, high = 0, 1 << 24
        while low + 1 < high:
            middle = (low + high) // 2
            fine = self.post(COMPLETIONS, stop_token_ids=[middle]).status == 200
            low, high = (middle, high) if fine else (low, middle)
        return high

    def test_logprobs(self):
        for value in (-2, 21, "1", True, 1.5):
            self.refused(COMPLETIONS, "logprobs", value)
        for value in (1, "true"):
            self.refused(CHAT, "logprobs", value)
        for value in (-2, 21, "1", 1.5):
            self.refused(CHAT, "top_logprobs", value, logprobs=True)
        self.assertEqual(400, self.post(CHAT, top_logprobs=2).status, "top_logprobs without logprobs")

    def test_what_is_known_and_not_served_is_refused(self):
        table = [(CHAT, "tool_choice", "required"), (CHAT, "response_format", {"type": "json_object"}),
                 (CHAT, "use_beam_search", True), (CHAT, "chat_template", "{{ messages }}"),
                 (COMPLETIONS, "suffix", "end"), (COMPLETIONS, "best_of", 2), (COMPLETIONS, "use_beam_search", True)]
        for path, field, value in table:
            self.refused(path, field, value)
        self.assert_refused(self.post(CHAT, response_format={"type": "json_object"}), 400, code="unsupported_parameter")

    def test_neutral_values_and_unknown_names_are_accepted(self):
        self.accepted(CHAT, tool_choice="none", response_format={"type": "text"}, tools=None, metadata={"a": "b"},
                      store=False, parallel_tool_calls=True, no_such_field={"deep": [1, [2]]})
        self.accepted(COMPLETIONS, best_of=1, suffix=None, grammar="", no_such_field=1)
        names = ("stop tools seed logit_bias response_format n top_p temperature max_tokens stream logprobs top_logprobs user "
                 "tool_choice presence_penalty frequency_penalty stream_options functions min_p top_k")
        self.accepted(CHAT, **dict.fromkeys(names.split()))

    def test_n_and_prompts_are_capped_together(self):
        self.refused(COMPLETIONS, "n", 129 * 1000)
        answer = self.post(COMPLETIONS, prompt=["a"] * 2048, n=128)
        self.assert_refused(answer, 400)


class Prompts(RequestCase):
    def test_empty_ones(self):
        for prompt in ("", [], [[]], [""], ["a", ""], [[1], []], None, 5, {}, [None], ["a", [1]], [[1], "a"], [1.5], [True],
                       [-1], [2**40], [10**7], [["a"]], [[[1]]]):
            self.refused(COMPLETIONS, "prompt", prompt)
        body = self.request(COMPLETIONS)
        del body["prompt"]
        self.assert_refused(self.server.post(COMPLETIONS, body), 400, "prompt")

    def test_messages(self):
        user = MESSAGES[0]
        for messages in ([], None, "hi", {}, [{}], [[]], ["hi"], [{"content": "x"}], [{"role": "user"}], [{"role": 5, "content": "x"}],
                         [{"role": "nobody", "content": "x"}], [{"role": "user", "content": None}],
                         [{"role": "user", "content": 5}], [{"role": "user", "content": [5]}],
                         [{"role": "user", "content": [{"type": "text"}]}],
                         [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]):
            with self.subTest(messages=messages):
                answer = self.post(CHAT, messages=messages)
                self.assert_refused(answer, 400)
                self.assertTrue(answer.error["param"].startswith("messages"), answer.error)
        body = self.request(CHAT)
        del body["messages"]
        self.assert_refused(self.server.post(CHAT, body), 400, "messages")
        for content in (None, "", "earlier"):
            self.accepted(CHAT, messages=[user, {"role": "assistant", "content": content}, user])
        self.accepted(CHAT, messages=[user, {"role": "assistant"}, user])
        self.accepted(CHAT, messages=[{"role": "system", "content": ""}, user])

    def test_parts_are_the_text_they_hold(self):
        whole = self.accepted(CHAT, messages=MESSAGES, ignore_eos=True)
        parts = self.accepted(CHAT, messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}], ignore_eos=True)
        self.assertEqual(whole["choices"][0]["message"], parts["choices"][0]["message"])
        self.assertEqual(whole["usage"]["prompt_tokens"], parts["usage"]["prompt_tokens"])

    def test_the_answer_can_be_sent_back(self):
        message = self.accepted(CHAT)["choices"][0]["message"]
        self.accepted(CHAT, messages=MESSAGES + [message] + MESSAGES)

    def test_models(self):
        for path in BOTH:
            for name in ("gpt-4", "", "../etc/passwd"):
                with self.subTest(path=path, name=name):
                    answer = self.post(path, model=name)
                    self.assert_refused(answer, 404, "model", "model_not_found")
                    self.assertIn(self.server.model, answer.error["message"])
            self.refused(path, "model", 5)
            self.accepted(path, model=self.server.model)

    def test_a_list_of_prompts(self):
        prompts = ["a", "bb", "ccc", "dddd", "eeeee"]
        alone = [self.accepted(COMPLETIONS, prompt=p, max_tokens=4 + i, n=2, temperature=1, seed=i)["usage"]
                 for i, p in enumerate(prompts)]
        body = self.request(COMPLETIONS, prompt=prompts, n=2, temperature=1, seed=1, max_tokens=6, ignore_eos=True)
        whole = self.ok(self.server.post(COMPLETIONS, body))
        self.assertEqual(list(range(10)), [c["index"] for c in whole["choices"]])
        self.assertEqual(sum(u["prompt_tokens"] for u in alone), whole["usage"]["prompt_tokens"])
        self.assertEqual(60, whole["usage"]["completion_tokens"])
        events = self.server.stream(COMPLETIONS, body)
        for choice in whole["choices"]:
            self.assertEqual(choice["text"], text_of(events, choice["index"]))
            self.assertEqual(choice["finish_reason"], finish_of(events, choice["index"]))
        self.assertEqual(set(range(10)), {c["index"] for c in choices(events)})
        first = self.ok(self.server.post(COMPLETIONS, {**body, "prompt": prompts[3]}))
        self.assertEqual([c["text"] for c in first["choices"]], [c["text"] for c in whole["choices"][6:8]])


class Embeddings(RequestCase):
    PATH = "/v1/embeddings"

    def embed(self, **fields):
        return self.server.post(self.PATH, {"input": "hi", **fields})

    def test_shapes(self):
        one = self.ok(self.embed())
        self.assertEqual(("list", "embedding", 0), (one["object"], one["data"][0]["object"], one["data"][0]["index"]))
        vector = one["data"][0]["embedding"]
        self.assertEqual(8, len(vector))
        self.assertAlmostEqual(1, sum(x * x for x in vector), places=6)
        self.assertEqual({"prompt_tokens": 3, "total_tokens": 3}, one["usage"])  # two bytes and <eos>
        several = self.ok(self.embed(input=["hi", "there", "hi"]))["data"]
        self.assertEqual([0, 1, 2], [each["index"] for each in several])
        self.assertEqual([vector, vector], [several[0]["embedding"], several[2]["embedding"]])
        self.assertNotEqual(vector, several[1]["embedding"])
        packed = self.ok(self.embed(encoding_format="base64"))["data"][0]["embedding"]
        self.assertEqual(struct.pack("<8f", *vector), base64.b64decode(packed, validate=True))

    def test_refusals(self):
        for field, values in {"input": (None, "", [], [[]], ["a", ""], [1, "a"], [2**40], {}, 5),
                              "encoding_format": ("int8", 5), "dimensions": (0, 4, 9, "x"), "normalize": (1, "yes"),
                              "truncate_prompt_tokens": (0, 2**40, "x"), "priority": (3,)}.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    self.assert_refused(self.embed(**{field: value}), 400, field)
        self.assert_refused(self.embed(model="other"), 404, "model")
        self.assert_refused(self.server.call("GET", self.PATH), 405)

    def test_too_long_is_refused_and_cut_when_asked(self):
        answer = self.embed(input="x" * 5000)
        self.assert_refused(answer, 400)
        self.assertEqual("context_length_exceeded", answer.error["code"])
        cut = self.ok(self.embed(input="x" * 5000, truncate_prompt_tokens=20))
        self.assertEqual(20, cut["usage"]["prompt_tokens"])
        self.assertEqual(cut["data"], self.ok(self.embed(input="x" * 19))["data"])

    def test_beside_answers(self):
        """Whatever runs beside them, they are the same; and they count as requests that were served."""
        texts = [f"text number {i}" for i in range(40)]
        alone = [self.ok(self.embed(input=text))["data"][0]["embedding"] for text in texts]
        calls = [lambda text=text: self.embed(input=text) for text in texts]
        calls += [lambda: self.post(COMPLETIONS, prompt="beside", max_tokens=30, ignore_eos=True)] * 10
        answers = at_once(calls)
        self.assertEqual(alone, [self.ok(answer)["data"][0]["embedding"] for answer in answers[:40]])


class Bodies(RequestCase):
    def test_nesting(self):
        for depth in (1000, 100_000, NESTED):
            deep = nested(depth)
            for body in (deep, b'{"unknown":' + deep + b"}", b'{"tools":' + deep + b"}",
                         b'{"messages":' + deep + b"}", b'{"a":' * depth + b"1" + b"}" * depth,
                         b'{"prompt":' + deep + b',"unknown":' + b"[" * depth):
                for path in (*BOTH, "/tokenize", "/detokenize"):
                    with self.subTest(depth=depth, path=path, start=body[:12]):
                        self.assert_refused(self.raw(body, path), 400)
        good = json.dumps(self.request(CHAT)).encode()
        self.ok(self.raw(good[:-1] + b',"unknown":' + nested(30) + b"}"))

    def test_what_is_no_json(self):
        good = json.dumps(self.request(CHAT)).encode()
        bodies = [b"", b"{", good[:-1], good + b"}", good + good, b"[]", b"null", b"5", b'"x"', b"\xef\xbb\xbf{", b"\x00",
                  good.replace(b'"hi"', b'"\xff"'), good.replace(b'"hi"', "中文".encode("gbk").join([b'"', b'"'])),
                  good.replace(b'"hi"', b'"\\ud800"'), good.replace(b'"hi"', b'"a\nb"'), good.replace(b'"hi"', b"'hi'"),
                  good.replace(b"3", b"03"), good.replace(b"3", b"1e400"), good.decode().encode("utf-16")]
        for body in bodies:
            with self.subTest(body=body[:60]):
                self.assert_refused(self.raw(body), 400)

    def test_a_name_given_twice(self):
        good = json.dumps(self.request(CHAT)).encode()
        self.assert_refused(self.raw(good[:-1] + b',"max_tokens":4}'), 400)

    def test_a_null_character(self):
        """It is text as any other."""
        self.accepted(CHAT, messages=[{"role": "user", "content": "a\0b"}])
        echoed = self.accepted(COMPLETIONS, prompt="a\0b", max_tokens=0, echo=True)
        self.assertEqual("a\0b", echoed["choices"][0]["text"])
        self.accepted(CHAT, **{"us\0er": "x", "metadata": {"a\0b": "c"}})

    def test_content_types(self):
        good = json.dumps(self.request(CHAT)).encode()
        for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
            self.ok(self.raw(good, content_type=kind))
        for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"):
            with self.subTest(kind=kind):
                self.assert_refused(self.raw(good, content_type=kind), 415)
        utf16 = self.raw(good, content_type="application/json; charset=UTF-16")
        self.assert_refused(utf16, 415)
        self.assertIn("UTF-8", utf16.json["error"]["message"])
        packed = self.server.call("POST", CHAT, good, {"Content-Type": "application/json", "Content-Encoding": "br"})
        self.assert_refused(packed, 415)
        self.assertIn("br", packed.json["error"]["message"])

    def test_routes(self):
        self.assert_refused(self.server.call("GET", "/v1/nothing"), 404)
        self.assert_refused(self.server.call("GET", "/v1/models/nothing"), 404)
        for method, path in (("GET", CHAT), ("PUT", COMPLETIONS), ("POST", "/v1/models"), ("DELETE", "/health"),
                             ("OPTIONS", CHAT)):
            answer = self.server.call(method, path)
            self.assert_refused(answer, 405)
            self.assertTrue(answer.headers["Allow"])
        with self.server.connect() as connection:
            connection.putrequest("POST", CHAT)
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(1 << 40))
            connection.endheaders()
            self.assert_refused(Answer(connection.getresponse()), 413)

    def test_tokenize_and_back(self):
        for text in ("hello", "中文 👍", " \n\t"):
            tokens = self.ok(self.server.post("/tokenize", {"prompt": text, "add_special_tokens": False}))
            self.assertEqual(len(tokens["tokens"]), tokens["count"])
            self.assertEqual(text, self.ok(self.server.post("/detokenize", {"tokens": tokens["tokens"]}))["prompt"])
            llama = self.ok(self.server.post("/tokenize", {"content": text}))
            self.assertEqual(text, self.ok(self.server.post("/detokenize", {"tokens": llama["tokens"]}))["content"]
                             if "content" in llama else text)
        for body in ({}, {"prompt": 5}, {"prompt": None}, {"messages": []}):
            self.assert_refused(self.server.post("/tokenize", body), 400)
        for body in ({}, {"tokens": "x"}, {"tokens": [-1]}, {"tokens": [2**40]}, {"tokens": [1.5]}):
            self.assert_refused(self.server.post("/detokenize", body), 400, "tokens")
        self.assertTrue(self.ok(self.server.call("GET", "/tokenizer_info")))

    def test_long_runs_of_one_character(self):
        for character in ("A", ".", " ", "é", "中", "\n"):
            for count in (10_000, 130_000):
                tokens = self.ok(self.server.post("/tokenize", {"prompt": character * count, "add_special_tokens": False}))
                self.assertEqual(character * count,
                                 self.ok(self.server.post("/detokenize", {"tokens": tokens["tokens"]}))["prompt"])


class LongPrompts(RequestCase):
    """Prompts about the limit, which is 64 tokens here."""

    LIMIT = 64
    FLAGS = ["--max-model-len", LIMIT]

    def test_the_table(self):
        tokens = [66] * (self.LIMIT + 1)
        table = [(-1, None, "length"), (-1, 1, "length"), (-1, 2, 400), (-1, self.LIMIT, 400), (0, None, 400), (0, 1, 400),
                 (1, None, 400), (1, 1, 400), (1, 0, 400), (-10, 10, "length")]
        for more, max_tokens, expected in table:
            with self.subTest(more=more, max_tokens=max_tokens):
                count = self.LIMIT + more
                answer = self.post(COMPLETIONS, prompt=tokens[:count], max_tokens=max_tokens, ignore_eos=True)
                if expected == 400:
                    self.assert_refused(answer, 400)
                    self.assertIn(str(self.LIMIT), answer.error["message"])
                    self.assertIn(str(count), answer.error["message"])
                    self.assertNotIn("-", answer.error["message"].replace(" - ", ""))
                else:
                    self.assertEqual(expected, self.ok(answer)["choices"][0]["finish_reason"])
        scored = self.accepted(COMPLETIONS, prompt=tokens[:self.LIMIT], max_tokens=0, echo=True, logprobs=1)
        self.assertEqual(self.LIMIT, len(scored["choices"][0]["logprobs"]["tokens"]))

    def test_the_same_code_everywhere(self):
        long = "x" * 5000
        codes = set()
        for path, body in ((CHAT, {"messages": [{"role": "user", "content": long}]}), (COMPLETIONS, {"prompt": long})):
            for stream in (False, True):
                answer = self.server.post(path, {**body, "stream": stream})
                self.assert_refused(answer, 400)
                codes.add(answer.error["code"])
        self.assertEqual({"context_length_exceeded"}, codes)

    def test_cut_only_when_asked(self):
        secret = "secret " + "x" * 100
        self.assert_refused(self.post(COMPLETIONS, prompt=secret), 400)
        cut = self.accepted(COMPLETIONS, prompt=secret, truncate_prompt_tokens=20)
        self.assertEqual(20, cut["usage"]["prompt_tokens"])


class ManyAtOnce(RequestCase):
    def test_bad_ones_disturb_no_good_one(self):
        body = self.request(COMPLETIONS, prompt="steady", max_tokens=40, ignore_eos=True)
        expected = self.ok(self.server.post(COMPLETIONS, body))["choices"]
        bad = [{"prompt": [10**7]}, {"n": 0}, {"prompt": ""}, {"temperature": -1}, {"logit_bias": {"x": 1}}, {"prompt": "x" * 5000}]

        def one(i):
            if i % 2:
                return self.post(COMPLETIONS, **bad[i // 2 % len(bad)]).status
            return self.server.post(COMPLETIONS, body).json["choices"] == expected
        self.assertEqual([400 if i % 2 else True for i in range(60)], at_once([lambda i=i: one(i) for i in range(60)]))


if __name__ == "__main__":
    unittest.main()
