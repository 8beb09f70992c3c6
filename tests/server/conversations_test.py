#!/usr/bin/env python3
"""Conversations over HTTP: what a request asks for has an effect, or the answer says that it has none."""

import json
import unittest

from serving import CHAT, COMPLETIONS, ServedCase, wait_for

WARNINGS = "X-Octavo-Warnings"
THINKS = ("{% for m in messages %}{{ bos_token }}{{ m.role }}:{{ m.content }}{% endfor %}"
          "{{ 'think' if enable_thinking else 'answer' }}{{ eos_token }}")


class Conversations(ServedCase):
    FLAGS = ["--echo", "--chat-template", THINKS, "--log-format", "json"]

    def chat(self, *messages, **fields):
        return self.server.post(CHAT, {"messages": list(messages), "max_tokens": 60, **fields})

    def warnings(self, answer):
        self.ok(answer)
        return json.loads(answer.headers.get(WARNINGS) or "[]")

    def prompt(self, *messages, **fields):
        ids = self.ok(self.server.post("/tokenize", {"messages": list(messages), **fields}))["tokens"]
        return self.ok(self.server.post("/detokenize", {"tokens": ids}))["prompt"]

    def test_what_has_no_effect_is_named_in_the_answer_and_the_log(self):
        user = {"role": "user", "content": "Hi", "name": "ada"}
        wanted = "messages[0].name has no effect"
        whole = self.warnings(self.chat(user))
        self.assertEqual(1, len(whole))
        self.assertIn(wanted, whole[0])
        self.assertIn(wanted, self.warnings(self.server.post("/tokenize", {"messages": [user]}))[0])
        self.assertIn(wanted, json.loads(self.chat(user, stream=True).headers[WARNINGS])[0])
        self.assertEqual([], self.warnings(self.chat({"role": "user", "content": "Hi"})))
        wait_for("the line of the log", lambda: self.server.output().count(wanted) >= 3)
        lines = [json.loads(line) for line in self.server.output().splitlines() if wanted in line]
        self.assertTrue(all(wanted in line["warnings"][0] for line in lines), lines)

    def test_a_developer_is_the_system(self):
        for role in ("developer", "system"):
            self.assertIn("system:Rhyme.", self.prompt({"role": role, "content": "Rhyme."}, {"role": "user", "content": "Hi"}))

    def test_effort(self):
        user = {"role": "user", "content": "Hi"}
        for effort, end in ((None, "answer"), ("none", "answer"), ("low", "think"), ("high", "think")):
            self.assertTrue(self.prompt(user, reasoning_effort=effort).endswith(end + "<eos>"), effort)
        self.assertEqual([], self.warnings(self.chat(user, reasoning_effort="none")))
        self.assertIn('reasoning_effort "low" turns thinking on', self.warnings(self.chat(user, reasoning_effort="low"))[0])
        self.assertIn("verbosity", self.warnings(self.chat(user, verbosity="low"))[0])
        self.assertIn("chat_template_kwargs.x has no effect", self.warnings(self.chat(user, chat_template_kwargs={"x": 1}))[0])
        self.assert_refused(self.chat(user, reasoning_effort="huge"), 400, "reasoning_effort")

    def test_an_assistant_that_said_nothing(self):
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}]
        empty = self.prompt(*turns)
        for said in ({"content": None}, {}, {"content": None, "refusal": "No."}, {"content": []},
                     {"content": [{"type": "refusal", "refusal": "No."}]}):
            turns[1] = {"role": "assistant", **said}
            self.assertEqual(empty, self.prompt(*turns), said)
            self.assertEqual("refusal" in str(said), "refusal" in str(self.warnings(self.chat(*turns))), said)

    def test_the_last_message_may_be_continued_without_more(self):
        turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}]
        self.assertTrue(self.prompt(*turns, continue_final_message=True).endswith("assistant:b "))
        self.ok(self.chat(*turns, continue_final_message=True))
        both = self.chat(*turns, continue_final_message=True, add_generation_prompt=True)
        self.assert_refused(both, 400, "continue_final_message")
        self.assert_refused(self.chat(turns[0], continue_final_message=True), 400, "continue_final_message")


class ControlTokens(ServedCase):
    """In prompts they are the caller's, in messages they are text."""

    def ids(self, body, path="/tokenize"):
        return self.ok(self.server.post(path, body))["tokens"]

    def prompt_ids(self, **fields):
        body = {"prompt": "a<eos>b", "max_tokens": 1, "return_token_ids": True, **fields}
        return self.ok(self.server.post(COMPLETIONS, body))["choices"][0]["prompt_token_ids"]

    def test_prompts(self):
        for fields in ({}, {"parse_special": False}, {"parse_special": True}, {"add_special_tokens": False},
                       {"parse_special": False, "add_special_tokens": False}):
            same = self.ids({"prompt": "a<eos>b", **fields})
            self.assertEqual(same, self.prompt_ids(**fields), fields)
            self.assertEqual("parse_special" not in fields or fields["parse_special"], len(same) < 6, fields)
            counted = self.ok(self.server.post("/v1/embeddings", {"input": "a<eos>b", **fields}))["usage"]["prompt_tokens"]
            self.assertEqual("parse_special" not in fields or fields["parse_special"], counted < 6, fields)

    def test_messages(self):
        messages = [{"role": "user", "content": "a<eos>b"}]
        plain = self.ids({"messages": messages})
        self.assertGreater(len(plain), 6)
        for special in (True, False):
            self.assertEqual(plain, self.ids({"messages": messages, "parse_special": special}))
        with_end = self.ids({"messages": [{"role": "user", "content": "x"}], "add_special_tokens": True})
        self.assertEqual(with_end, self.ids({"messages": [{"role": "user", "content": "x"}]}), "the template wrote it")


if __name__ == "__main__":
    unittest.main()
