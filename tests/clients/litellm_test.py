#!/usr/bin/env python3
"""litellm against a running server, as provider openai and as provider hosted_vllm."""

import unittest

from frameworks import CALL, TEXT, TOO_LONG, WEATHER, EchoCase, weather

import litellm  # noqa: E402

litellm.suppress_debug_info = True
TOOL = {"type": "function", "function": {"name": "weather", "description": weather.__doc__, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


class LiteLLM(EchoCase):
    def chat(self, provider, content, **options):
        messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
        return litellm.completion(**{"model": f"{provider}/{self.model}", "api_base": self.url, "api_key": "EMPTY",
                                     "messages": messages, "max_tokens": 300, "temperature": 0, "num_retries": 0, **options})

    def each(self):
        for provider in ("openai", "hosted_vllm"):
            with self.subTest(provider):
                yield provider

    def test_chat(self):
        for provider in self.each():
            answer = self.chat(provider, TEXT)
            self.assertEqual((TEXT, "stop"), (answer.choices[0].message.content, answer.choices[0].finish_reason))
            self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
            self.assertGreater(answer.usage.completion_tokens, len(TEXT) // 2)

    def test_streamed_chat(self):
        for provider in self.each():
            chunks = list(self.chat(provider, TEXT, stream=True, stream_options={"include_usage": True}))
            self.assertEqual(TEXT, "".join(c.choices[0].delta.content or "" for c in chunks if c.choices))
            self.assertEqual(self.chat(provider, TEXT).usage.completion_tokens, chunks[-1].usage.completion_tokens)

    def test_text_completions(self):
        answer = litellm.text_completion(model=f"text-completion-openai/{self.model}", api_base=self.url, api_key="EMPTY",
                                         prompt="Once", max_tokens=4)
        self.assertEqual("Once", answer.choices[0].text)

    def test_a_tool_is_called(self):
        for provider in self.each():
            question = {"role": "user", "content": CALL}
            message = self.chat(provider, [question], tools=[TOOL], tool_choice="auto").choices[0].message
            call = message.tool_calls[0]
            self.assertEqual(("weather", '{"city": "Paris"}'), (call.function.name, call.function.arguments))
            result = {"role": "tool", "tool_call_id": call.id, "content": weather("Paris")}
            self.assertEqual(WEATHER, self.chat(provider, [question, message, result],
                                                tools=[TOOL]).choices[0].message.content)

    def test_embeddings(self):
        answer = litellm.embedding(model=f"openai/{self.model}", api_base=self.url, api_key="EMPTY", input=["a", TEXT])
        self.assertEqual([0, 1], [one["index"] for one in answer.data])
        self.assertEqual(8, len(answer.data[0]["embedding"]))

    def test_a_long_prompt_is_known_as_such(self):
        for provider in self.each():
            with self.assertRaises(litellm.ContextWindowExceededError):
                self.chat(provider, TOO_LONG)

    def test_unknown_models(self):
        for provider in self.each():
            with self.assertRaises(litellm.NotFoundError):
                litellm.completion(model=f"{provider}/other", api_base=self.url, api_key="EMPTY",
                                   messages=[{"role": "user", "content": "x"}], num_retries=0)

    def test_reasoning_effort(self):
        for provider in self.each():
            self.assertEqual(TEXT, self.chat(provider, TEXT, reasoning_effort="low",
                                             allowed_openai_params=["reasoning_effort"]).choices[0].message.content)


if __name__ == "__main__":
    unittest.main()
