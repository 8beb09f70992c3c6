#!/usr/bin/env python3
"""Commands on a folder of safetensors: they do what they do on the GGUF file of the same model."""

import json
import shutil
import sys
import unittest

import cli_test
from cli_test import BINARY, DATA, ROOT, TINY, environment, octavo

sys.path.insert(0, str(ROOT / "tests/server"))
from serving import COMPLETIONS, Server  # noqa: E402

FOLDER = DATA / "tiny/llama-tied"
GREEDY = ("--prompt", "The sky is", "--max-tokens", "12", "--temperature", "0")


class Folders(cli_test.Case):
    def answer(self, model, *flags):
        return self.json("generate", model, *GREEDY, *flags)["outputs"]

    def test_generates(self):
        self.assertEqual(self.answer(TINY), self.answer(FOLDER))
        self.assertEqual(self.answer(FOLDER / "llama-tied-Q8_0.gguf"), self.answer(FOLDER, "--quantization", "int8"))
        self.assertEqual(self.answer(FOLDER / "llama-tied-Q4_0.gguf"), self.answer(FOLDER, "--quantization", "int4"))

    def test_perplexity(self):
        path = self.tmp / "text.txt"
        path.write_text("Some words to predict, one after the other. " * 20)
        self.assertEqual(self.json("perplexity", TINY, path, "--context", "64"),
                         self.json("perplexity", FOLDER, path, "--context", "64"))

    def test_tokenizes_and_chats(self):
        self.assertEqual(self.ok("tokenize", TINY, stdin="The sky is"), self.ok("tokenize", FOLDER, stdin="The sky is"))
        flags = ("--max-tokens", "5", "--temperature", "0")
        self.assertEqual(self.ok("chat", TINY, *flags, stdin="Hello\n"), self.ok("chat", FOLDER, *flags, stdin="Hello\n"))

    def test_a_batch(self):
        path = self.tmp / "in.jsonl"
        path.write_text("".join(json.dumps({"prompt": p}) + "\n" for p in ("one", "two", "three")))
        answers = []
        for model in (TINY, FOLDER):
            out = self.tmp / "out.jsonl"
            run = octavo("generate", model, "--input", path, "--output", out, "--temperature", "0", "--max-tokens", "4")
            self.assertEqual(0, run.returncode, run.error)
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            answers.append({row["line"]: row["outputs"] for row in rows})
            out.unlink()
        self.assertEqual(3, len(answers[0]))
        self.assertEqual(*answers)

    def test_is_measured(self):
        out = self.json("bench", "latency", FOLDER, "--prompt-tokens", "20", "--gen-tokens", "4", "--repeat", "1")
        self.assertTrue(all(row["decode_tok_s"] > 0 for row in out["results"]))
        self.assertTrue(out["results"])

    def test_serves(self):
        expected = self.answer(TINY)[0]["text"]
        with Server(BINARY, "serve", FOLDER, env=environment()) as server:
            answer = server.post(COMPLETIONS, {"model": server.model, "prompt": "The sky is", "max_tokens": 12,
                                               "temperature": 0})
            self.assertEqual(200, answer.status)
            self.assertEqual(expected, answer.json["choices"][0]["text"])

    def changed_folder(self, **configs):
        """A copy with fields of its JSON files changed: generation_config={"eos_token_id": 0}."""
        folder = self.tmp / "model"
        shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.gguf"))
        for name, fields in configs.items():
            path = folder / f"{name}.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | fields))
        return folder

    def test_what_ends_turns_ends_answers_everywhere(self):
        # The files name the end of a document alone; the template ends turns with another control token.
        folder = self.changed_folder(config={"eos_token_id": 0}, generation_config={"eos_token_id": 0},
                                     tokenizer_config={"eos_token": "<|endoftext|>"})
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}<|pad|>{% endfor %}")
        self.assertEqual([0, 2, 3], [end["id"] for end in self.json("inspect", folder)["end_of_turn"]])
        for token in (0, 2, 3):
            flags = ("--temperature", "0", "--max-tokens", "5", "--logit-bias", f"{token}=100")
            out = self.json("generate", folder, "--chat", "--prompt", "a", *flags)["outputs"][0]
            self.assertEqual(([token], "stop"), (out["token_ids"], out["finish_reason"]))
            self.assertEqual("\n", self.ok("chat", folder, *flags, stdin="Hello\n"))
        with Server(BINARY, "serve", folder, env=environment()) as server:
            for token in (0, 2, 3):
                answer = server.post("/v1/chat/completions", {
                    "model": server.model, "messages": [{"role": "user", "content": "a"}], "max_tokens": 5,
                    "logit_bias": {str(token): 100}, "temperature": 0})
                self.assertEqual("stop", answer.json["choices"][0]["finish_reason"], answer.json)
                self.assertEqual(1, answer.json["usage"]["completion_tokens"])

    def test_a_template_for_tools_is_used_with_tools(self):
        templates = [{"name": "default", "template": "{% for m in messages %}{{ m.content }}{% endfor %}"},
                     {"name": "tool_use", "template": "{% for m in messages %}{{ m.content }}{% endfor %} <tool_call> "
                                                      "{% for t in tools %}{{ t.function.name }}{% endfor %}"}]
        folder = self.changed_folder(tokenizer_config={"chat_template": templates})
        (folder / "chat_template.jinja").unlink()
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
        with Server(BINARY, "serve", folder, env=environment()) as server:
            body = {"model": server.model, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
            plain, with_tools = (server.post("/v1/chat/completions", body | more) for more in ({}, {"tools": tools}))
            self.assertEqual((200, 200), (plain.status, with_tools.status), with_tools.json)
            self.assertGreater(with_tools.json["usage"]["prompt_tokens"], plain.json["usage"]["prompt_tokens"])

    def test_weights_in_several_places_are_told(self):
        folder = self.changed_folder()
        (folder / "consolidated.safetensors").write_bytes(b"x")
        run = octavo("generate", folder, *GREEDY, "--json")
        self.assertEqual(0, run.returncode, run.error)
        self.assertRegex(run.error, r"octavo: note: .*'consolidated.safetensors' are ignored")

    def test_weights_that_are_not_numbers_are_not_rounded(self):
        folder = self.tmp / "model"
        shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.gguf"))
        content = bytearray((folder / "model.safetensors").read_bytes())
        header = int.from_bytes(content[:8], "little")
        name = "model.layers.1.mlp.up_proj.weight"
        at = 8 + header + json.loads(content[8:8 + header])[name]["data_offsets"][0]
        content[at:at + 4] = b"\0\0\xc0\x7f"
        (folder / "model.safetensors").write_bytes(content)
        for kind in ("int8", "int4"):
            self.refused(10, [f"tensor '{name}' holds NaN"], "generate", folder, *GREEDY, "--quantization", kind)


if __name__ == "__main__":
    unittest.main()
