#!/usr/bin/env python3
"""langchain-openai against a running server."""

import unittest

from frameworks import CALL, TEXT, TOO_LONG, WEATHER, EchoCase, weather

from langchain_core.exceptions import ContextOverflowError  # noqa: E402
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings  # noqa: E402


class LangChain(EchoCase):
    def options(self, **more):
        return {"base_url": self.url, "api_key": "EMPTY", "model": self.model, "max_retries": 0, **more}

    def chat(self, **more):
        return ChatOpenAI(**self.options(temperature=0, max_tokens=300, **more))

    def test_chat(self):
        answer = self.chat().invoke([SystemMessage("Be brief."), HumanMessage(TEXT)])
        self.assertEqual((TEXT, "stop"), (answer.content, answer.response_metadata["finish_reason"]))
        self.assertGreater(answer.usage_metadata["output_tokens"], len(TEXT) // 2)

    def test_streamed_chat(self):
        whole = None
        for chunk in self.chat(stream_usage=True).stream(TEXT):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual(TEXT, whole.content)
        self.assertGreater(whole.usage_metadata["output_tokens"], len(TEXT) // 2)

    def test_batches(self):
        texts = [f"number {i}" for i in range(8)]
        self.assertEqual(texts, [answer.content for answer in self.chat().batch(texts)])

    def test_text_completions(self):
        self.assertEqual("Once", OpenAI(**self.options(max_tokens=4)).invoke("Once"))

    def test_a_tool_is_called(self):
        model = self.chat().bind_tools([tool(weather)])
        answer = model.invoke(CALL)
        self.assertEqual([("weather", {"city": "Paris"})], [(c["name"], c["args"]) for c in answer.tool_calls])
        result = ToolMessage(weather(**answer.tool_calls[0]["args"]), tool_call_id=answer.tool_calls[0]["id"])
        self.assertEqual(WEATHER, model.invoke([HumanMessage(CALL), answer, result]).content)

    def test_a_streamed_call(self):
        whole = None
        for chunk in self.chat().bind_tools([tool(weather)]).stream(CALL):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual([("weather", {"city": "Paris"})], [(c["name"], c["args"]) for c in whole.tool_calls])

    def test_logprobs(self):
        answer = self.chat().bind(logprobs=True, top_logprobs=2).invoke("Once")
        self.assertEqual("Once", "".join(t["token"] for t in answer.response_metadata["logprobs"]["content"])[:4])

    def test_embeddings(self):
        embeddings = OpenAIEmbeddings(**self.options(check_embedding_ctx_length=False)).embed_documents(["a", TEXT])
        self.assertEqual([8, 8], [len(one) for one in embeddings])

    def test_a_long_prompt_is_known_as_such(self):
        with self.assertRaises(ContextOverflowError):
            self.chat().invoke(TOO_LONG)


if __name__ == "__main__":
    unittest.main()
