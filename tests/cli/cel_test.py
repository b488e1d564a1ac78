#!/usr/bin/env python3
"""cel_test.py HOLDFAST: `holdfast cel` from the command line. Every command of docs/policies.md is run and must print what
the page shows."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/clients"))
from check import check, finish


def run(holdfast, arguments, stdin=""):
    done = subprocess.run([holdfast, *arguments], cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def expect(what, got, want):
    check(got == want, f"{what}\n  got:  {got!r}\n  want: {want!r}")


def check_page(holdfast):
    page = (ROOT / "docs/policies.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```(?:\s*```text\n(.*?)```)?", page, re.S)
    assert len(blocks) >= 6, "docs/policies.md has lost its commands"
    for command, shown in blocks:
        words = shlex.split(command)
        assert words[0] == "holdfast" and command.count("\n") == 1, command
        code, out, err = run(holdfast, words[1:])
        expect(command.strip(), out + err, shown)
        expect(command.strip() + " (exit code)", code, 1 if re.search(r"^(denied|ERROR)|failures: [1-9]", shown, re.M) else 0)


def check_expressions(holdfast, folder):
    (folder / "o.yaml").write_text("a: {b: 1, c: [1, 2]}\n")
    (folder / "old.yaml").write_text("a: {b: 0}\n")
    files = ["-f", str(folder / "o.yaml"), "--old", str(folder / "old.yaml")]
    cases = [
        ("a value", ["object.a.b + 1", *files], 0, "2\ncost: 4\n", ""),
        ("the object before", ["object.a.b > oldObject.a.b", *files], 0, "true\ncost: 7\n", ""),
        ("no object at all", ["object == null && params == null"], 0, "true\ncost: 4\n", ""),
        ("an error", ["object.x", *files], 1, "", "error: no such key: x\ncost: 2\n"),
        ("an Object", ["--mutation", "Object{spec: Object.spec{n: 1}}"], 0, '{\n  "spec": {\n    "n": 1\n  }\n}\ncost: 80\n', ""),
        ("an Object elsewhere", ["Object{}"], 1, "", "ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')\n | Object{}\n | ......^\n"),
    ]
    for name, arguments, code, out, err in cases:
        expect(name, run(holdfast, ["cel", *arguments]), (code, out, err))
    code, _, err = run(holdfast, ["cel", "1", "-f", str(folder / "nowhere.yaml")])
    expect("a missing file", (code, "nowhere.yaml: cannot be read" in err), (1, True))
    code, _, err = run(holdfast, ["cel"])
    expect("nothing to do", (code, "needs an expression" in err), (1, True))


def check_json_lines(holdfast):
    queries = [{"expr": "x + 1", "vars": {"x": 2}}, {"expr": "nope"}, {"expr": "1 / 0"}, {"expr": "Object{a: 1}.a", "mutation": True},
               {"schema": {"type": "object", "properties": {"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]}}}, "self": {"n": 5}}]
    code, out, _ = run(holdfast, ["cel", "--json-lines"], "\n".join(json.dumps(query) for query in queries) + "\n")
    answers = [json.loads(line) for line in out.splitlines()]
    expect("a line for each query", (code, len(answers)), (0, len(queries)))
    expect("a value", answers[0], {"cost": 2, "estimate": [2, 2], "type": "int", "value": {"int": 3}})
    expect("an expression that does not compile", list(answers[1]), ["compile"])
    expect("an expression that fails", answers[2]["error"], "division by zero")
    expect("the environment of mutating policies", answers[3]["value"], {"int": 1})
    expect("rules", answers[4]["errors"], ["n: Invalid value: 5: failed rule: self < 3"])


def check_policies(holdfast, folder):
    deployment, limit = "examples/policies/deployment.yaml", "examples/policies/replica-limit.yaml"
    params = folder / "params.yaml"
    params.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata: {limit: '9'}\n")
    expect("allowed", run(holdfast, ["cel", "--policy", limit, "--params", str(params), "-f", deployment]),
           (0, "audit: replica-limit/replicas: replicas: 4\nverdict: allowed\n", ""))
    code, out, _ = run(holdfast, ["cel", "--policy", limit, "--params", str(params), "-f", "examples/policies/widget.yaml"])
    expect("another kind", (code, "note: matchConstraints do not match CREATE of example.com/v1 widgets; evaluated anyway" in out), (1, True))

    policy = folder / "policy.yaml"
    head = ("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n  reinvocationPolicy: Never\n%s"
            "  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: ['*'], resources: [deployments]}]}\n")

    def mutated(expression, patch="ApplyConfiguration", more=""):
        field = "applyConfiguration" if patch == "ApplyConfiguration" else "jsonPatch"
        policy.write_text(head % more + f"  mutations:\n  - patchType: {patch}\n    {field}: {{expression: {json.dumps(expression)}}}\n")
        return run(holdfast, ["cel", "--policy", str(policy), "-f", deployment])

    expect("no change", mutated("Object{}"), (0, "no change\nverdict: allowed\n", ""))
    expect("an error denies", mutated("Object{spec: Object.spec{replicas: object.x}}"),
           (1, "denied: expression 'Object{spec: Object.spec{replicas: object.x}}' resulted in error: no such key: x\nno change\nverdict: denied\n", ""))
    expect("an error that is ignored", mutated("Object{spec: Object.spec{replicas: object.x}}", more="  failurePolicy: Ignore\n")[0], 0)
    expect("a misplaced marker", mutated('Object{spec: Object.spec{replicas: {"k8s_io__value": "gone"}}}')[1].splitlines()[0],
           'denied: error applying patch: invalid unset marker at .spec.replicas: the only value of k8s_io__value is "unset", not "gone"')
    code, out, _ = mutated('Object{spec: Object.spec{replicas: {"k8s_io__value": "unset"}}}')
    expect("a default is restored", (code, "-  replicas: 4" in out, "+  replicas: 1" in out), (0, True, True))
    code, out, _ = mutated('[JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]', "JSONPatch")
    expect("a JSON patch", (code, "+  replicas: 2" in out), (0, True))
    code, out, _ = mutated('[JSONPatch{op: "add", path: "/spec/nope", value: 2}]', "JSONPatch")
    expect("an unknown field", (code, out.splitlines()[0]), (1, 'denied: Internal error occurred: strict decoding error: unknown field "spec.nope"'))
    code, out, err = mutated("object")
    expect("a policy that the server rejects", (code, "must evaluate to Object but got dyn" in err), (1, True))
    code, out, _ = mutated('Object{metadata: Object.metadata{labels: {"may": authorizer.group("").resource("pods").check("get").errored() ? "no" : "yes"}}}')
    expect("no authorizer", (code, "+    may: \"no\"" in out), (0, True))
    policy.write_text(head % "  matchConditions: [{name: never, expression: 'false'}]\n" + "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{}]'}}]\n")
    expect("match conditions", run(holdfast, ["cel", "--policy", str(policy), "-f", deployment])[1], "matchConditions are not met: nothing was evaluated\nverdict: allowed\n")
    code, _, err = run(holdfast, ["cel", "--policy", deployment, "-f", deployment])
    expect("not a policy", (code, "a policy is a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy, not \"Deployment\"" in err), (1, True))


def main():
    holdfast = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        check_page(holdfast)
        check_expressions(holdfast, pathlib.Path(folder))
        check_json_lines(holdfast)
        check_policies(holdfast, pathlib.Path(folder))
    finish()


if __name__ == "__main__":
    main()
