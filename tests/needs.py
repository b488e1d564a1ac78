"""What a test needs and a machine may lack: programs, package registries, kube-apiserver. Looked up when the test runs.

A test that cannot run calls skip(), which exits with the status that CTest knows as skipped. A test that can run without
some of its parts calls skip_part() for each of them. tests/report.py collects both into the table at the end of `./dev test`.
Look up what is needed before anything is tested, because a failure must never become a skip.

As a program:
  needs.py --skip REASON COMMAND    skips a test
  needs.py --new-enough TOOL        succeeds if that toolchain is installed and new enough
  needs.py --run COMMAND...         runs a command with the toolchains of ./dev test --all on the PATH
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PEERS = pathlib.Path(os.environ.get("HOLDFAST_PEER_HOME") or CACHE / "holdfast-peer")  # Programs of Kubernetes.
TOOLS = pathlib.Path(os.environ.get("HOLDFAST_TOOLS_HOME") or CACHE / "holdfast-tools")  # Toolchains that Debian lacks.
KUBERNETES = "v1.36."
KUBECTL_MINOR = 27
GO = (1, 26)
CARGO = (1, 85)  # For the 2024 edition.


def skip(reason, command=None):
    """Ends the test as skipped."""
    command = command or f"./dev test --all '^{os.environ.get('HOLDFAST_TEST', '')}$'"
    print(f"skipped: {reason}; to run it: {command}", flush=True)
    sys.exit(SKIPPED)


def skip_part(name, reason):
    """`name` must not contain ": "."""
    assert ": " not in name, name
    print(f"skipped part: {name}: {reason}", flush=True)


def peer(*programs):
    """The directory with these programs of Kubernetes (HOLDFAST_PEER, or the newest that ./dev test --all has built), or None."""
    given = os.environ.get("HOLDFAST_PEER")
    folders = [pathlib.Path(given)] if given else sorted(PEERS.glob(KUBERNETES + "*"), key=lambda f: int(f.name.rsplit(".", 1)[1]), reverse=True)
    return next((f for f in folders if all(os.access(f / name, os.X_OK) for name in programs)), None)


NO_PEER = "no kube-apiserver 1.36"


def minor_of(kubectl):
    """36 for v1.36.3; 0 if it does not run."""
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    found = re.search(r'"minor": *"(\d+)', done.stdout)
    return int(found[1]) if found else 0


@functools.lru_cache(None)
def kubectl():
    """A kubectl that is new enough, or None: HOLDFAST_KUBECTL, or the first on the PATH, or that of peer()."""
    given = os.environ.get("HOLDFAST_KUBECTL")
    found = [given] if given else [os.path.join(folder, "kubectl") for folder in os.environ.get("PATH", "").split(":") if folder]
    if not given and peer("kubectl"):
        found.append(str(peer("kubectl") / "kubectl"))
    return next((path for path in found if shutil.which(path) and minor_of(path) >= KUBECTL_MINOR), None)


NO_KUBECTL = f"no kubectl 1.{KUBECTL_MINOR} or newer"


def quiet(command, **more):
    """-> (whether the command succeeds, the line of its output that tells why not: the first with an error, or the last)"""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=300, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return False, str(problem)
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines() if line.strip()]
    telling = lines if done.returncode == 0 else [line for line in lines if "error" in line.lower()][:1] or lines
    return done.returncode == 0, telling[-1].strip() if telling else ""


def with_tools():
    """The environment in which toolchains installed by ./dev test --all are found as well, after those of the machine."""
    added = [str(folder) for folder in (TOOLS / "go" / "bin", TOOLS / "rust" / "bin") if folder.is_dir()]
    # A Go that is too old must not hide a newer one.
    parts = [os.environ.get("PATH", ""), *added] if new_enough("go", os.environ) else [*added, os.environ.get("PATH", "")]
    return dict(os.environ, PATH=":".join(parts))


VERSIONS = {"go": GO, "cargo": CARGO}


def new_enough(tool, environment):
    version = VERSIONS[tool]
    words = {"go": ["env", "GOVERSION"], "cargo": ["--version"]}[tool]
    with tempfile.TemporaryDirectory() as folder:
        if tool == "go":  # With the toolchain that this module makes Go choose.
            (pathlib.Path(folder) / "go.mod").write_text(f"module probe\n\ngo {version[0]}.{version[1]}\n")
        good, shown = quiet([tool, *words], cwd=folder, env=environment)
    found = re.search(r"(\d+)\.(\d+)", shown)
    return good and found is not None and (int(found[1]), int(found[2])) >= version


def missing(tool):
    """Why a toolchain cannot be used here (go, npm, python3, mvn, cargo, or any program), or None. Its package registry must
    respond as well: this is probed with one small package, in the toolchain's own way."""
    return missing_in(tool, json.dumps(with_tools()))


@functools.lru_cache(None)
def missing_in(tool, environment):
    environment = json.loads(environment)
    if shutil.which(tool, path=environment["PATH"]) is None:
        return f"{tool} is not installed"
    if tool in VERSIONS and not new_enough(tool, environment):
        return f"{tool} is older than {'.'.join(map(str, VERSIONS[tool]))}"
    if tool == "cargo" and shutil.which("cc", path=environment["PATH"]) is None:
        return "cargo needs a C compiler (cc) to link"
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as folder:
        here = pathlib.Path(folder)
        probes = {
            "go": [["go", "list", "-m", "k8s.io/api@v0.36.3"]],
            "npm": [["npm", "view", "@kubernetes/client-node", "version"]],
            "python3": [["python3", "-c", "import ensurepip"], ["python3", "-m", "venv", "probe"], ["probe/bin/pip", "download", "--quiet", "--no-deps", "iniconfig"]],
            "mvn": [["mvn", "--batch-mode", "--quiet", "dependency:get", "-Dartifact=org.apiguardian:apiguardian-api:1.1.2:pom", "-Dtransitive=false"]],
            "cargo": [["cargo", "fetch", "--quiet"]],
        }
        if tool == "cargo":
            (here / "src").mkdir()
            (here / "src" / "lib.rs").touch()
            (here / "Cargo.toml").write_text('[package]\nname = "probe"\nversion = "0.1.0"\n[dependencies]\nitoa = "1"\n')
        for command in probes.get(tool, []):
            good, shown = quiet(command, cwd=folder, env=environment)
            if not good:
                return f"no packages for {tool}: `{' '.join(command[:3])}` failed: {shown}"[:200]
    return None


if __name__ == "__main__":
    asked, arguments = sys.argv[1:2], sys.argv[2:]
    if asked == ["--skip"] and len(arguments) == 2:
        skip(*arguments)
    elif asked == ["--new-enough"] and len(arguments) == 1:
        sys.exit(0 if new_enough(arguments[0], with_tools()) else 1)
    elif asked == ["--run"] and arguments:
        sys.exit(subprocess.run(arguments, env=with_tools(), check=False).returncode)
    sys.exit(__doc__)
