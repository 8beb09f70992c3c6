#!/usr/bin/env python3
"""openai-agents against a running server, by chat completions."""

import asyncio
import unittest

from frameworks import CALL, TEXT, WEATHER, EchoCase, weather

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402

set_tracing_disabled(True)


class OpenAIAgents(EchoCase):
    def agent(self, **options):
        client = AsyncOpenAI(base_url=self.url, api_key="EMPTY", max_retries=0)
        return Agent(name="echo", model=OpenAIChatCompletionsModel(model=self.model, openai_client=client),
                     model_settings=ModelSettings(temperature=0, max_tokens=300, include_usage=True), **options)

    def test_an_answer(self):
        result = asyncio.run(Runner.run(self.agent(instructions="Be brief."), TEXT))
        self.assertEqual(TEXT, result.final_output)
        self.assertGreater(result.context_wrapper.usage.output_tokens, len(TEXT) // 2)

    def test_a_stream(self):
        async def ask():
            result = Runner.run_streamed(self.agent(), TEXT)
            deltas = [event.data.delta async for event in result.stream_events()
                      if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
            return "".join(deltas), result.final_output
        self.assertEqual((TEXT, TEXT), asyncio.run(ask()))

    def test_a_tool_is_called(self):
        agent = self.agent(tools=[function_tool(weather)])
        self.assertEqual(WEATHER, asyncio.run(Runner.run(agent, CALL)).final_output)

    def test_a_tool_is_called_in_a_stream(self):
        async def ask():
            result = Runner.run_streamed(self.agent(tools=[function_tool(weather)]), CALL)
            async for _ in result.stream_events():
                pass
            return result.final_output
        self.assertEqual(WEATHER, asyncio.run(ask()))

    def test_a_conversation_goes_on(self):
        async def ask():
            first = await Runner.run(self.agent(tools=[function_tool(weather)]), CALL)
            again = first.to_input_list() + [{"role": "user", "content": TEXT}]
            return (await Runner.run(self.agent(), again)).final_output
        self.assertEqual(TEXT, asyncio.run(ask()))


if __name__ == "__main__":
    unittest.main()
