#!/usr/bin/env python3
"""semantic-kernel against a running server."""

import asyncio
import unittest

from frameworks import CALL, TEXT, WEATHER, EchoCase, weather

from openai import AsyncOpenAI  # noqa: E402
from semantic_kernel import Kernel  # noqa: E402
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior  # noqa: E402
from semantic_kernel.connectors.ai.open_ai import (OpenAIChatCompletion, OpenAIChatPromptExecutionSettings,  # noqa: E402
                                                   OpenAITextEmbedding)
from semantic_kernel.contents import ChatHistory  # noqa: E402
from semantic_kernel.functions import kernel_function  # noqa: E402


class Weather:
    # The argument's type is read from its annotation.
    @kernel_function(name="weather", description="The weather of a city.")
    def weather(self, city: str) -> str:
        return weather(city)


class SemanticKernel(EchoCase):
    def service(self):
        return OpenAIChatCompletion(ai_model_id=self.model, async_client=self.client())

    def client(self):
        return AsyncOpenAI(base_url=self.url, api_key="EMPTY", max_retries=0)

    def settings(self, **more):
        return OpenAIChatPromptExecutionSettings(max_tokens=300, temperature=0, **more)

    def history(self, text):
        history = ChatHistory(system_message="Be brief.")
        history.add_user_message(text)
        return history

    def test_chat(self):
        answer = asyncio.run(self.service().get_chat_message_content(self.history(TEXT), self.settings()))
        self.assertEqual(TEXT, str(answer))
        self.assertGreater(answer.metadata["usage"].completion_tokens, len(TEXT) // 2)

    def test_streamed_chat(self):
        async def ask():
            stream = self.service().get_streaming_chat_message_content(self.history(TEXT), self.settings())
            return "".join([str(part) async for part in stream if part])
        self.assertEqual(TEXT, asyncio.run(ask()))

    def test_a_tool_is_called(self):
        kernel = Kernel()
        kernel.add_plugin(Weather(), "p")
        call = CALL.replace('"weather"', '"p-weather"')
        answer = asyncio.run(self.service().get_chat_message_content(
            self.history(call), self.settings(function_choice_behavior=FunctionChoiceBehavior.Auto()), kernel=kernel))
        self.assertEqual(WEATHER, str(answer))

    def test_embeddings(self):
        service = OpenAITextEmbedding(ai_model_id=self.model, async_client=self.client())
        self.assertEqual((2, 8), asyncio.run(service.generate_embeddings(["a", TEXT])).shape)


if __name__ == "__main__":
    unittest.main()
