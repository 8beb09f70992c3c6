#!/usr/bin/env python3
"""llama-index's OpenAI-like model and OpenAI embeddings against a running server."""

import asyncio
import unittest

from frameworks import CALL, TEXT, WEATHER, EchoCase, weather

from llama_index.core.base.llms.types import ChatMessage  # noqa: E402
from llama_index.core.tools import FunctionTool  # noqa: E402
from llama_index.embeddings.openai import OpenAIEmbedding  # noqa: E402
from llama_index.llms.openai_like import OpenAILike  # noqa: E402


class LlamaIndex(EchoCase):
    def llm(self, **options):
        return OpenAILike(**{"model": self.model, "api_base": self.url, "api_key": "EMPTY", "is_chat_model": True,
                             "is_function_calling_model": True, "context_window": 4096, "max_tokens": 300,
                             "temperature": 0, "max_retries": 0, **options})

    def test_chat(self):
        answer = self.llm().chat([ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=TEXT)])
        self.assertEqual(TEXT, answer.message.content)
        self.assertGreater(answer.raw.usage.completion_tokens, len(TEXT) // 2)

    def test_streamed_chat(self):
        parts = list(self.llm().stream_chat([ChatMessage(role="user", content=TEXT)]))
        self.assertEqual(TEXT, "".join(part.delta or "" for part in parts))
        self.assertEqual(TEXT, parts[-1].message.content)

    def test_text_completions(self):
        llm = self.llm(is_chat_model=False, max_tokens=4)
        self.assertEqual("Once", llm.complete("Once").text)
        self.assertEqual("Once", "".join(part.delta or "" for part in llm.stream_complete("Once")))

    def test_a_tool_is_called(self):
        tool = FunctionTool.from_defaults(weather)
        answer = self.llm().chat_with_tools([tool], user_msg=CALL)
        calls = self.llm().get_tool_calls_from_response(answer)
        self.assertEqual([("weather", {"city": "Paris"})], [(c.tool_name, c.tool_kwargs) for c in calls])
        result = ChatMessage(role="tool", content=str(tool(**calls[0].tool_kwargs)),
                             additional_kwargs={"tool_call_id": calls[0].tool_id})
        back = self.llm().chat([ChatMessage(role="user", content=CALL), answer.message, result])
        self.assertEqual(WEATHER, back.message.content)

    def test_asynchronous(self):
        async def ask():
            return [(await self.llm().achat([ChatMessage(role="user", content=t)])).message.content for t in ("a", "b")]
        self.assertEqual(["a", "b"], asyncio.run(ask()))

    def test_embeddings(self):
        model = OpenAIEmbedding(model_name=self.model, api_base=self.url, api_key="EMPTY", max_retries=0)
        self.assertEqual([8, 8], [len(one) for one in model.get_text_embedding_batch(["a", TEXT])])


if __name__ == "__main__":
    unittest.main()
