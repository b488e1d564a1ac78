"""report_test.py BUILD: the benchmark report at its smallest size, only Holdfast: every scenario works and is on the page."""
import json, pathlib, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/clients"))
from check import check, finish  # noqa: E402

SECTIONS = ["start", "gets", "writes", "watch", "mixed", "lists", "memory", "growth"]

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder)
    # A recorded figure of kube-apiserver, which a run without kube-apiserver must keep.
    (out / "benchmarks").mkdir()
    recorded = {"what": "JSON", "server": "kube-apiserver", "cpu_us": 1e9, "per_second": 1, "p99_us": 1}
    (out / "benchmarks/report.json").write_text(json.dumps({"sections": {"gets": {"date": "long ago", "profile": "full", "rows": [recorded]}}}))
    done = subprocess.run([sys.executable, ROOT / "bench/report.py", "--size", "tiny", "--build", sys.argv[1], "--without-plots", "--out", out, "--only", ",".join(SECTIONS)],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, "the report succeeds: " + done.stdout[-1000:] + done.stderr[-2000:])
    report = json.loads((out / "benchmarks/report.json").read_text())
    page = (out / "benchmarks.md").read_text()
    for name in SECTIONS:
        section = report["sections"].get(name, {"rows": []})
        rows = [row for row in section["rows"] if row["server"] == "holdfast"]
        check("failed" not in section and rows, f"{name} was measured: {section.get('failed')}")
        for row in rows:
            check("failed" not in row, f"{name}: {row['what']}: {row.get('failed')}")
            # Readers of the mixed load may request objects that a writer has just deleted.
            check(not row.get("failures") or name == "mixed", f"{name}: {row['what']}: requests failed: {row.get('failures')}")
            check(row["what"].split(":")[-1].strip() in page, f"{name}: {row['what']} is on the page")
    watch = {row["what"]: row for row in report["sections"]["watch"]["rows"]}
    check(watch["20 watchers, JSON"]["operations"] == 100, "each of 20 watchers saw each of 5 events")
    lists = {row["what"]: row for row in report["sections"]["lists"]["rows"]}
    check(lists["JSON drop"]["mb_each"] < lists["JSON"]["mb_each"] > lists["JSON gzip"]["mb_each"], "a list without managedFields, or compressed, is smaller")
    check(recorded in report["sections"]["gets"]["rows"] and "kube-apiserver recorded long ago" in page, "recorded figures of kube-apiserver are kept")
finish()
