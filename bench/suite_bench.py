"""suite_bench.py BINARY [COUNT] [AT_ONCE]: see suite.sh."""
import concurrent.futures
import http.client
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time

from servers import free_port


def answers(port):
    """Whether /readyz returns 200 to a client without credentials."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=ssl._create_unverified_context())
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def start(binary, folder):
    """Milliseconds until the kubeconfig exists and the server responds, memory in MB at that point, and the process."""
    kubeconfig = pathlib.Path(folder) / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    begin = time.monotonic()
    process = subprocess.Popen([binary, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise RuntimeError("the server exited")
        time.sleep(0.0005)
    port = int(re.search(r"server: https://127.0.0.1:(\d+)", kubeconfig.read_text()).group(1))
    while not answers(port):
        time.sleep(0.0005)
    took = (time.monotonic() - begin) * 1000
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text()).group(1)) / 1024
    return took, resident, process


def one(binary, folder):
    took, resident, process = start(binary, folder)
    begin = time.monotonic()
    process.terminate()
    process.wait()
    return took, resident, (time.monotonic() - begin) * 1000


def assets(binary, folder):
    """Like envtest: starts etcd and waits until it is healthy, then the same for kube-apiserver."""
    here = pathlib.Path(folder)
    subprocess.run([binary, "envtest-assets", here / "bin"], check=True, stdout=subprocess.DEVNULL)
    client, port = free_port(), free_port()
    begin = time.monotonic()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    etcd = subprocess.Popen([here / "bin/etcd", f"--data-dir={here}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}", "--unsafe-no-fsync=true"], **quiet)
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", client, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                break
        except OSError:
            time.sleep(0.0005)
        finally:
            connection.close()
    apiserver = subprocess.Popen([here / "bin/kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1",
                                  f"--secure-port={port}", f"--cert-dir={here}/certs"], **quiet)
    while not answers(port):
        time.sleep(0.0005)
    took = (time.monotonic() - begin) * 1000
    resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{apiserver.pid}/status").read_text()).group(1)) / 1024
    begin = time.monotonic()
    for process in (apiserver, etcd):
        process.terminate()
        process.wait()
    return took, resident, (time.monotonic() - begin) * 1000


def report(what, results):
    took = sorted(r[0] for r in results)
    stop = sorted(r[2] for r in results)
    print(f"{what:32s} {took[len(took) // 2]:8.1f} {took[int(len(took) * 0.95)]:8.1f} {took[-1]:8.1f} {stop[len(stop) // 2]:8.1f} {max(r[1] for r in results):8.1f}")


def main():
    binary = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    at_once = int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count()
    base = tempfile.mkdtemp(prefix="holdfast-start-", dir=os.environ.get("BENCH_DIR"))
    try:
        print(f"{count} servers (ms)                  {'median':>8s} {'p95':>8s} {'most':>8s} {'stop':>8s} {'MB':>8s}")
        folders = [f"{base}/{i}" for i in range(count)]
        report("fresh", [one(binary, f) for f in folders])
        report("again", [one(binary, f) for f in folders])
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            report(f"fresh, {at_once} at once", list(pool.map(lambda i: one(binary, f"{base}/c{i}"), range(count))))
        report("envtest assets", [assets(binary, f"{base}/a{i}") for i in range(count)])
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
