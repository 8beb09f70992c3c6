#!/usr/bin/env python3
"""`octavo pull` of folders of safetensors, against hubs of the tests' own on this machine.

Needs OCTAVO_BINARY.
"""

import hashlib
import json
import subprocess
import threading
import time
import unittest
from pathlib import Path

from hub_server import BINARY, LIMIT_S, PullCase, cut_after, ranged, tree_entry

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "tests/data/tiny/llama-tied"
TEXTS = ["chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
FIRST = "org/name/"


def texts():
    return {name: (TINY / name).read_bytes() for name in TEXTS}


def single():
    return texts() | {SINGLE: (TINY / SINGLE).read_bytes()}


def sharded():
    """The same model in two files and an index."""
    content = (TINY / SINGLE).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    names = sorted(header)
    parts = [names[:len(names) // 2], names[len(names) // 2:]]
    files, places = texts(), {}
    for shard, part in zip(SHARDS, parts):
        table, data = {}, b""
        for name in part:
            begin, end = (8 + length + at for at in header[name]["data_offsets"])
            table[name] = header[name] | {"data_offsets": [len(data), len(data) + end - begin]}
            data += content[begin:end]
            places[name] = shard
        text = json.dumps(table).encode()
        files[shard] = len(text).to_bytes(8, "little") + text + data
    files[INDEX] = json.dumps({"metadata": {}, "weight_map": places}).encode()
    return files


def git_entry(path, content):
    """As a hub lists a small file, which git itself keeps."""
    digest = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": digest}


def listing(files):
    return [(tree_entry if path.endswith(".safetensors") else git_entry)(path, body) for path, body in files.items()]


class PullFolderTest(PullCase):
    def folder_hub(self, files, **kwargs):
        return self.hub(files, listing(files), **kwargs)

    def asked_for(self, hub):
        return sorted(path.rsplit("/", 1)[1] for path, _ in hub.requests if "resolve" in path)

    def generated(self, hub, model):
        run = self.octavo(hub, "generate", str(model), "--prompt-token-ids", "1,2,3", "--max-tokens", "8",
                          "--ignore-eos", "--temperature", "0", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["outputs"][0]["token_ids"]

    def assert_pulled(self, hub, files):
        run = self.pull(hub)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, f"{self.hub_folder / 'org/name'}\n")
        self.assert_kept(files)

    def assert_kept(self, files):
        self.assertEqual(self.files(), sorted(FIRST + path for path in files))
        for path, body in files.items():
            self.assertEqual((self.hub_folder / FIRST / path).read_bytes(), body, path)

    def assert_not_used(self, url):
        """What is not whole is no model."""
        run = self.octavo(url, "inspect", "org/name")
        self.assert_fails(run, "not_found", "no such model is here")

    # --- what goes well ---------------------------------------------------------------------

    def check_use_without_the_hub(self, files):
        more = {"README.md": b"x", "pytorch_model.bin": b"x", "original/model.safetensors": b"x", "x.py": b"x"}
        hub = self.folder_hub(files | more)
        self.assert_pulled(hub, files)
        # Again: the list is asked for, the files are not.
        self.assert_pulled(hub, files)
        self.assertEqual(self.asked_for(hub), sorted(files))
        hub.close()
        self.assertEqual(self.generated(hub, "org/name"), self.generated(hub, TINY))
        for command in (["inspect", "org/name"], ["quantize", "org/name", f"{self.cache.name}/out.gguf", "--type", "q8_0"]):
            run = self.octavo(hub, *command)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_folder_is_fetched_kept_and_used_without_the_hub(self):
        self.check_use_without_the_hub(single())

    def test_a_folder_of_shards_is_too(self):
        self.check_use_without_the_hub(sharded())

    def test_the_index_counts_more_than_a_whole_file(self):
        files = sharded()
        hub = self.folder_hub(files | {SINGLE: (TINY / SINGLE).read_bytes()})
        self.assert_pulled(hub, files)

    def test_a_template_for_tools_comes_too_and_goes_with_its_version(self):
        files = single() | {"additional_chat_templates/tool_use.jinja": b"{{ tools }}"}
        self.assert_pulled(self.folder_hub(files | {"additional_chat_templates/x.py": b"x"}), files)
        self.assert_pulled(self.folder_hub(single()), single())

    def test_generate_fetches_what_is_not_here(self):
        hub = self.folder_hub(sharded())
        self.assertEqual(self.generated(hub, "org/name"), self.generated(hub, TINY))
        self.assert_kept(sharded())

    def test_a_gguf_file_comes_first(self):
        files = single() | {"a.gguf": b"x" * 1000}
        hub = self.folder_hub(files)
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual(self.asked_for(hub), ["a.gguf"])

    def test_what_is_optional_may_be_absent(self):
        files = {name: body for name, body in single().items() if name in ("config.json", "tokenizer.json", SINGLE)}
        self.assert_pulled(self.folder_hub(files), files)

    def test_what_says_how_embeddings_are_pooled_comes_too(self):
        files = single() | {"modules.json": b"[]", "1_Pooling/config.json": b"{}"}
        self.assert_pulled(self.folder_hub(files | {"2_Dense/config.json": b"{}"}), files)

    def test_what_is_here_is_named_offline(self):
        self.assert_pulled(self.folder_hub(single()), single())
        run = self.octavo("http://127.0.0.1:1", "inspect", "org/other")
        self.assert_fails(run, "not_found", "holds org/name ")

    # --- other versions ---------------------------------------------------------------------

    def test_a_new_version_takes_the_place_of_the_old(self):
        self.assert_pulled(self.folder_hub(single()), single())
        files = sharded()
        del files["chat_template.jinja"]
        hub = self.folder_hub(files)
        self.assert_pulled(hub, files)
        # The mark of a whole folder was gone meanwhile.
        self.assertEqual(self.asked_for(hub), sorted([INDEX, *SHARDS, "config.json"]))
        self.assert_pulled(self.folder_hub(single()), single())

    def test_a_damaged_file_is_fetched_again(self):
        self.assert_pulled(self.folder_hub(sharded()), sharded())
        path = self.hub_folder / FIRST / SHARDS[1]
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        hub = self.folder_hub(sharded())
        self.assert_pulled(hub, sharded())
        self.assertEqual(self.asked_for(hub), sorted([SHARDS[1], "config.json"]))

    # --- what fails -------------------------------------------------------------------------

    def test_a_file_that_fails_leaves_the_others_and_the_next_run_goes_on(self):
        files = sharded()
        gone = self.folder_hub(files, send=lambda handler, body: (404, {}, b"") if SHARDS[1] in handler.path
                               else ranged(handler, body))
        self.assert_fails(self.pull(gone), "not_found", f"file {SHARDS[1]} of org/name")
        self.assertIn(FIRST + SHARDS[0], self.files())
        self.assertNotIn(FIRST + "config.json", self.files())
        self.assert_not_used(gone)
        hub = self.folder_hub(files)
        self.assert_pulled(hub, files)
        self.assertEqual(self.asked_for(hub), [SHARDS[1]])

    def test_a_wrong_checksum_and_a_wrong_size(self):
        files = sharded()
        entries = listing(files)
        broken = next(e for e in entries if e["path"] == SHARDS[0])
        broken["lfs"]["oid"] = "ab" * 32
        self.assert_fails(self.pull(self.hub(files, entries)), "corrupt_file", SHARDS[0], "checksum")
        self.assertNotIn(FIRST + SHARDS[0], self.files())
        broken["lfs"] = tree_entry(SHARDS[0], files[SHARDS[0]])["lfs"] | {"size": 100}
        self.assert_fails(self.pull(self.hub(files, entries)), "corrupt_file", "more than the 100 bytes", SHARDS[0])
        self.assertNotIn(FIRST + SHARDS[0], self.files())
        broken["lfs"]["size"] = len(files[SHARDS[0]]) + 5
        self.assert_fails(self.pull(self.hub(files, entries)), "io_error", SHARDS[0], "does not come")
        self.assert_pulled(self.folder_hub(files), files)

    def test_a_cut_transfer_goes_on(self):
        hub = self.folder_hub(sharded(), send=lambda handler, body: cut_after(handler, body, 30_000))
        self.assert_pulled(hub, sharded())

    def test_the_next_run_goes_on_after_a_kill(self):
        files = sharded()
        reached = threading.Event()

        def stall(handler, body):
            if SHARDS[1] not in handler.path:
                return ranged(handler, body)
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[:40_000])
            handler.wfile.flush()
            reached.set()
            time.sleep(LIMIT_S)

        hub = self.folder_hub(files, send=stall)
        process = subprocess.Popen([BINARY, "pull", "org/name"], env=self.environment(hub), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(reached.wait(LIMIT_S))
            until = time.monotonic() + LIMIT_S
            while not (kept := list(self.hub_folder.rglob(f".{SHARDS[1]}.*.part"))) or kept[0].stat().st_size < 20_000:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
            # Meanwhile another process may not write there.
            self.assert_fails(self.pull(hub), "resource_exhausted", "another process")
        finally:
            process.kill()
            process.wait(LIMIT_S)
        size = kept[0].stat().st_size
        self.assert_not_used(hub)
        second = self.folder_hub(files)
        self.assert_pulled(second, files)
        self.assertEqual([(p.rsplit("/", 1)[1], h.get("Range")) for p, h in second.requests if "resolve" in p],
                         [(SHARDS[1], f"bytes={size}-")])

    def test_no_room_for_all_is_said_before_anything_large_comes(self):
        files = sharded()
        entries = listing(files)
        for entry in entries:
            if entry["path"] in SHARDS:
                entry["lfs"]["size"] = 1 << 41
        hub = self.hub(files, entries)
        self.assert_fails(self.pull(hub), "resource_exhausted", "room", f"{2 * (1 << 41) / 1e6:.0f}"[:5])
        self.assertEqual(self.asked_for(hub), ["config.json", INDEX])

    def test_a_family_that_is_not_known_is_refused_before_anything_large_comes(self):
        files = single()
        config = json.loads(files["config.json"])
        files["config.json"] = json.dumps(config | {"model_type": "mamba"}).encode()
        hub = self.folder_hub(files)
        self.assert_fails(self.pull(hub), "unsupported", "org/name/config.json", "'mamba'")
        self.assertEqual(self.asked_for(hub), ["config.json"])
        files["config.json"] = b" " * (2 << 20)
        self.assert_fails(self.pull(self.folder_hub(files)), "unsupported", "config.json has")

    def test_what_must_be_there_is_named(self):
        for name in "config.json", "tokenizer.json", SINGLE:
            files = single()
            del files[name]
            hub = self.folder_hub(files)
            self.assert_fails(self.pull(hub), "not_found", "org/name has no GGUF file", f"{name} is not there")
            self.assertNotIn("tokenizer.json", self.asked_for(hub))
        files = sharded()
        del files[SHARDS[1]]
        self.assert_fails(self.pull(self.folder_hub(files)), "not_found", f"{SHARDS[1]} is not there")

    def test_an_index_cannot_lead_out_of_the_folder(self):
        outside = Path(self.cache.name, "octavo/models/hub/org/evil.safetensors")
        for name in ("../evil.safetensors", "/tmp/evil.safetensors", "..", "a/../../evil.safetensors", "a\\b.safetensors",
                     ".evil.safetensors", "config.json", "evil\x00.safetensors", 5, None, ["x"]):
            files = sharded()
            index = json.loads(files[INDEX])
            index["weight_map"]["model.norm.weight"] = name
            files[INDEX] = json.dumps(index).encode()
            with self.subTest(name):
                hub = self.folder_hub(files | {"../evil.safetensors": b"x"})
                self.assert_fails(self.pull(hub), "corrupt_file", "no name of a safetensors file")
                self.assertFalse(outside.exists())
                self.assertEqual(self.asked_for(hub)[-1], INDEX)

    def test_an_index_that_is_none(self):
        for text in b"{}", b"[]", b"{", b'{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}', b"[" * 10_000:
            files = sharded() | {INDEX: text}
            with self.subTest(text[:20]):
                self.assert_fails(self.pull(self.folder_hub(files)), "corrupt_file", INDEX)


if __name__ == "__main__":
    unittest.main()
