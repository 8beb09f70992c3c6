#!/usr/bin/env python3
"""`octavo pull` and MODEL by its name on a hub, against hubs of the tests' own on this machine.

Needs OCTAVO_BINARY.
"""

import hashlib
import json
import os
import pty
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from hub_server import BINARY, LIMIT_S, TOKEN, PullCase, cut_after, ranged, tree_entry

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "tests/data/tiny/llama-tied/llama-tied-Q4_0.gguf"
BIG = bytes(range(256)) * 8000  # 2 MB, no model


class PullTest(PullCase):
    # --- what goes well ---------------------------------------------------------------------

    def test_a_model_is_fetched_kept_and_used_without_the_hub(self):
        hub = self.hub({"tiny.gguf": MODEL.read_bytes(), "README.md": b"x"})
        run = self.pull(hub)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        path = self.hub_folder / "org/name/tiny.gguf"
        self.assertEqual(run.stdout, f"{path}\n")
        self.assertEqual(path.read_bytes(), MODEL.read_bytes())
        self.assertEqual(self.files(), ["org/name/tiny.gguf"])
        # Again: the list is asked for, the file is not.
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual([path for path, _ in hub.requests if "resolve" in path], ["/org/name/resolve/main/tiny.gguf"])
        hub.close()
        for name in "org/name", "org/name:tiny.gguf":
            run = self.octavo(hub, "generate", name, "--prompt-token-ids", "1,2,3", "--max-tokens", "2", "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.octavo(hub, "inspect", "org/name").returncode, 0)

    def test_generate_fetches_what_is_not_here(self):
        hub = self.hub({"tiny.gguf": MODEL.read_bytes()})
        run = self.octavo(hub, "generate", "org/name", "--prompt-token-ids", "1,2,3", "--max-tokens", "2", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.files(), ["org/name/tiny.gguf"])

    def test_files_in_folders_and_of_several_pages(self):
        content = MODEL.read_bytes()

        def answer(handler):
            if handler.path.startswith("/api/") and "cursor" not in handler.path:
                link = f'<{hub.url}{handler.path}&cursor=2>; rel="next"'
                return 200, {"Link": link}, json.dumps([tree_entry("a.gguf", content)]).encode()
            if handler.path.startswith("/api/"):
                return 200, {}, json.dumps([tree_entry("Q4/b.gguf", content)]).encode()
            return ranged(handler, content)

        hub = self.serve(answer)
        self.assertEqual(self.pull(hub, "org/name:Q4/b.gguf", HF_TOKEN=TOKEN).returncode, 0)
        self.assertEqual(self.files(), ["org/name/Q4/b.gguf"])
        self.assertEqual(hub.tokens(), [f"Bearer {TOKEN}"] * 3)

    def parts(self, stem="m", limit="40000"):
        """A model in several files, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            run = self.octavo("http://127.0.0.1:1", "quantize", str(MODEL), f"{folder}/{stem}.gguf", "--type", "q8_0",
                              "--max-shard-size", limit)
            self.assertEqual(run.returncode, 0, run.stderr)
            return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}

    def test_a_model_in_several_parts(self):
        parts = self.parts()
        names = list(parts)
        self.assertGreater(len(names), 2)
        hub = self.hub(parts | {"README.md": b"x"})
        run = self.pull(hub)
        first = self.hub_folder / "org/name" / names[0]
        self.assertEqual((run.returncode, run.stderr, run.stdout), (0, "", f"{first}\n"))
        self.assertEqual(self.files(), [f"org/name/{name}" for name in names])
        self.assertEqual(self.pull(hub, f"org/name:{names[1]}").stdout, f"{first}\n")
        self.assertEqual(len([path for path, _ in hub.requests if "resolve" in path]), len(names))
        hub.close()
        for name in "org/name", f"org/name:{names[0]}", f"org/name:{names[-1]}":
            run = self.octavo(hub, "generate", name, "--prompt-token-ids", "1,2,3", "--max-tokens", "2", "--json")
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_without_one_of_its_parts_there_is_no_model(self):
        parts = self.parts()
        names = list(parts)
        gone = self.hub({name: parts[name] for name in names if name != names[1]})
        self.assert_fails(self.pull(gone), "not_found", f"no file {names[1]}")
        self.assertEqual(self.files(), [])
        # What an interrupted run has fetched is no model yet, and is not fetched again.
        broken = self.hub(parts, send=lambda handler, body: (404, {}, b"") if names[2] in handler.path
                          else ranged(handler, body))
        self.assertNotEqual(self.pull(broken).returncode, 0)
        self.assertEqual([path for path in self.files() if not path.endswith(".part")],
                         [f"org/name/{name}" for name in names[:2]])
        run = self.octavo("http://127.0.0.1:1", "inspect", "org/name")
        self.assertEqual(run.returncode, 3, run.stderr)
        hub = self.hub(parts)
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual([path.rsplit("/", 1)[1] for path, _ in hub.requests if "resolve" in path], names[2:])

    def test_parts_of_two_versions_are_never_together(self):
        old, new = self.parts(), self.parts()
        names = list(old)
        new[names[1]] = new[names[1]][:-1] + b"x"
        new[names[2]] = new[names[2]][:-1] + b"y"
        self.assertEqual(self.pull(self.hub(old)).returncode, 0)
        broken = self.hub(new, send=lambda handler, body: (404, {}, b"") if names[2] in handler.path
                          else ranged(handler, body))
        self.assertNotEqual(self.pull(broken).returncode, 0)
        self.assertNotIn(f"org/name/{names[2]}", self.files())
        self.assertEqual(self.octavo("http://127.0.0.1:1", "inspect", "org/name").returncode, 3)
        self.assertEqual(self.pull(self.hub(new)).returncode, 0)
        for name in names:
            self.assertEqual((self.hub_folder / "org/name" / name).read_bytes(), new[name])

    def test_of_several_models_one_is_named_by_any_part(self):
        files = self.parts("a") | self.parts("b") | {"c.gguf": MODEL.read_bytes()}
        run = self.pull(self.hub(files))
        self.assert_fails(run, "invalid_argument", "has 3 GGUF files")
        first = next(name for name in files if name.startswith("a"))
        self.assertIn(f"{first} and its other parts", run.stderr)
        self.assertEqual(self.pull(self.hub(files), f"org/name:{first}").returncode, 0)
        self.assertEqual(self.files(), [f"org/name/{name}" for name in files if name.startswith("a")])

    def test_a_small_file_has_gits_checksum(self):
        content = b"small"
        digest = hashlib.sha1(b"blob 5\0" + content).hexdigest()
        entry = {"type": "file", "path": "a.gguf", "size": 5, "oid": digest}
        self.assertEqual(self.pull(self.hub({"a.gguf": content}, [entry])).returncode, 0)
        self.assertEqual(self.files(), ["org/name/a.gguf"])

    def test_progress_on_a_terminal(self):
        hub = self.hub({"a.gguf": BIG})
        controller, terminal = pty.openpty()
        process = subprocess.Popen([BINARY, "pull", "org/name"], env=self.environment(hub), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        said = b""
        try:
            while chunk := os.read(controller, 4096):
                said += chunk
        except OSError:  # the other end is closed
            pass
        process.communicate(timeout=LIMIT_S)
        os.close(controller)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(said.decode(), r"Fetching org/name: \d+ % of 2.0 MB")

    # --- cuts, and what is resumed ----------------------------------------------------------

    def test_a_cut_transfer_goes_on(self):
        hub = self.hub({"a.gguf": BIG}, send=lambda handler, body: cut_after(handler, body, 900_000))
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual((self.hub_folder / "org/name/a.gguf").read_bytes(), BIG)
        ranges = [headers.get("Range") for path, headers in hub.requests if "resolve" in path]
        self.assertEqual(len(ranges), 3)
        self.assertIsNone(ranges[0])
        self.assertRegex(ranges[2], r"^bytes=\d+-$")

    def test_the_next_run_goes_on_after_a_kill(self):
        reached = threading.Event()

        def stall(handler, body):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body[:1_000_000])
            handler.wfile.flush()
            reached.set()
            time.sleep(LIMIT_S)

        hub = self.hub({"a.gguf": BIG}, send=stall)
        process = subprocess.Popen([BINARY, "pull", "org/name"], env=self.environment(hub), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.assertTrue(reached.wait(LIMIT_S))
        until = time.monotonic() + LIMIT_S
        while not (kept := list(self.hub_folder.rglob(".a.gguf.*.part"))) or kept[0].stat().st_size < 500_000:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        # Meanwhile another process may not write there.
        self.assert_fails(self.pull(hub), "resource_exhausted", "another process")
        process.kill()
        process.wait(LIMIT_S)
        size = kept[0].stat().st_size
        second = self.hub({"a.gguf": BIG})
        self.assertEqual(self.pull(second).returncode, 0)
        self.assertEqual((self.hub_folder / "org/name/a.gguf").read_bytes(), BIG)
        self.assertEqual([h.get("Range") for p, h in second.requests if "resolve" in p], [f"bytes={size}-"])
        self.assertEqual(self.files(), ["org/name/a.gguf"])

    def test_a_server_without_ranges_is_read_from_the_start(self):
        sent = []

        def once_cut(handler, body):
            sent.append(handler.headers.get("Range"))
            if len(sent) == 1:
                return cut_after(handler, body, 900_000)
            return 200, {}, body

        self.assertEqual(self.pull(self.hub({"a.gguf": BIG}, send=once_cut)).returncode, 0)
        self.assertEqual((self.hub_folder / "org/name/a.gguf").read_bytes(), BIG)

    def test_a_server_that_sends_another_part_is_refused(self):
        sent = []

        def other_part(handler, body):
            sent.append(1)
            if len(sent) == 1:
                return cut_after(handler, body, 900_000)
            return 206, {"Content-Range": f"bytes 5-{len(body) - 1}/{len(body)}"}, body[5:]

        self.assert_fails(self.pull(self.hub({"a.gguf": BIG}, send=other_part)), "io_error", "another part")

    def test_one_that_never_gets_on_ends(self):
        hub = self.hub({"a.gguf": BIG}, send=lambda handler, body: cut_after(handler, body, 0))
        self.assert_fails(self.pull(hub), "io_error", "try again later")
        hub = self.hub({"a.gguf": BIG}, send=lambda handler, body: (503, {}, b"busy"))
        self.assert_fails(self.pull(hub), "io_error", "HTTP 503")

    def test_a_file_of_another_version_is_not_continued(self):
        first = self.hub({"a.gguf": BIG}, send=lambda handler, body: cut_after(handler, body, 0) if handler.headers.get(
            "Range") else cut_after(handler, body, 900_000))
        self.assert_fails(self.pull(first), "io_error")
        other = BIG[::-1]
        self.assertEqual(self.pull(self.hub({"a.gguf": other})).returncode, 0)
        self.assertEqual((self.hub_folder / "org/name/a.gguf").read_bytes(), other)

    # --- checksums and sizes ----------------------------------------------------------------

    def test_a_wrong_checksum_leaves_nothing(self):
        hub = self.hub({"a.gguf": BIG}, [tree_entry("a.gguf", BIG, "ab" * 32)])
        self.assert_fails(self.pull(hub), "corrupt_file", "checksum")
        self.assertEqual(self.files(), [])

    def test_a_damaged_file_is_fetched_again(self):
        hub = self.hub({"a.gguf": BIG})
        self.assertEqual(self.pull(hub).returncode, 0)
        path = self.hub_folder / "org/name/a.gguf"
        path.write_bytes(BIG[:-1] + b"x")
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual(path.read_bytes(), BIG)

    def test_more_bytes_than_listed_are_refused(self):
        entry = tree_entry("a.gguf", BIG)
        entry["lfs"]["size"] = 1000
        self.assert_fails(self.pull(self.hub({"a.gguf": BIG}, [entry])), "corrupt_file", "more than the 1000 bytes")

    def test_no_room(self):
        entry = tree_entry("a.gguf", BIG)
        entry["lfs"]["size"] = 1 << 41
        self.assert_fails(self.pull(self.hub({"a.gguf": BIG}, [entry])), "resource_exhausted", "room")

    # --- encryption -------------------------------------------------------------------------

    @unittest.skipUnless(shutil.which("openssl"), "makes a certificate")
    def test_https_and_who_is_trusted(self):
        key, certificate = Path(self.cache.name, "key.pem"), Path(self.cache.name, "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", key,
                        "-out", certificate], check=True, capture_output=True, timeout=LIMIT_S)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        hub = self.hub({"a.gguf": BIG}, tls=tls)
        self.assert_fails(self.pull(hub, HF_TOKEN=TOKEN), "io_error", "certificate of 127.0.0.1 is not trusted", "SSL_CERT_FILE")
        self.assertEqual(hub.requests, [], "nothing is said to a stranger")
        for other in Path(self.cache.name, "none.pem"), MODEL:
            self.assert_fails(self.pull(hub, SSL_CERT_FILE=str(other)), "io_error", "SSL_CERT_FILE")
        run = self.pull(hub, HF_TOKEN=TOKEN, SSL_CERT_FILE=str(certificate))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual((self.hub_folder / "org/name/a.gguf").read_bytes(), BIG)
        self.assertEqual(hub.tokens(), [f"Bearer {TOKEN}"] * 2)
        # What began encrypted does not go on in the clear.
        plain = self.serve(lambda handler: ranged(handler, BIG))
        away = self.hub({"b.gguf": BIG}, send=lambda *_: (302, {"Location": plain.url}, b""), tls=tls)
        self.assert_fails(self.pull(away, SSL_CERT_FILE=str(certificate)), "io_error", "without encryption")
        self.assertEqual(plain.requests, [])

    # --- the token --------------------------------------------------------------------------

    def test_the_token_does_not_follow_to_another_host(self):
        elsewhere = self.serve(lambda handler: ranged(handler, BIG))
        hub = self.hub({"a.gguf": BIG}, send=lambda handler, body: (302, {"Location": elsewhere.url + "/blob"}, b""))
        self.assertEqual(self.pull(hub, HF_TOKEN=TOKEN).returncode, 0)
        self.assertEqual(hub.tokens(), [f"Bearer {TOKEN}"] * 2)
        self.assertEqual(elsewhere.tokens(), [None])

    def test_nor_back_from_there(self):
        back = []
        elsewhere = self.serve(lambda handler: (302, {"Location": back[0] + "/org/name/resolve/main/a.gguf"}, b""))
        back.append("")

        def send(handler, body):
            if len(back) == 1:
                back[0] = hub.url
                back.append("sent")
                return 302, {"Location": elsewhere.url + "/blob"}, b""
            return ranged(handler, body)

        hub = self.hub({"a.gguf": BIG}, send=send)
        self.assertEqual(self.pull(hub, HF_TOKEN=TOKEN).returncode, 0)
        self.assertEqual(hub.tokens(), [f"Bearer {TOKEN}"] * 2 + [None])

    def test_the_token_follows_on_the_same_host(self):
        def send(handler, body):
            if "renamed" in handler.path:
                return ranged(handler, body)
            return 307, {"Location": "/org/name/resolve/main/renamed.gguf"}, b""

        hub = self.hub({"a.gguf": BIG, "renamed.gguf": BIG}, [tree_entry("a.gguf", BIG)], send=send)
        self.assertEqual(self.pull(hub, HUGGING_FACE_HUB_TOKEN=TOKEN).returncode, 0)
        self.assertEqual(hub.tokens(), [f"Bearer {TOKEN}"] * 3)

    def test_a_page_of_the_list_elsewhere_is_not_asked_for(self):
        elsewhere = self.serve(lambda handler: (200, {}, b"[]"))
        hub = self.serve(lambda handler: (200, {"Link": f'<{elsewhere.url}/x>; rel="next"'}, json.dumps(
            [tree_entry("a.gguf", BIG)]).encode()) if "api" in handler.path else ranged(handler, BIG))
        self.assertEqual(self.pull(hub, HF_TOKEN=TOKEN).returncode, 0)
        self.assertEqual(elsewhere.requests, [])

    def test_a_token_that_would_break_the_header_is_refused(self):
        hub = self.hub({"a.gguf": BIG})
        for token in "a b", "a\r\nX-Evil: 1", "ä":
            self.assert_fails(self.pull(hub, HF_TOKEN=token), "invalid_argument", "HF_TOKEN")
        self.assertEqual(hub.requests, [])

    # --- refusals ---------------------------------------------------------------------------

    def test_what_the_hub_refuses_is_said(self):
        for status, code, words in ((401, "io_error", "HF_TOKEN"), (403, "io_error", "HF_TOKEN"),
                                    (404, "not_found", "check the name"), (500, "io_error", "HTTP 500")):
            hub = self.serve(lambda handler, status=status: (status, {}, b"no"))
            self.assert_fails(self.pull(hub), code, words)
            self.assert_fails(self.pull(hub, HF_TOKEN=TOKEN), code, words)

    def test_offline_says_so_and_what_is_there(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            self.assert_fails(self.pull(url), "io_error", "offline", "no models")
            self.assertEqual(self.pull(self.hub({"a.gguf": BIG})).returncode, 0)
            run = self.octavo(url, "generate", "org/other", "--prompt", "x")
            self.assert_fails(run, "io_error", "offline", "org/name:a.gguf")

    def test_several_files_and_none(self):
        hub = self.hub({"a.gguf": BIG, "b.gguf": BIG})
        self.assert_fails(self.pull(hub), "invalid_argument", "org/name:a.gguf", "b.gguf")
        self.assert_fails(self.pull(hub, "org/name:c.gguf"), "not_found", "a.gguf, b.gguf")
        self.assertEqual(self.pull(hub, "org/name:b.gguf").returncode, 0)
        self.assert_fails(self.pull(self.hub({"README.md": b"x"})), "not_found", "no GGUF file")

    def test_short_names_are_told_how_they_are_fetched(self):
        hub = self.hub({"a.gguf": BIG})
        self.assert_fails(self.octavo(hub, "pull", "smollm2-135m"), "not_found",
                          "scripts/fetch-model smollm2-135m fetches it")
        self.assert_fails(self.octavo(hub, "pull", "gemma3-270m"), "invalid_argument", "scripts/fetch-model")
        self.assertEqual(hub.requests, [])

    def test_names_that_leave_the_cache_are_refused_before_anything_is_asked(self):
        hub = self.hub({"a.gguf": BIG})
        for name in ("../name", "org/..", "org/name:../a.gguf", "org/name:x/../../a.gguf", "org/name:/etc/a.gguf",
                     "org/name:a\\b.gguf", ".org/name", "org/.name", "org/name:.a.gguf", "org/name:x/.a.gguf",
                     "org/name:%2e%2e/a.gguf", "org/na me", "org/na\nme", "org/näme", "org/name/more", "org/name:",
                     "org/name:a.txt", "org/name:.gguf", "/name", "org/", "name", "org/name:x//a.gguf", "-org/name",
                     "org/" + "n" * 200, "org/name:" + "x/" * 40 + "a.gguf"):
            with self.subTest(name):
                self.assert_fails(self.octavo(hub, "pull", "--", name), "invalid_argument", "no name of a model")
        self.assertEqual(hub.requests, [])
        self.assertFalse(self.hub_folder.exists())

    def test_evil_names_in_the_list_are_not_taken(self):
        evil = ["../../evil.gguf", "/tmp/evil.gguf", "a\\..\\evil.gguf", ".evil.gguf", "x/../evil.gguf", "\x00.gguf",
                "%2e%2e/evil.gguf", "a" * 5000 + ".gguf", "e\x1bvil.gguf"]
        listing = [tree_entry(path, BIG) for path in evil]
        self.assert_fails(self.pull(self.hub({"a.gguf": BIG}, listing)), "not_found", "no GGUF file")
        hub = self.hub({"a.gguf": BIG}, listing + [tree_entry("a.gguf", BIG)])
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual(self.files(), ["org/name/a.gguf"])

    def test_lists_that_are_none(self):
        entry = tree_entry("a.gguf", BIG)
        for body in (b"", b"{}", b"nonsense", b"[1]", b"[" * 100_000, b'[{"type":"file"', b"\xff\xfe"):
            with self.subTest(body[:20]):
                hub = self.serve(lambda handler, body=body: (200, {}, body))
                self.assert_fails(self.pull(hub), "io_error", "list of files")
        for key, value in (("oid", "zz"), ("oid", 5), ("size", -1), ("size", 0), ("size", "9"), ("size", 1 << 70)):
            with self.subTest((key, value)):
                broken = json.loads(json.dumps(entry))
                broken["lfs"][key] = value
                self.assert_fails(self.pull(self.hub({}, [broken])), "not_found", "no GGUF file")
        hub = self.serve(lambda handler: (200, {}, b" " * (9 << 20)))
        self.assert_fails(self.pull(hub), "io_error", "too long")

    def test_redirects_without_end(self):
        hub = self.serve(lambda handler: (302, {"Location": handler.path}, b""))
        self.assert_fails(self.pull(hub), "io_error", "without end")
        hub = self.serve(lambda handler: (302, {"Location": "file:///etc/passwd"}, b""))
        self.assert_fails(self.pull(hub), "invalid_argument")

    def test_endpoints_that_are_none(self):
        for endpoint in "huggingface.co", "ftp://127.0.0.1", "http://", "http://user:word@127.0.0.1", "http://a b":
            with self.subTest(endpoint):
                self.assert_fails(self.pull(endpoint), "invalid_argument", "HF_ENDPOINT")

    def test_a_link_in_place_of_the_partial_file_is_not_followed(self):
        target = Path(self.cache.name, "target")
        target.write_bytes(b"kept")
        folder = self.hub_folder / "org/name"
        folder.mkdir(parents=True)
        digest = hashlib.sha256(BIG).hexdigest()
        (folder / f".a.gguf.{digest[:16]}.part").symlink_to(target)
        self.assert_fails(self.pull(self.hub({"a.gguf": BIG})), "io_error")
        self.assertEqual(target.read_bytes(), b"kept")

    def test_help(self):
        run = subprocess.run([BINARY, "pull", "--help"], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertIn("HF_ENDPOINT", run.stdout)


if __name__ == "__main__":
    unittest.main()
