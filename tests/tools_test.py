#!/usr/bin/env python3
"""Tests of what runs the tests and reports on them: needs.py, report.py, golden/replay.py, cli/docs_test.py."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
import report  # noqa: E402


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], env=dict(os.environ, **environment), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-tools-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path


class Needs(Folder):
    def kubectl(self, minor):
        """What needs.py finds if the only kubectl is of that version."""
        self.write("kubectl", f"#!/bin/sh\necho '{{\"clientVersion\": {{\"major\": \"1\", \"minor\": \"{minor}\"}}}}'\n", 0o755)
        code, shown = run(sys.executable, "-c", "import needs; print(needs.kubectl())", PYTHONPATH=str(TESTS), PATH=f"{self.folder}:/nowhere",
                          HOLDFAST_KUBECTL="", HOLDFAST_PEER=str(self.folder / "none"))
        self.assertEqual(code, 0, shown)
        return shown.strip()

    def test_an_old_kubectl_counts_as_absent(self):
        self.assertEqual(self.kubectl("20+"), "None")
        self.assertEqual(self.kubectl("26"), "None")

    def test_a_new_kubectl_is_found(self):
        self.assertEqual(self.kubectl("27+"), str(self.folder / "kubectl"))
        self.assertEqual(self.kubectl("36"), str(self.folder / "kubectl"))

    def test_a_skip_names_its_reason_and_command(self):
        self.assertEqual(run(sys.executable, TESTS / "needs.py", "--skip", "no such thing", "make it"), (77, "skipped: no such thing; to run it: make it\n"))

    def test_a_toolchain_that_is_absent_or_whose_registry_fails_is_missing(self):
        ask = [sys.executable, "-c", "import needs, sys; print(needs.missing(sys.argv[1]))", "npm"]
        environment = {"PYTHONPATH": str(TESTS), "PATH": f"{self.folder}:/nowhere", "HOLDFAST_TOOLS_HOME": str(self.folder)}
        self.assertEqual(run(*ask, **environment)[1], "npm is not installed\n")
        self.write("npm", "#!/bin/sh\necho no network\nexit 1\n", 0o755)
        self.assertIn("no packages for npm: `npm view @kubernetes/client-node` failed: no network", run(*ask, **environment)[1])
        self.write("npm", "#!/bin/sh\necho 1.4.0\n", 0o755)
        self.assertEqual(run(*ask, **environment)[1], "None\n")


def case(name, status, output="", inside=""):
    escaped = output.replace("&", "&amp;").replace("<", "&lt;")
    return f'<testcase name="{name}" status="{status}">{inside}<system-out>{escaped}</system-out></testcase>'


class Report(Folder):
    def report(self, *cases, retries=None, options=()):
        files = [self.write("results.xml", f"<testsuite>{''.join(cases)}</testsuite>")]
        if retries:
            files.append(self.write("retries.xml", f"<testsuite>{retries}</testsuite>"))
        code, shown = run(sys.executable, TESTS / "report.py", *options, *files)
        return code, shown, shown.splitlines()[-1]

    def test_the_last_line_counts_every_test_and_skipped_part(self):
        code, shown, last = self.report(
            case("good", "run", "skipped part: in zsh: zsh is not installed\n"),
            case("absent", "notrun", "skipped: no kubectl; to run it: ./dev test --all '^absent$'\n", '<skipped message="SKIP_RETURN_CODE=77"/>'))
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 2 skipped"))
        self.assertRegex(shown, r"skipped  absent +no kubectl +\./dev test --all '\^absent\$'")
        self.assertRegex(shown, r"skipped  good: in zsh +zsh is not installed +\./dev test --all '\^good\$'")

    def test_a_failure_fails(self):
        code, shown, last = self.report(case("good", "run"), case("bad", "fail", "skipped: not really\n", '<failure message="Timeout"/>'))
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertRegex(shown, r"failed +bad +Timeout")

    def test_a_test_that_did_not_run_without_a_reason_failed(self):
        code, shown, last = self.report(case("good", "run"), case("lost", "notrun", "", '<skipped message="Unable to find executable"/>'))
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("Unable to find executable", shown)

    def test_a_run_without_tests_fails(self):
        self.assertEqual(self.report()[0], 1)

    def test_problems_and_a_failure_of_ctest_fail(self):
        self.assertEqual(self.report(case("good", "run"), options=["--problem", "a leak"])[::2], (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.report(case("good", "run"), options=["--status", "8"])[::2], (1, "1 passed, 1 failed, 0 skipped"))

    def test_the_second_result_of_a_flaky_test_counts_and_is_reported(self):
        failed = case("flaky", "fail", "", "<failure/>")
        code, shown, last = self.report(failed, retries=case("flaky", "run"), options=["--status", "8"])
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 0 skipped"))
        self.assertRegex(shown, r"retried +flaky +failed, then passed")
        self.assertEqual(self.report(failed, retries=failed)[0], 1)

    def test_skips_of_unittest_are_parts(self):
        source = self.write("two_test.py", "import unittest\n"
                            "class T(unittest.TestCase):\n"
                            "    @unittest.skip('no root')\n    def test_a(self): pass\n"
                            "    def test_b(self):\n        'With a docstring.'\n        self.skipTest(\"it isn't there\")\n"
                            "    def test_c(self): pass\n"
                            "unittest.main(verbosity=int(__import__('sys').argv.pop()))\n")
        self.assertEqual(report.skipped_parts(run(sys.executable, source, 2)[1]), [("test_a", "no root"), ("test_b", "it isn't there")])
        [(name, reason)] = report.skipped_parts(run(sys.executable, source, 1)[1])
        self.assertEqual(name, "2 cases")
        self.assertIn("verbosity=2", reason)

    def test_skips_of_googletest_are_parts(self):
        output = ("[ RUN      ] Suite.Case\nsrc/a_test.cc:7: Skipped\nno IPv6\n\n[  SKIPPED ] Suite.Case (0 ms)\n"
                  "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Suite.Case\n\n  YOU HAVE 1 DISABLED TEST\n")
        self.assertEqual(report.skipped_parts(output), [("Suite.Case", "no IPv6"), ("1 disabled cases", "disabled in the source")])

    def test_parts_skipped_for_one_reason_are_one_row(self):
        self.assertEqual(report.grouped([("t", "a", "x"), ("t", "b", "x"), ("t", "c", "y")]), [("t", "2 parts, such as a", "x"), ("t", "c", "y")])


class Comparisons(Folder):
    def test_a_replay_of_nothing_fails(self):
        code, shown = run(sys.executable, TESTS / "golden" / "replay.py", "--server", "https://127.0.0.1:1", self.folder)
        self.assertNotEqual(code, 0)
        self.assertIn("no recordings in", shown)
        code, shown = run(sys.executable, TESTS / "golden" / "replay.py", "--server", "https://127.0.0.1:1", "--only", "no such recording", TESTS / "golden" / "apply")
        self.assertNotEqual(code, 0)

    def test_a_comparison_with_a_missing_program_fails(self):
        missing = self.folder / "missing"
        self.assertIn("to compare with", run(sys.executable, TESTS / "compare" / "cel.py", missing, missing)[1])
        self.assertEqual(run(sys.executable, TESTS / "compare" / "cel.py", missing, missing)[0], 1)
        self.assertEqual(run(sys.executable, TESTS / "compare" / "cel_conformance.py", missing, missing, "--suite", self.folder)[0], 1)
        self.assertEqual(run(TESTS / "compare" / "run.sh", missing, KUBE_APISERVER=str(missing))[0], 1)

    def test_a_replay_of_a_missing_or_broken_file_fails(self):
        for path in (self.folder / "missing", self.folder / "missing.json", self.write("broken.json", "{")):
            self.assertNotEqual(run(sys.executable, TESTS / "golden" / "replay.py", "--list", TESTS / "golden" / "discovery", path)[0], 0, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
