#!/usr/bin/env python3
"""What Open WebUI sends by default: the body of a chat with its settings left alone and a tool switched on, and those of its
own jobs (a title, tags, questions to ask next), against the quick-start model."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from serving import CHAT, OCTAVO, Server, finish_of, text_of  # noqa: E402

MODEL = "smollm2-135m"
TOOL = {"type": "function", "function": {
    "name": "get_current_time", "description": "Get the current time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string", "description": "A time zone"}},
                   "required": []}}}


class OpenWebUI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(OCTAVO, "serve", MODEL))

    def test_the_models_are_listed(self):
        self.assertEqual([MODEL], [m["id"] for m in self.server.call("GET", "/v1/models").json["data"]])

    def ask(self, body):
        return self.server.stream(CHAT, {"model": MODEL, "stream_options": {"include_usage": True}, "max_tokens": 12,
                                         "temperature": 0, "seed": 1, **body})

    def test_a_chat(self):
        events = self.ask({"messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": [
            {"type": "text", "text": "Name a colour."}]}]})
        self.assertTrue(text_of(events))
        self.assertIn(finish_of(events), ("stop", "length"))
        self.assertTrue(events[-2]["usage"]["completion_tokens"])

    def test_a_chat_with_tools_though_the_template_has_no_place_for_them(self):
        body = {"messages": [{"role": "user", "content": "What time is it?"}], "tools": [TOOL], "tool_choice": "auto"}
        events = self.ask(body)
        self.assertIn(finish_of(events), ("stop", "length", "tool_calls"))
        plain = self.ask({"messages": body["messages"]})
        self.assertGreater(events[-2]["usage"]["prompt_tokens"], plain[-2]["usage"]["prompt_tokens"], "the tool is shown")

    def test_a_history_with_a_call(self):
        call = {"id": "call_1", "type": "function", "index": 0,
                "function": {"name": "get_current_time", "arguments": json.dumps({"zone": "UTC"})}}
        events = self.ask({"tools": [TOOL], "messages": [
            {"role": "user", "content": "What time is it?"}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}]})
        self.assertIn(finish_of(events), ("stop", "length", "tool_calls"))

    def test_its_own_jobs(self):
        answer = self.server.call("POST", CHAT, {
            "model": MODEL, "stream": False, "max_completion_tokens": 20, "metadata": {"task": "title_generation"},
            "messages": [{"role": "user", "content": 'Answer as JSON: {"title": "..."} for this chat: USER: hello'}]})
        self.assertEqual(200, answer.status, answer.body)
        self.assertTrue(answer.json["choices"][0]["message"]["content"])


if __name__ == "__main__":
    unittest.main()
