#!/usr/bin/env python3
"""Streams of both endpoints: they add up to the whole answer, and their framing is what clients rely on."""

import unittest

from serving import CHAT, COMPLETIONS, ServedCase, choices, finish_of, text_of

TEXTS = ["plain words", "café, naïve", "中文字，标点。", "👍🏽 and 👨‍👩‍👧", " 👍", "a\u0301\u0323b", "ไทย हिन्दी 한국어",
         "\x7f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff", "line\nline\r\n\ttab \"quoted\" \\ </s>"]
REPLACEMENT = "\ufffd"


def request_of(path, text, **more):
    body = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    return {"temperature": 0, "max_tokens": 200, **body, **more}


def whole_text(answer):
    choice = answer["choices"][0]
    return choice["text"] if "text" in choice else choice["message"]["content"]


class Whole(ServedCase):
    FLAGS = ["--echo"]

    def both(self, path, body):
        """The text and the reason of both ways of answering, which must agree."""
        whole = self.ok(self.server.post(path, body))
        events = self.server.stream(path, body)
        self.assertEqual(whole_text(whole), text_of(events))
        self.assertEqual(whole["choices"][0]["finish_reason"], finish_of(events))
        return whole_text(whole), finish_of(events)

    def test_characters_of_many_tokens(self):
        for path in (CHAT, COMPLETIONS):
            for text in TEXTS:
                with self.subTest(path=path, text=text):
                    self.assertIn(text, self.both(path, request_of(path, text))[0])

    def test_cut_at_every_token(self):
        for text in ("x👍y", "中文"):
            whole = text.encode()
            for count in range(1, len(whole)):
                with self.subTest(text=text, count=count):
                    got, reason = self.both(COMPLETIONS, request_of(COMPLETIONS, text, max_tokens=count))
                    self.assertEqual("length", reason)
                    self.assertEqual(whole[:count].decode(errors="replace"), got)
                    self.assertLessEqual(got.count(REPLACEMENT), 1)

    def test_text_before_a_cut_character_is_sent_at_once(self):
        parts = [c["text"] for c in choices(self.server.stream(COMPLETIONS, request_of(COMPLETIONS, "ab👍c"))) if c["text"]]
        self.assertEqual(["a", "b", "👍", "c"], parts[:4])

    def test_stop_strings(self):
        prompt = "ABCDEFGHIJKL"
        table = [(["DEFGHIJ"], "ABC"), (["DEX", "DEFG"], "ABC"), (["HI", "HIJ"], "ABCDEFG"), (["EF", "DEFG"], "ABCD"),
                 (["KLM"], prompt), ("A", ""), (["L"], "ABCDEFGHIJK")]
        for stop, expected in table:
            for included in (False, True):
                with self.subTest(stop=stop, included=included):
                    body = request_of(COMPLETIONS, prompt, stop=stop, include_stop_str_in_output=included)
                    got, reason = self.both(COMPLETIONS, body)
                    if not included or expected == prompt:
                        self.assertEqual(expected, got)
                    else:
                        self.assertTrue(got.startswith(expected) and any(got.endswith(s) for s in stop), got)
                    self.assertEqual("stop", reason)

    def test_a_stop_string_of_many_bytes(self):
        got, reason = self.both(COMPLETIONS, request_of(COMPLETIONS, "see 👍🏽 there", stop=["👍🏽"]))
        self.assertEqual(("see ", "stop"), (got, reason))

    def test_bytes_that_are_no_text(self):
        broken = [0x61, 0x80, 0xC3, 0x28, 0xED, 0xA0, 0x80, 0x62]
        end = 263  # <eos>, which the tokenizer adds to text alone
        got, _ = self.both(COMPLETIONS, request_of(COMPLETIONS, [*broken, end], logprobs=1))
        self.assertEqual(bytes(broken).decode(errors="replace"), got)


class Prompts(ServedCase):
    FLAGS = ["--echo", "--step-delay-ms", "3"]

    def test_prompts_whose_answers_end_at_different_times(self):
        prompts = ["the longest of all these prompts, which ends last", "b", "of middling length", "c", "short"]
        body = {"prompt": prompts, "max_tokens": 200, "temperature": 0, "n": 2}
        expected = [prompt for prompt in prompts for _ in range(2)]
        whole = self.ok(self.server.post(COMPLETIONS, body))
        self.assertEqual(list(range(10)), [c["index"] for c in whole["choices"]])
        self.assertEqual(expected, [c["text"] for c in whole["choices"]])
        events = self.server.stream(COMPLETIONS, body)
        self.assertEqual(expected, [text_of(events, i) for i in range(10)])
        ends = [c["index"] for c in choices(events) if c["finish_reason"]]
        self.assertGreater(ends.index(0), ends.index(2), "the first ends last")


class Framing(ServedCase):
    def test_without_usage_and_with(self):
        table = [({}, False), ({"stream_options": None}, False), ({"stream_options": {}}, False),
                 ({"stream_options": {"include_usage": False}}, False), ({"stream_options": {"include_usage": True}}, True)]
        for path in (CHAT, COMPLETIONS):
            for options, wanted in table:
                with self.subTest(path=path, options=options):
                    events = self.server.stream(path, request_of(path, "hello", max_tokens=5, **options))
                    self.assertEqual("[DONE]", events.pop())
                    empty = [e for e in events if not e["choices"]]
                    self.assertEqual(1 if wanted else 0, len(empty))
                    if wanted:
                        self.assertIs(empty[0], events[-1])
                        self.check_usage(events[-1]["usage"], 5)
                        events.pop()
                    self.assertEqual([], [e for e in events if e.get("usage")])

    def check_usage(self, usage, completion_tokens):
        self.assertEqual(completion_tokens, usage["completion_tokens"])
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)

    def test_continuous_usage(self):
        options = {"include_usage": True, "continuous_usage_stats": True}
        for path in (CHAT, COMPLETIONS):
            events = self.server.stream(path, request_of(path, "hello", max_tokens=5, stream_options=options))[:-1]
            counts = [e["usage"]["completion_tokens"] for e in events]
            self.assertEqual(sorted(counts), counts)
            self.assertEqual(5, counts[-1])
            self.assertEqual(1, len({e["usage"]["prompt_tokens"] for e in events}))

    def test_one_event_for_each_token_and_the_role_first(self):
        events = self.server.stream(CHAT, request_of(CHAT, "hello", max_tokens=6, ignore_eos=True))[:-1]
        self.assertEqual("assistant", events[0]["choices"][0]["delta"]["role"])
        self.assertEqual(1, sum("role" in c["delta"] for c in choices(events)))
        self.assertEqual(6, sum(bool(c["delta"].get("content")) for c in choices(events)))
        for field, expected in (("object", "chat.completion.chunk"), ("model", self.server.model)):
            self.assertEqual({expected}, {e[field] for e in events})
        for field in ("id", "created"):
            self.assertEqual(1, len({e[field] for e in events}))
        self.assertTrue(events[0]["id"].startswith("chatcmpl-"))
        self.assertFalse([e for e in events if "error" in e])

    def test_headers(self):
        answer = self.server.post(CHAT, request_of(CHAT, "hello", stream=True))
        self.assertEqual("text/event-stream", answer.headers["Content-Type"].split(";")[0])
        self.assertEqual("chunked", answer.headers["Transfer-Encoding"])
        self.assertIn("no-", answer.headers["Cache-Control"])

    def test_errors_come_before_the_stream(self):
        for path in (CHAT, COMPLETIONS):
            for field, value in (("n", 0), ("max_tokens", -1), ("temperature", "hot"), ("stop", [1]), ("model", "none")):
                with self.subTest(path=path, field=field):
                    answer = self.server.post(path, request_of(path, "x", stream=True, **{field: value}))
                    self.assert_refused(answer, 404 if field == "model" else 400, field)
                    self.assertEqual("application/json", answer.headers["Content-Type"].split(";")[0])

    def test_options_of_streams_need_a_stream(self):
        body = request_of(CHAT, "x", stream_options={"include_usage": True})
        self.assert_refused(self.server.post(CHAT, body), 400, "stream_options")


class KeepAlive(ServedCase):
    FLAGS = ["--prefill-delay-ms", "1500", "--sse-keep-alive-interval", "0.2"]

    def test_comments_while_the_prompt_is_read(self):
        raw = self.server.post(CHAT, request_of(CHAT, "hello", max_tokens=3, stream=True)).body
        frames = raw.decode().split("\n\n")
        comments = [f for f in frames if f.startswith(":")]
        self.assertGreaterEqual(len(comments), 3)
        self.assertEqual(comments, frames[:len(comments)], "comments only before the first event")


class NoKeepAlive(ServedCase):
    FLAGS = ["--prefill-delay-ms", "1500", "--sse-keep-alive-interval", "0"]

    def test_no_comments(self):
        raw = self.server.post(CHAT, request_of(CHAT, "hello", max_tokens=3, stream=True)).body
        self.assertEqual([], [f for f in raw.decode().split("\n\n") if f.startswith(":")])


if __name__ == "__main__":
    unittest.main()
