#!/usr/bin/env python3
"""The openai package, unmodified, against a running server."""

import asyncio
import sys
import unittest
from pathlib import Path

import venv

venv.enter()
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

import openai  # noqa: E402
from openai import AsyncOpenAI, OpenAI  # noqa: E402
from serving import STUB, ServedCase, Server, at_once, wait_for  # noqa: E402

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]


def client_of(server, **options):
    return OpenAI(**{"base_url": server.url + "/v1", "api_key": "EMPTY", "max_retries": 0, "timeout": 60, **options})


class ClientCase(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = client_of(cls.server)
        cls.model = cls.client.models.list().data[0].id

    def chat(self, **options):
        return self.client.chat.completions.create(**{"model": self.model, "messages": MESSAGES, "max_tokens": 8,
                                                      "temperature": 0, **options})

    def complete(self, **options):
        return self.client.completions.create(**{"model": self.model, "prompt": "Once", "max_tokens": 8, "temperature": 0,
                                                 **options})

    def raises(self, kind, call, **options):
        with self.assertRaises(kind) as caught:
            call(**options)
        return caught.exception


class Answers(ClientCase):
    def test_chat(self):
        answer = self.chat(extra_body={"ignore_eos": True})
        self.assertEqual(("chat.completion", self.model), (answer.object, answer.model))
        choice = answer.choices[0]
        self.assertEqual(("assistant", "length", 0), (choice.message.role, choice.finish_reason, choice.index))
        self.assertTrue(choice.message.content)
        self.assertEqual(8, answer.usage.completion_tokens)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)
        self.assertGreaterEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertGreater(answer.created, 1_700_000_000)
        self.assertEqual(answer.choices, self.chat(extra_body={"ignore_eos": True}).choices)

    def test_streamed_chat(self):
        whole = self.chat(max_tokens=20)
        chunks = list(self.chat(max_tokens=20, stream=True, stream_options={"include_usage": True}))
        self.assertEqual({"chat.completion.chunk"}, {c.object for c in chunks})
        self.assertEqual(1, len({c.id for c in chunks}))
        usage = chunks.pop()
        self.assertEqual(([], whole.usage.completion_tokens), (usage.choices, usage.usage.completion_tokens))
        self.assertEqual(whole.choices[0].message.content, "".join(c.choices[0].delta.content or "" for c in chunks))
        self.assertEqual(whole.choices[0].finish_reason, chunks[-1].choices[0].finish_reason)
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, max_tokens=20, temperature=0) as stream:
            self.assertEqual(whole.choices[0].message.content,
                             "".join(event.delta for event in stream if event.type == "content.delta"))

    def test_completions(self):
        whole = self.complete(extra_body={"ignore_eos": True})
        self.assertEqual(("text_completion", "length", 8), (whole.object, whole.choices[0].finish_reason,
                                                            whole.usage.completion_tokens))
        self.assertEqual(whole.choices[0].text, "".join(
            c.choices[0].text for c in self.complete(stream=True, extra_body={"ignore_eos": True})))
        several = self.complete(prompt=["Once", "upon", "a time"], extra_body={"ignore_eos": True})
        self.assertEqual([0, 1, 2], [c.index for c in several.choices])
        self.assertEqual(whole.choices[0].text, several.choices[0].text)
        echoed = self.complete(echo=True, extra_body={"ignore_eos": True})
        self.assertEqual("Once" + whole.choices[0].text, echoed.choices[0].text)

    def test_logprobs_of_chat(self):
        choice = self.chat(logprobs=True, top_logprobs=3).choices[0]
        tokens = choice.logprobs.content
        self.assertEqual(choice.message.content.encode(), bytes(b for t in tokens for b in t.bytes))
        for token in tokens:
            top = [t.logprob for t in token.top_logprobs]
            self.assertEqual((3, sorted(top, reverse=True)), (len(top), top))
            self.assertEqual(token.logprob, top[0])  # greedy
            self.assertLessEqual(top[0], 0)
        self.assertEqual(tokens, [t for c in self.chat(logprobs=True, top_logprobs=3, stream=True)
                                  if c.choices[0].logprobs for t in c.choices[0].logprobs.content])
        for token in self.chat(logprobs=True).choices[0].logprobs.content:
            self.assertEqual([], token.top_logprobs)

    def test_logprobs_of_completions(self):
        choice = self.complete(logprobs=2, echo=True, prompt="Once é upon",
                               extra_body={"ignore_eos": True, "add_special_tokens": False}).choices[0]
        logprobs = choice.logprobs
        self.assertEqual(choice.text, "".join(logprobs.tokens) if "bytes:" not in "".join(logprobs.tokens) else choice.text)
        self.assertEqual({len(logprobs.tokens)}, {len(logprobs.token_logprobs), len(logprobs.top_logprobs),
                                                  len(logprobs.text_offset)})
        self.assertIsNone(logprobs.token_logprobs[0])
        for logprob, top in list(zip(logprobs.token_logprobs, logprobs.top_logprobs))[1:]:
            self.assertIn(logprob, top.values())
        for token, offset in zip(logprobs.tokens, logprobs.text_offset):
            if not token.startswith("bytes:"):
                self.assertEqual(token, choice.text[offset:offset + len(token)])

    def test_several_choices(self):
        answer = self.chat(n=2, temperature=1, seed=7, max_tokens=20)
        self.assertEqual([0, 1], [c.index for c in answer.choices])
        self.assertNotEqual(answer.choices[0].message.content, answer.choices[1].message.content)
        texts = ["", ""]
        for chunk in self.chat(n=2, temperature=1, seed=7, max_tokens=20, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual([c.message.content for c in answer.choices], texts)

    def test_seeds(self):
        first, again, other = (self.chat(temperature=1, seed=seed, max_tokens=20) for seed in (1, 1, 2))
        self.assertEqual(first.choices[0].message.content, again.choices[0].message.content)
        self.assertNotEqual(first.choices[0].message.content, other.choices[0].message.content)

    def test_stop(self):
        whole = self.complete(max_tokens=30, extra_body={"ignore_eos": True}).choices[0].text
        stopped = self.complete(max_tokens=30, stop=[whole[5:8]], extra_body={"ignore_eos": True}).choices[0]
        self.assertEqual((whole[:whole.index(whole[5:8])], "stop"), (stopped.text, stopped.finish_reason))

    def test_embeddings(self):
        texts = ["Once upon a time", "The quick brown fox", "a"]
        answer = self.client.embeddings.create(model=self.model, input=texts)  # base64, which the client decodes
        self.assertEqual(("list", self.model), (answer.object, answer.model))
        self.assertEqual([0, 1, 2], [one.index for one in answer.data])
        self.assertEqual(answer.usage.prompt_tokens, answer.usage.total_tokens)
        self.assertGreater(answer.usage.prompt_tokens, 6)
        for one in answer.data:
            self.assertAlmostEqual(1, sum(x * x for x in one.embedding), places=5)
        floats = self.client.embeddings.create(model=self.model, input=texts[1], encoding_format="float")
        self.assertEqual(len(answer.data[1].embedding), len(floats.data[0].embedding))
        for a, b in zip(answer.data[1].embedding, floats.data[0].embedding):
            self.assertAlmostEqual(a, b, places=7)
        ids = self.client.embeddings.create(model=self.model, input=[[1, 2, 3], [4]])
        self.assertEqual((2, 4), (len(ids.data), ids.usage.prompt_tokens))
        self.assertEqual("input", self.raises(openai.BadRequestError, self.client.embeddings.create, model=self.model,
                                              input=[]).param)
        self.assertEqual("dimensions", self.raises(openai.BadRequestError, self.client.embeddings.create,
                                                   model=self.model, input="a", dimensions=3).param)
        self.raises(openai.NotFoundError, self.client.embeddings.create, model="other", input="a")

    def test_models(self):
        listed = self.client.models.list().data
        self.assertEqual(listed[0], self.client.models.retrieve(listed[0].id))
        self.assertEqual("model", listed[0].object)

    def test_request_ids(self):
        raw = self.client.chat.completions.with_raw_response.create(model=self.model, messages=MESSAGES, max_tokens=2,
                                                                    extra_headers={"X-Request-Id": "mine-1"})
        self.assertEqual("mine-1", raw.headers["x-request-id"])
        self.assertEqual("mine-1", raw.parse()._request_id)

    def test_two_hundred_at_once(self):
        expected = [self.complete(prompt=f"number {i}", max_tokens=6).choices[0].text for i in range(200)]

        async def ask():
            async with AsyncOpenAI(base_url=self.server.url + "/v1", api_key="EMPTY", max_retries=0, timeout=60) as client:
                async def one(i):
                    stream = await client.completions.create(model=self.model, prompt=f"number {i}", max_tokens=6,
                                                             temperature=0, stream=True)
                    return "".join([chunk.choices[0].text async for chunk in stream])
                return await asyncio.gather(*map(one, range(200)))
        self.assertEqual(expected, asyncio.run(ask()))


class Errors(ClientCase):
    def test_bad_requests_name_the_field(self):
        for field, value in (("temperature", 5000), ("max_tokens", -1), ("n", 0), ("top_p", 2), ("logit_bias", {"x": 1})):
            if field == "temperature":
                value = -1
            error = self.raises(openai.BadRequestError, self.chat, **{field: value})
            self.assertEqual((field, 400), (error.param, error.status_code))
            self.assertEqual(field, error.body["param"])
            self.assertIn(field, error.message)
        self.raises(openai.BadRequestError, self.chat, stream=True, n=0)
        long = self.raises(openai.BadRequestError, self.complete, prompt=[65] * 1_000_000)
        self.assertEqual("context_length_exceeded", long.code)

    def test_unknown_models(self):
        for call in (self.chat, self.complete):
            error = self.raises(openai.NotFoundError, call, model="gpt-4")
            self.assertEqual(("model_not_found", "model"), (error.code, error.param))
            self.assertIn(self.model, error.message)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="gpt-4", input="x")

    def test_keys(self):
        with Server(STUB, "--api-key", "right") as server:
            self.raises(openai.AuthenticationError, client_of(server).models.list)
            self.assertTrue(client_of(server, api_key="right").models.list().data)


# Shows tools and gives the marks of Qwen 3 away. The stub repeats what stands after the last bos_token.
TOOL_TEMPLATE = ("{# <tool_call> </think> #}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ bos_token }}"
                 "{{ m.reasoning_content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
                 "{{ c.function.arguments | tojson }}{% endfor %}{{ m.content or '' }}{% endfor %}{{ eos_token }}")
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a city", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}}


def call_of(city):
    return '<tool_call>\n{"name": "weather", "arguments": {"city": "%s"}}\n</tool_call>' % city


class Tools(ClientCase):
    """The model says what the user says."""

    FLAGS = ["--echo", "--chat-template", TOOL_TEMPLATE, "--enable-auto-tool-choice"]
    SAID = "<think>\nParis, then Rome.\n</think>\n\nLet me look.\n" + call_of("Paris") + "\n" + call_of("Rome")

    def say(self, text, **options):
        return self.chat(**{"messages": [{"role": "user", "content": text}], "max_tokens": 400, "tools": [WEATHER], **options})

    def test_calls_and_reasoning(self):
        answer = self.say(self.SAID)
        choice = answer.choices[0]
        self.assertEqual("tool_calls", choice.finish_reason)
        self.assertEqual("Let me look.", choice.message.content)
        self.assertEqual("Paris, then Rome.", choice.message.reasoning_content)
        calls = choice.message.tool_calls
        self.assertEqual([("weather", '{"city": "Paris"}'), ("weather", '{"city": "Rome"}')],
                         [(c.function.name, c.function.arguments) for c in calls])
        self.assertEqual(2, len({c.id for c in calls}))
        self.assertTrue(all(c.id.startswith("call_") and c.type == "function" for c in calls))
        details = answer.usage.completion_tokens_details
        self.assertTrue(10 < details.reasoning_tokens < answer.usage.completion_tokens)

    def test_a_stream_of_calls(self):
        chunks = list(self.say(self.SAID, stream=True, stream_options={"include_usage": True}))
        deltas = [c.choices[0].delta for c in chunks if c.choices]
        self.assertEqual("Let me look.", "".join(d.content or "" for d in deltas))
        self.assertEqual("Paris, then Rome.", "".join(getattr(d, "reasoning_content", None) or "" for d in deltas))
        calls = {}
        for part in (call for d in deltas for call in d.tool_calls or []):
            if part.index not in calls:
                self.assertTrue(part.id and part.type == "function" and part.function.name == "weather")
                calls[part.index] = ""
            else:
                self.assertFalse(part.id or part.function.name)
            calls[part.index] += part.function.arguments
        self.assertEqual({0: '{"city": "Paris"}', 1: '{"city": "Rome"}'}, calls)
        self.assertEqual("tool_calls", [c for c in chunks if c.choices][-1].choices[0].finish_reason)
        self.assertGreater(chunks[-1].usage.completion_tokens_details.reasoning_tokens, 10)

    def test_the_stream_helper(self):
        with self.client.beta.chat.completions.stream(
                model=self.model, messages=[{"role": "user", "content": self.SAID}], max_tokens=400, tools=[WEATHER]) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            final = stream.get_final_completion()
        self.assertEqual([{"city": "Paris"}, {"city": "Rome"}], [event.parsed_arguments for event in done])
        self.assertEqual(2, len(final.choices[0].message.tool_calls))

    def test_the_answer_may_be_sent_back(self):
        message = self.say(self.SAID).choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "12 degrees"} for call in message.tool_calls]
        back = [{"role": "user", "content": "x"}, message.model_dump(exclude_none=True), *results]
        answer = self.chat(messages=back, tools=[WEATHER], max_tokens=50)
        self.assertEqual(("12 degrees", "stop"), (answer.choices[0].message.content, answer.choices[0].finish_reason))
        alone = self.say(call_of("Bern")).choices[0].message
        self.assertIsNone(alone.content)
        self.chat(messages=[{"role": "user", "content": "x"}, alone.model_dump(),
                            {"role": "tool", "tool_call_id": alone.tool_calls[0].id, "content": "y"}], max_tokens=5)

    def test_what_is_not_a_call_is_content(self):
        for text in ("Hello", "<tool_call>{nonsense}</tool_call>", '<tool_call>{"name": "weather", "arg'):
            choice = self.say(text).choices[0]
            self.assertEqual((text, None, "stop"), (choice.message.content, choice.message.tool_calls, choice.finish_reason))
        cut = self.say(call_of("Paris"), max_tokens=20).choices[0]
        self.assertEqual("length", cut.finish_reason)
        self.assertTrue(cut.message.content and call_of("Paris").startswith(cut.message.content), cut)

    def test_choices(self):
        text = call_of("Paris") + call_of("Rome")
        hidden = self.say(text, tool_choice="none")
        self.assertEqual((text, None), (hidden.choices[0].message.content, hidden.choices[0].message.tool_calls))
        self.assertLess(hidden.usage.prompt_tokens, self.say(text).usage.prompt_tokens, "the tools are not shown")
        self.assertEqual(1, len(self.say(text, parallel_tool_calls=False).choices[0].message.tool_calls))
        named = {"type": "function", "function": {"name": "weather"}}
        unknown = {"type": "function", "function": {"name": "wether"}}
        for choice, param in (("required", "tool_choice"), (named, "tool_choice"), (unknown, "tool_choice.function.name")):
            self.assertEqual(param, self.raises(openai.BadRequestError, self.say, text=text, tool_choice=choice).param)
        wrong = [{"type": "function", "function": {"name": "a b"}}]
        self.assertEqual("tools[0].function.name", self.raises(openai.BadRequestError, self.say, text=text, tools=wrong).param)

    def test_reasoning_may_be_left_out(self):
        answer = self.say(self.SAID, extra_body={"include_reasoning": False})
        self.assertNotIn("reasoning_content", answer.choices[0].message.model_extra)
        self.assertGreater(answer.usage.completion_tokens_details.reasoning_tokens, 10)
        cut = self.say(self.SAID, max_tokens=15).choices[0]
        self.assertEqual(("", "length"), (cut.message.content, cut.finish_reason))
        self.assertEqual("Paris", cut.message.reasoning_content[:5])


class GenericTools(ClientCase):
    """A template without a place for tools: the model learns of them in the system's message."""

    FLAGS = ["--echo"]

    def test_an_agents_loop(self):
        tools, messages = [WEATHER], [{"role": "system", "content": "Be brief."}]
        messages.append({"role": "user", "content": "Let me look.\n" + call_of("Paris") + "\n" + call_of("Rome")})
        first = self.chat(messages=messages, tools=tools, max_tokens=400).choices[0]
        self.assertEqual(("tool_calls", "Let me look."), (first.finish_reason, first.message.content))
        self.assertEqual(['{"city": "Paris"}', '{"city": "Rome"}'], [c.function.arguments for c in first.message.tool_calls])
        messages.append(first.message.model_dump())
        messages += [{"role": "tool", "tool_call_id": c.id, "content": "12 degrees"} for c in first.message.tool_calls]
        second = self.chat(messages=messages, tools=tools, max_tokens=400).choices[0]
        self.assertEqual("\n".join(['<tool_response>\n{"name": "weather", "content": "12 degrees"}\n</tool_response>'] * 2),
                         second.message.content)
        self.chat(messages=messages, max_tokens=5)  # nor need they be offered again

    def test_the_model_learns_of_them_unless_they_are_hidden(self):
        told, hidden, none = (self.chat(max_tokens=1, **options).usage.prompt_tokens for options in
                              ({"tools": [WEATHER]}, {"tools": [WEATHER], "tool_choice": "none"}, {}))
        self.assertGreater(told, hidden + 100)
        self.assertEqual(hidden, none)


class NoTools(ClientCase):
    """The same, without the help of the server."""

    FLAGS = ["--tool-call-parser", "hermes", "--reasoning-parser", "none", "--no-generic-tools"]

    def test_tools_are_not_dropped_in_silence(self):
        error = self.raises(openai.BadRequestError, self.chat, tools=[WEATHER])
        self.assertEqual(("unsupported_parameter", "tools"), (error.code, error.param))
        self.assertIn("no place for tools", error.message)
        self.assertTrue(self.chat(tools=[WEATHER], tool_choice="none").choices)


class Slow(ClientCase):
    """One sequence at a time, and few that wait."""

    FLAGS = ["--max-num-seqs", "1", "--max-queue-len", "1", "--step-delay-ms", "5"]

    def occupied(self):
        """A stream that has begun, for half a second or more."""
        stream = self.complete(max_tokens=100, stream=True, extra_body={"ignore_eos": True})
        next(stream)
        return stream

    def test_timeouts_end_the_work(self):
        impatient = self.client.with_options(timeout=0.3)
        with self.assertRaises(openai.APITimeoutError):
            impatient.completions.create(model=self.model, prompt="x", max_tokens=1000, extra_body={"ignore_eos": True})
        wait_for("the request to be cancelled", lambda: not self.server.total("vllm:num_requests_running"))

    def test_a_closed_stream_ends_the_work(self):
        stream = self.complete(max_tokens=1000, stream=True, extra_body={"ignore_eos": True})
        next(stream)
        stream.close()
        wait_for("the request to be cancelled", lambda: not self.server.total("vllm:num_requests_running"))

    def test_a_refusal_says_when_to_come_back(self):
        def one():
            try:
                return self.complete(max_tokens=60, extra_body={"ignore_eos": True}).choices[0].finish_reason
            except openai.RateLimitError as error:
                return int(error.response.headers["retry-after"])
        results = at_once([one] * 10)
        self.assertIn("length", results)
        self.assertTrue([r for r in results if r != "length" and r >= 1], results)

    def test_retries_get_through(self):
        patient = self.client.with_options(max_retries=10)

        def one():
            return patient.completions.create(model=self.model, prompt="x", max_tokens=20, temperature=0,
                                              extra_body={"ignore_eos": True}).choices[0].text
        self.assertEqual(1, len(set(at_once([one] * 6))))
        self.assertGreater(self.server.total("vllm:admission_rejections_total"), 0)

    def test_a_server_that_stops_refuses_with_503_or_is_gone(self):
        with Server(STUB, "--step-delay-ms", "5") as server:
            client = client_of(server)
            running = client.completions.create(model=self.model, prompt="x", max_tokens=200, stream=True,
                                                extra_body={"ignore_eos": True})
            next(running)
            server.terminate()
            wait_for("the port to close or refuse", lambda: self.refuses(client))
            self.assertEqual("length", list(running)[-1].choices[0].finish_reason)
            self.assertEqual(0, server.wait())

    def refuses(self, client):
        try:
            client.completions.create(model=self.model, prompt="x", max_tokens=1)
        except openai.InternalServerError as error:
            self.assertEqual(503, error.status_code)
            return True
        except openai.APIConnectionError:
            return True
        return False


if __name__ == "__main__":
    unittest.main()
