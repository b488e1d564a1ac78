"""policies.py --bin HOLDFAST [--peer FOLDER] [--updates N] [--counts N,N] [--instructions] [--not-matching] [--json]: see policies.sh."""
import argparse, json, pathlib, re, subprocess, tempfile, time

import servers

REGISTRATION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
# kube-apiserver checks for changed policies once per second.
SETTLE_SECONDS = 3


def policy(number, matching):
    resource = "configmaps" if matching else f"things{number}"
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"policy-{number}"},
            "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["" if matching else "example.com"], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE", "UPDATE"]}]},
                     "validations": [{"expression": f"!has(object.data) || object.data.all(k, k != 'forbidden-{number}')"}]}}


def binding(number):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": f"policy-{number}"},
            "spec": {"policyName": f"policy-{number}", "validationActions": ["Deny"]}}


def cpu_seconds(process):
    """Exact CPU time of all threads; /proc/PID/stat has a resolution of a hundredth of a second."""
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()) / 1e9


def measure(server, client, updates):
    """Microseconds of CPU and wall time per update: the best of three rounds."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {f"key{i}": "some text" for i in range(8)}}
    best = None
    for _ in range(3):
        cpu, begin = cpu_seconds(server.process), time.monotonic()
        for i in range(updates):
            body["data"]["count"] = str(i) + str(begin)
            client.send("PUT", MAPS + "/it", body)
        figures = ((cpu_seconds(server.process) - cpu) / updates * 1e6, (time.monotonic() - begin) / updates * 1e6)
        best = figures if best is None or figures[0] < best[0] else best
    return best


def count_instructions(server, client, updates):
    """Thousands of instructions per update, counted by callgrind; returned twice, to match the columns of measure()."""
    def control(flag):
        subprocess.run(["callgrind_control", flag, str(server.process.pid)], check=True, stdout=subprocess.DEVNULL)
        return max(server.folder.glob("callgrind.out*"), key=lambda path: path.stat().st_mtime_ns, default=None)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {f"key{i}": "some text" for i in range(8)}}
    for i in range(-1, updates):
        body["data"]["count"] = str(i) + str(time.monotonic())
        client.send("PUT", MAPS + "/it", body)
        if i < 0:  # The first update after a change builds the index.
            control("--zero")
    total = re.search(r"^(?:summary|totals): (\d+)", control("--dump").read_text(), re.M).group(1)
    return (int(total) / updates / 1000,) * 2


def run(server, updates, counts, measure, kinds=(False, True)):
    client = servers.Connection(server)
    client.send("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}})
    measure(server, client, updates // 4)
    rows = {"none": measure(server, client, updates)}
    for matching in kinds:
        made = 0
        for count in counts:
            for number in range(made, count):
                client.send("POST", REGISTRATION, policy(number, matching))
                client.send("POST", BINDINGS, binding(number))
            made = count
            time.sleep(SETTLE_SECONDS)
            few = updates if not matching else max(20, updates // count)
            rows[f"{count} {'matching' if matching else 'not matching'}"] = measure(server, client, few)
        for number in range(made):
            client.send("DELETE", f"{BINDINGS}/policy-{number}")
            client.send("DELETE", f"{REGISTRATION}/policy-{number}")
        time.sleep(SETTLE_SECONDS)
    return rows


def under_callgrind(options, folder):
    folder.mkdir(parents=True)
    # Valgrind cannot read the debug information written by a linker that drops unused sections.
    binary, wrapper = folder / "holdfast", folder / "callgrind.sh"
    subprocess.run(["objcopy", "--strip-debug", options.bin, binary], check=True)
    wrapper.write_text(f'#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file={folder}/callgrind.out {binary} "$@"\n')
    wrapper.chmod(0o755)
    return servers.holdfast(wrapper, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--only")
    parser.add_argument("--counts", default="1,100,1000", help="numbers of policies")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--not-matching", action="store_true", help="only policies that do not match")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        starts = {"holdfast": lambda where: servers.holdfast(options.bin, where)}
        if options.instructions:
            starts["holdfast"] = lambda where: under_callgrind(options, where)
            options.updates = min(options.updates, 200)
        elif options.peer:
            starts["kube-apiserver"] = lambda where: servers.kube_apiserver(options.peer, where)
        for name, start in starts.items():
            server = start(pathlib.Path(folder) / name)
            try:
                results[name] = run(server, options.updates, [int(count) for count in options.counts.split(",")], count_instructions if options.instructions else measure,
                                    (False,) if options.not_matching else (False, True))
            finally:
                server.stop()
    if options.json:
        return print(json.dumps(results))
    heads = (" 1000 instr", "") if options.instructions else (" CPU us", "us each")
    print(f"{'policies':22}" + "".join(f"{name + heads[0]:>22}{'more':>8}{heads[1]:>10}" for name in results))
    for row in results["holdfast"]:
        line = f"{row:22}"
        for figures in results.values():
            cpu, took = figures[row]
            line += f"{cpu:22.1f}{(cpu / figures['none'][0] - 1) * 100:7.1f}%" + ("" if options.instructions else f"{took:10.0f}")
        print(line)


if __name__ == "__main__":
    main()
