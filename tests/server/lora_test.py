#!/usr/bin/env python3
"""Adapters behind the server: by name, many in one batch, and loaded and unloaded while others use them."""

import json
import random
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

from serving import CHAT, COMPLETIONS, OCTAVO, Server, at_once, encode, parse_events, text_of

MODEL = Path(__file__).parents[1] / "data/tiny/llama-tied"
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
ADMIN = {"Authorization": "Bearer boss"}
LONG = 60  # tokens


def shapes():
    """The model's own matrices of layers, as rows and columns."""
    with (MODEL / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name.removesuffix(".weight"): entry["shape"] for name, entry in header.items() if "_proj." in name}


def write_adapter(folder, seed, rank=4):
    """A PEFT folder with random numbers."""
    folder.mkdir(exist_ok=True)
    draw, header, data = random.Random(seed), {}, b""
    for module, (rows, cols) in shapes().items():
        for half, shape in (("A", (rank, cols)), ("B", (rows, rank))):
            count = shape[0] * shape[1]
            numbers = struct.pack(f"<{count}f", *(draw.uniform(-0.3, 0.3) for _ in range(count)))
            header[f"base_model.model.{module}.lora_{half}.weight"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
            data += numbers
    text = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "bias": "none", "target_modules": ["q_proj"]}))
    return folder


def request(model, i, tokens=LONG):
    return {"model": model, "prompt": [(i * 7 + k * 3) % 200 + 1 for k in range(40)], "max_tokens": tokens,
            "temperature": 0, "ignore_eos": True}


class LoraCase(unittest.TestCase):
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.one, cls.two = (write_adapter(cls.folder / str(seed), seed) for seed in (1, 2))
        flags = [str(flag).format(one=cls.one, two=cls.two) for flag in cls.FLAGS]
        cls.server = cls.enterClassContext(Server(
            OCTAVO, "serve", MODEL, "--served-model-name", "tiny", "--admin-api-key", "boss", *flags))

    def answer(self, model, i=0, tokens=LONG):
        answer = self.server.post(COMPLETIONS, request(model, i, tokens))
        self.assertEqual(200, answer.status, answer.text)
        return answer.json["choices"][0]["text"]

    def admin(self, path, **body):
        return self.server.post(path, body, **ADMIN)

    def refused(self, status, path, body, **headers):
        answer = self.server.post(path, body, **headers)
        self.assertEqual(status, answer.status, answer.text)
        return answer.error["message"]


class Served(LoraCase):
    FLAGS = ("--lora-modules", "one={one}", '{{"name": "two", "path": "{two}"}}')

    def test_models_are_listed(self):
        models = {m["id"]: m for m in self.server.call("GET", "/v1/models").json["data"]}
        self.assertEqual({"tiny": None, "one": "tiny", "two": "tiny"}, {i: m["parent"] for i, m in models.items()})
        self.assertEqual(models["one"], self.server.call("GET", "/v1/models/one").json)
        self.assertEqual(404, self.server.call("GET", "/v1/models/three").status)

    def test_names_choose(self):
        texts = {model: self.answer(model) for model in ("tiny", "one", "two")}
        self.assertEqual(3, len(set(texts.values())))
        self.assertEqual(texts, {model: self.answer(model) for model in texts})  # from the cache
        self.refused(404, COMPLETIONS, request("three", 0))
        answer = self.server.post(CHAT, {"model": "one", "messages": [{"role": "user", "content": "x"}],
                                         "max_tokens": 4}).json
        self.assertEqual("one", answer["model"])

    def test_every_route_knows_every_name(self):
        text = {"prompt": "a"}
        bodies = {COMPLETIONS: {**text, "max_tokens": 1}, "/v1/embeddings": {"input": "a"}, "/tokenize": text,
                  CHAT: {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}, "/detokenize": {"tokens": [1]}}
        for path, body in bodies.items():
            for model in ("tiny", "one", "two", None):
                with self.subTest(path=path, model=model):
                    answer = self.server.post(path, {**body, "model": model})
                    self.assertEqual(200, answer.status, answer.text)
                    if path.startswith("/v1/"):
                        self.assertEqual(model or "tiny", answer.json["model"])
            for model in ("three", ""):
                self.assertIn("tiny, one, two", self.refused(404, path, {**body, "model": model}))

    def test_embeddings_are_the_adapters_own(self):
        vectors = {model: self.server.post("/v1/embeddings", {"model": model, "input": "a text"}).json["data"][0]["embedding"]
                   for model in ("tiny", "one", "two")}
        self.assertEqual(3, len({tuple(vector) for vector in vectors.values()}))

    def test_the_same_as_offline(self):
        for flags, model in ((["--lora", self.one], "one"), ([], "tiny")):
            ids = ",".join(map(str, request(model, 5)["prompt"]))
            done = subprocess.run([OCTAVO, "generate", MODEL, "--prompt-token-ids", ids, "--max-tokens", str(LONG),
                                   "--temperature", "0", "--ignore-eos", "--json", *flags],
                                  check=True, capture_output=True, timeout=300)
            self.assertEqual(json.loads(done.stdout)["outputs"][0]["text"], self.answer(model, 5))

    def test_many_at_once(self):
        jobs = [(("tiny", "one", "two")[i % 3], i // 3 % 5, 5 + i % 30) for i in range(60)]
        alone = [self.answer(*job) for job in jobs]
        for _ in range(2):
            self.assertEqual(alone, at_once([lambda job=job: self.answer(*job) for job in jobs]))

    def test_routes_are_closed(self):
        body = {"lora_name": "x", "lora_path": str(self.one)}
        self.assertIn("--allow-runtime-lora-updating", self.refused(403, LOAD, body, **ADMIN))
        self.assertIn("--allow-runtime-lora-updating", self.refused(403, UNLOAD, body, **ADMIN))
        self.refused(401, LOAD, body)


class Updated(LoraCase):
    FLAGS = ("--enable-lora", "--allow-runtime-lora-updating", "--max-loras", "3", "--max-lora-rank", "4")

    def setUp(self):
        for model in self.server.call("GET", "/v1/models").json["data"][1:]:
            self.admin(UNLOAD, lora_name=model["id"])

    def load(self, name, path, **more):
        answer = self.admin(LOAD, lora_name=name, lora_path=str(path), **more)
        self.assertEqual(200, answer.status, answer.text)
        return answer.text

    def test_load_and_unload(self):
        base = self.answer("tiny")
        self.assertIn("Success", self.load("a", self.one))
        one = self.answer("a")
        self.assertNotEqual(base, one)
        self.assertIn("already", self.refused(400, LOAD, {"lora_name": "a", "lora_path": str(self.two)}, **ADMIN))
        self.load("a", self.two, load_inplace=True)
        two = self.answer("a")
        self.assertNotIn(two, (one, base))
        self.assertEqual(200, self.admin(UNLOAD, lora_name="a").status)
        self.refused(404, COMPLETIONS, request("a", 0))
        self.refused(404, UNLOAD, {"lora_name": "a"}, **ADMIN)
        self.load("a", self.one)  # again under the same name
        self.assertEqual(one, self.answer("a"))

    def test_what_is_wrong_is_said(self):
        big = write_adapter(self.folder / "big", 3, rank=5)
        for body, part in (({"lora_path": "x"}, "lora_name"), ({"lora_name": "x"}, "lora_path"),
                           ({"lora_name": 1, "lora_path": "x"}, "lora_name"),
                           ({"lora_name": "a b", "lora_path": "x"}, "spaces"),
                           ({"lora_name": "tiny", "lora_path": str(self.one)}, "own name"),
                           ({"lora_name": "x", "lora_path": str(big)}, "--max-lora-rank"),
                           ({"lora_name": "x", "lora_path": str(self.one), "load_inplace": 1}, "load_inplace")):
            self.assertIn(part, self.refused(400, LOAD, body, **ADMIN))
        self.refused(404, LOAD, {"lora_name": "x", "lora_path": str(self.folder / "nothing")}, **ADMIN)
        self.refused(401, LOAD, {"lora_name": "x", "lora_path": str(self.one)})
        for name in "abc":
            self.load(name, self.one)
        self.assertIn("--max-loras", self.refused(400, LOAD, {"lora_name": "d", "lora_path": str(self.one)}, **ADMIN))

    def test_an_answer_ends_with_the_adapter_it_began_with(self):
        self.load("a", self.one)
        expected = self.answer("a", 1, 180)
        for change in (lambda: self.load("a", self.two, load_inplace=True), lambda: self.admin(UNLOAD, lora_name="a")):
            self.load("a", self.one, load_inplace=True)
            body, headers = encode({**request("a", 1, 180), "stream": True}, None)
            with self.server.connect() as connection:
                connection.request("POST", COMPLETIONS, body, headers)
                response = connection.getresponse()
                begin = response.readline()  # it has begun
                self.assertTrue(begin.startswith(b"data: "), begin)
                change()
                self.assertEqual(expected, text_of(parse_events(begin + response.read())))

    def test_changes_under_load(self):
        self.load("one", self.one)
        self.load("two", self.two)
        expected = {name: [self.answer(name, i, 20) for i in range(5)] for name in ("one", "two", "tiny")}
        self.load("a", self.one)
        counts = {200: 0, 404: 0}

        def ask(i):
            for k in range(15):
                model = ("a", "tiny", "one", "two")[(i + k) % 4]
                answer = self.server.post(COMPLETIONS, request(model, k % 5, 20))
                counts[answer.status] += 1
                if answer.status == 404:
                    self.assertEqual("a", model)
                    continue
                text = answer.json["choices"][0]["text"]
                allowed = [expected[n][k % 5] for n in (("one", "two") if model == "a" else (model,))]
                self.assertIn(text, allowed)

        def change():
            for k in range(30):
                if k % 3 == 2:
                    self.admin(UNLOAD, lora_name="a")
                else:
                    self.load("a", (self.one, self.two)[k % 2], load_inplace=True)

        at_once([lambda i=i: ask(i) for i in range(8)] + [change], limit_s=300)
        self.assertEqual(120, sum(counts.values()))
        self.assertGreater(counts[200], 60)


class Refused(unittest.TestCase):
    def test_at_the_start(self):
        with tempfile.TemporaryDirectory() as name:
            folder = write_adapter(Path(name) / "a", 1)
            for flags, part in ((["--lora-modules", "a"], "NAME=PATH"),
                                (["--lora-modules", f"a={folder}", "--no-enable-lora"], "--no-enable-lora"),
                                (["--lora-modules", f"a={folder}", f"a={folder}"], "already"),
                                (["--lora-modules", f"a={folder}/nothing"], "nothing"),
                                (["--lora-modules", f"a={folder}", "--max-lora-rank", "3"], "--max-lora-rank"),
                                (["--lora-modules", f"a={folder}", f"b={folder}", "--max-loras", "1"], "--max-loras")):
                done = subprocess.run([OCTAVO, "serve", MODEL, "--port", "0", *flags], capture_output=True,
                                      timeout=60, text=True)
                self.assertNotEqual(0, done.returncode)
                self.assertIn(part, done.stderr)
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
