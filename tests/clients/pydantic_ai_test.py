#!/usr/bin/env python3
"""pydantic-ai against a running server."""

import asyncio
import unittest

from frameworks import CALL, TEXT, WEATHER, EchoCase, weather

from pydantic_ai import Agent, ModelHTTPError  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402


class PydanticAI(EchoCase):
    def agent(self, model=None, **options):
        provider = OpenAIProvider(base_url=self.url, api_key="EMPTY")
        settings = {"max_tokens": 300, "temperature": 0}
        return Agent(OpenAIChatModel(model or self.model, provider=provider), model_settings=settings, **options)

    def test_an_answer(self):
        result = self.agent(instructions="Be brief.").run_sync(TEXT)
        self.assertEqual(TEXT, result.output)
        usage = result.usage() if callable(result.usage) else result.usage
        self.assertGreater(usage.output_tokens, len(TEXT) // 2)

    def test_a_stream(self):
        async def ask():
            async with self.agent().run_stream(TEXT) as stream:
                return [part async for part in stream.stream_text(delta=True)]
        self.assertEqual(TEXT, "".join(asyncio.run(ask())))

    def test_a_tool_is_called(self):
        result = self.agent(tools=[weather]).run_sync(CALL)
        self.assertEqual(WEATHER, result.output)

    def test_a_conversation_goes_on(self):
        agent = self.agent(tools=[weather])
        first = agent.run_sync(CALL)
        self.assertEqual(TEXT, agent.run_sync(TEXT, message_history=first.all_messages()).output)

    def test_unknown_models(self):
        with self.assertRaises(ModelHTTPError) as caught:
            self.agent("other").run_sync("x")
        self.assertEqual(404, caught.exception.status_code)


if __name__ == "__main__":
    unittest.main()
