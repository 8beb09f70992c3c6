#!/usr/bin/env python3
"""haystack against a running server."""

import unittest

from frameworks import CALL, TEXT, WEATHER, EchoCase, weather

from haystack import Document  # noqa: E402
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder  # noqa: E402
from haystack.components.generators.chat import OpenAIChatGenerator  # noqa: E402
from haystack.dataclasses import ChatMessage  # noqa: E402
from haystack.tools import create_tool_from_function  # noqa: E402
from haystack.utils import Secret  # noqa: E402


class Haystack(EchoCase):
    def options(self, **more):
        return {"api_key": Secret.from_token("EMPTY"), "model": self.model, "api_base_url": self.url, "max_retries": 0, **more}

    def generator(self, **more):
        return OpenAIChatGenerator(**self.options(generation_kwargs={"max_tokens": 300, "temperature": 0}, **more))

    def test_chat(self):
        messages = [ChatMessage.from_system("Be brief."), ChatMessage.from_user(TEXT)]
        reply = self.generator().run(messages=messages)["replies"][0]
        self.assertEqual((TEXT, "stop"), (reply.text, reply.meta["finish_reason"]))
        self.assertGreater(reply.meta["usage"]["completion_tokens"], len(TEXT) // 2)

    def test_streamed_chat(self):
        parts = []
        reply = self.generator(streaming_callback=lambda chunk: parts.append(chunk.content)).run(
            messages=[ChatMessage.from_user(TEXT)])["replies"][0]
        self.assertEqual((TEXT, TEXT), (reply.text, "".join(parts)))

    def test_a_tool_is_called(self):
        tools = [create_tool_from_function(weather)]
        question = ChatMessage.from_user(CALL)
        reply = self.generator(tools=tools).run(messages=[question])["replies"][0]
        self.assertEqual([("weather", {"city": "Paris"})], [(c.tool_name, c.arguments) for c in reply.tool_calls])
        call = reply.tool_calls[0]
        result = ChatMessage.from_tool(tool_result=tools[0].invoke(**call.arguments), origin=call)
        back = self.generator(tools=tools).run(messages=[question, reply, result])["replies"][0]
        self.assertEqual(WEATHER, back.text)

    def test_embeddings(self):
        self.assertEqual(8, len(OpenAITextEmbedder(**self.options()).run(text=TEXT)["embedding"]))
        documents = OpenAIDocumentEmbedder(**self.options(progress_bar=False)).run(
            documents=[Document(content="a"), Document(content="b")])["documents"]
        self.assertEqual([8, 8], [len(one.embedding) for one in documents])


if __name__ == "__main__":
    unittest.main()
