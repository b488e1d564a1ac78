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
    history = [json.loads(line) for line in (out / "benchmarks/history.jsonl").read_text().splitlines()]
    check([line["section"] for line in history] == SECTIONS and all(line["rows"] for line in history), "each section of a run is a line of the history")
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()
    check(all(report["sections"][name]["provenance"]["holdfast"] == commit for name in SECTIONS) and f"| {commit or '?'} |" in page, "each section carries the commit that it measured")
    check("different commits" not in page, "sections of one commit may be compared")
    check(recorded in report["sections"]["gets"]["rows"] and "kube-apiserver recorded long ago" in page, "recorded figures of kube-apiserver are kept")

# Figures of several commits, and a target that passes now and failed before.
sys.path.insert(0, str(ROOT / "bench"))
import report_page  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder)
    (out / "benchmarks").mkdir()

    def definitions(milliseconds, date, commit):
        row = {"what": "all", "server": "holdfast", "count": 2000, "ms_each": milliseconds, "kb_each": 30.0}
        return {"date": date, "profile": "full", "provenance": {"holdfast": commit}, "rows": [row]}
    report_page.changed_since = {"first": 7, "second": 0}.get
    sections = {"crds": definitions(8.0, "2026-01-01", "first")}
    (out / "benchmarks/history.jsonl").write_text(json.dumps(report_page.summary({"sections": sections}, "crds")) + "\n")
    sections = {"crds": definitions(1.0, "2026-01-02", "second"), "gets": {"date": "2026-01-01", "profile": "full", "provenance": {"holdfast": "first"}, "rows": []}}
    counts = {"nothing": 1000, "read-path omission": 1000, "zstd": 1036, "FieldsV2": 1001, "pool": 990, "all": 949}
    rows = [{"what": f"apply: {name}", "server": "holdfast", "operation": "apply", "mechanism": name, "instructions": count} for name, count in counts.items()]
    sections["plan"] = {"date": "2026-01-02", "profile": "full", "provenance": {"holdfast": "second"}, "rows": rows}
    report_page.write({"sections": sections}, out)
    page = (out / "benchmarks.md").read_text()
    check("different commits" in page, "a page of several commits says so")
    check("7 measured files have changed since" in page and "nothing measured has changed since" in page, "sections that are older than the code are marked")
    check("| apply | 1,000 | +0.0% pass | +3.6% **FAIL** | +0.1% pass | -1.0% pass | -5.1% pass |" in page, "mechanisms of the memory plan are judged by instructions")
    check("| apply: instructions with all mechanisms of the plan | -5.1% | +1% | pass |" in page, "as a target, all of them together")
    check("- crds, 2026-01-01: 2,000 definitions: time for 2,000: 16.0 s (limit 10 s)" in page, "a target that failed before is not silently replaced")
finish()
