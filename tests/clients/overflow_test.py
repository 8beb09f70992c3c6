#!/usr/bin/env python3
"""A prompt that is too long, seen by programs that cut a conversation down when they recognise it: litellm and LangChain."""

import os
import sys
import unittest
from pathlib import Path

import venv

venv.enter()
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask the network at its start
os.environ["LANGSMITH_TRACING"] = "false"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

import litellm  # noqa: E402
from langchain_core.exceptions import ContextOverflowError  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from serving import ServedCase  # noqa: E402

LONG = "x" * 500


class Overflow(ServedCase):
    FLAGS = ("--max-model-len", "128")

    def complete(self, text, **fields):
        return litellm.completion(model="openai/" + self.server.model, api_base=self.server.url + "/v1", api_key="EMPTY",
                                  messages=[{"role": "user", "content": text}], max_retries=0, **fields)

    def chat(self, **fields):
        return ChatOpenAI(model=self.server.model, base_url=self.server.url + "/v1", api_key="EMPTY", max_retries=0, **fields)

    def test_litellm(self):
        self.assertEqual(4, self.complete("short", max_tokens=4).usage.completion_tokens)
        for fields in ({}, {"stream": True}, {"max_tokens": 4}):
            with self.assertRaises(litellm.ContextWindowExceededError):
                self.complete(LONG, **fields)
        with self.assertRaises(litellm.ContextWindowExceededError):
            self.complete("short", max_tokens=200)
        with self.assertRaises(litellm.BadRequestError) as other:
            self.complete("short", temperature=-1)
        self.assertNotIsInstance(other.exception, litellm.ContextWindowExceededError)

    def test_langchain(self):
        self.assertTrue(self.chat(max_tokens=4).invoke("short").response_metadata)
        for model in (self.chat(), self.chat(max_tokens=4)):
            with self.assertRaises(ContextOverflowError):
                model.invoke(LONG)
            with self.assertRaises(ContextOverflowError):
                list(model.stream(LONG))


if __name__ == "__main__":
    unittest.main()
