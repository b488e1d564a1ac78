"""soak.py HOLDFAST SECONDS SVG CLIENTS: see soak.sh."""
import http.client, os, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "clients"))
import server  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"


class Client(server.Connection):
    def call(self, method, path, body=None, kind="application/json", want=(200, 201, 202)):
        code, text = self.text(method, path, body, kind)
        if code not in want:
            raise RuntimeError(f"{method} {path}: {code} {text[:500]}")
        return code

    def until_gone(self, path):
        while self.call("GET", path, want=(200, 404)) != 404:
            time.sleep(0.02)


def definition(name, group):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {f"field{i}": {"type": "string"} for i in range(20)}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{name}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": name, "kind": name.capitalize(), "listKind": name.capitalize() + "List", "singular": name[:-1]},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}}


def policy(name):
    rules = {"resourceRules": [{"apiGroups": ["soak.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}]}
    return {"metadata": {"name": name}, "spec": {"matchConstraints": rules, "validations": [{"expression": f"object.metadata.name != '{name}'"}]}}


def webhook(name):
    return {"metadata": {"name": name}, "webhooks": [{
        "name": "soak.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": ["soak.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nothing"]}]}]}


def one_round(running, client, number):
    """Creates one of everything in its own namespace, and deletes it again."""
    name, group = f"soak{number}", f"group{number % 7}.soak.example.com"
    ns, plural = f"/api/v1/namespaces/{name}", f"kind{number}s"
    custom = f"/apis/{group}/v1/namespaces/{name}/{plural}"
    client.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    client.call("POST", DEFINITIONS, definition(plural, group))
    client.call("POST", ADMISSION + "validatingwebhookconfigurations", webhook(name))
    client.call("POST", ADMISSION + "validatingadmissionpolicies", policy(name))
    client.call("POST", ADMISSION + "validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}})
    for i in range(5):
        client.call("POST", custom, {"apiVersion": f"{group}/v1", "kind": plural.capitalize(), "metadata": {"name": f"o{i}"}, "spec": {"field1": "x" * 200}})
    with Client(running) as watching:  # Disconnects midway.
        watching.connection.request("GET", f"{custom}?watch=1")
        watching.connection.getresponse().readline()
    client.call("POST", ns + "/services", {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    client.call("POST", ns + "/configmaps", {"metadata": {"name": "c"}, "data": {"a": "x" * 1000}})
    client.call("POST", ns + "/serviceaccounts", {"metadata": {"name": "a"}})
    client.call("POST", ns + "/serviceaccounts/a/token", {"spec": {}})
    # The definition changes while there are objects, so a new cache takes over.
    client.call("PATCH", f"{DEFINITIONS}/{plural}.{group}", {"spec": {"names": {"shortNames": [f"k{number}"]}}}, "application/merge-patch+json")
    for path in ("validatingadmissionpolicybindings/", "validatingadmissionpolicies/", "validatingwebhookconfigurations/"):
        client.call("DELETE", ADMISSION + path + name)
    client.call("DELETE", f"{DEFINITIONS}/{plural}.{group}")
    client.call("DELETE", ns)
    client.until_gone(f"{DEFINITIONS}/{plural}.{group}")
    client.until_gone(ns)


def sample(pid):
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    return int(status["VmRSS"].split()[0]) / 1024, int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd"))


def text_plot(title, values, width=72, height=10):
    top, columns = max(values) or 1, min(width, len(values))
    shown = [values[i * len(values) // columns] for i in range(columns)]
    print(f"{title}, 0 to {top:.0f}")
    for row in range(height, 0, -1):
        print("  |" + "".join("#" if value > top * (row - 0.5) / height else " " for value in shown))
    print("  +" + "-" * columns)


def svg_plot(path, seconds, series):
    width, height, gap = 760, 150, 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 80}" height="{(height + gap) * len(series) + 20}" font-family="sans-serif" font-size="12">']
    for place, (title, values) in enumerate(series):
        top, begin = max(values) or 1, place * (height + gap) + 30
        points = " ".join(f"{40 + width * t / seconds[-1]:.1f},{begin + height * (1 - value / top):.1f}" for t, value in zip(seconds, values))
        parts.append(f'<text x="40" y="{begin - 8}">{title}: {values[-1]:.0f} at the end, {top:.0f} at most</text>'
                     f'<path d="M40 {begin}V{begin + height}H{40 + width}" fill="none" stroke="#999"/><polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>'
                     f'<text x="{width}" y="{begin + height + 14}">{seconds[-1]:.0f} s</text>')
    with open(path, "w") as f:
        f.write("\n".join(parts) + "\n</svg>\n")


def main():
    holdfast, duration, svg, clients = sys.argv[1], float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    with server.Server(holdfast) as running:
        pid, begin = running.process.pid, time.monotonic()
        lock, rounds, failures = threading.Lock(), [0], []

        def work():
            with Client(running) as client:
                while time.monotonic() - begin < duration and not failures:
                    with lock:
                        rounds[0] += 1
                        number = rounds[0]
                    try:
                        one_round(running, client, number)
                    except (OSError, RuntimeError, http.client.HTTPException) as problem:
                        failures.append(f"round {number}: {problem}")

        threads = [threading.Thread(target=work) for _ in range(clients)]
        for thread in threads:
            thread.start()
        print(f"{'seconds':>8} {'rounds':>8} {'MB':>8} {'threads':>8} {'descriptors':>12}")
        times, memory, tasks, files = [], [], [], []
        every, next_line = max(duration / 300, 0.2), 0.0
        while any(thread.is_alive() for thread in threads):
            now = time.monotonic() - begin
            resident, thread_count, descriptors = sample(pid)
            times.append(now), memory.append(resident), tasks.append(thread_count), files.append(descriptors)
            if now >= next_line:
                print(f"{now:8.0f} {rounds[0]:8} {resident:8.1f} {thread_count:8} {descriptors:12}", flush=True)
                next_line += duration / 20
            time.sleep(every)
        for failure in failures:
            print("FAIL", failure)
        resident, thread_count, descriptors = sample(pid)
        print(f"{'end':>8} {rounds[0]:8} {resident:8.1f} {thread_count:8} {descriptors:12}\n")
        series = (("memory in MB", memory), ("threads", tasks), ("descriptors", files))
        for title, values in series:
            text_plot(title, values)
        svg_plot(svg, times, series)
        # Caches, history and the allocator fill up at first; what matters is whether growth continues.
        second, last = memory[len(memory) // 4:len(memory) // 2], memory[-(len(memory) // 4 or 1):]
        grown = min(last) - min(second or last)
        print(f"\nleast memory of the last quarter: {min(last):.1f} MB, {grown:+.1f} MB more than in the second; {rounds[0]} rounds; {svg}")
        sys.exit(1 if failures else 0)


main()
