"""Writes docs/benchmarks.md from the figures of bench/report.py."""
import functools
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

ORDER = ["kube-apiserver", "holdfast", "holdfast on etcd"]
NAMES = {"kube-apiserver": "kube-apiserver", "holdfast": "Holdfast", "holdfast on etcd": "Holdfast on etcd"}
MEMORY_ORDER = ["kube-apiserver", "nothing", "read-path omission", "zstd", "FieldsV2", "pool", "all"]
SHAPES = {"pods": "pods (500 of each app)", "mixed pods": "pods of many different apps", "custom": "custom resources of 5 KB with the same 160 owned fields",
          "mixed": "custom resources of 9 KB, each with its own 300 of 1,000 owned fields"}
# The plan assumes objects of 5 KB; its target for events is meaningful only for those.
PLAN_OBJECTS = 100_000
PLAN_LIMIT = 0.01  # More CPU of a write.


def number(value, digits=None):
    if value is None:
        return ""
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def time_text(microseconds):
    if microseconds is None:
        return ""
    if microseconds < 1000:
        return number(microseconds) + " us"
    if microseconds < 1e6:
        return number(microseconds / 1e3) + " ms"
    return number(microseconds / 1e6) + " s"


def bytes_text(count):
    if count is None:
        return ""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return number(count / size) + " " + unit
    return number(count, 0) + " B"


def mb(value):
    return "" if value is None else bytes_text(value * 1e6)


def milliseconds(value):
    return "" if value is None else time_text(value * 1e3)


def percent(value):
    return "" if value is None else f"{value * 100:.0f}%"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


class Section:
    def __init__(self, report, name):
        self.entry = report["sections"].get(name, {"rows": []})
        self.rows = self.entry["rows"]

    def find(self, what, server):
        return next((row for row in self.rows if row["what"] == what and row["server"] == server and "failed" not in row), None)

    def figure(self, what, server, key):
        row = self.find(what, server)
        return row.get(key) if row else None

    def ratio(self, what, key, server="holdfast"):
        """By which factor Holdfast needs less."""
        theirs, ours = self.figure(what, "kube-apiserver", key), self.figure(what, server, key)
        return theirs / ours if theirs and ours else None

    def titles(self):
        return list(dict.fromkeys(row["what"] for row in self.rows))

    def by_server(self, columns, ratio=None):
        """One line per scenario and server. Columns: title, key, how to print it."""
        lines = []
        heads = ["", "server", *(title for title, _, _ in columns)] + (["ratio"] if ratio else [])
        for what in self.titles():
            for server in ORDER:
                for row in self.rows:
                    if row["what"] != what or row["server"] != server:
                        continue
                    if "failed" in row:
                        lines.append([what, NAMES[server], "failed: " + row["failed"].replace("|", "/"), *[""] * (len(heads) - 3)])
                        continue
                    if "note" in row:
                        lines.append([what, NAMES[server], row["note"], *[""] * (len(heads) - 3)])
                        continue
                    cells = [show(row.get(key)) for _, key, show in columns]
                    if row.get("failures"):
                        cells[0] += " (failed: " + ", ".join(f"{count} x {why}" for why, count in row["failures"].items()) + ")"
                    if ratio:
                        times = self.ratio(what, ratio, server) if server != "kube-apiserver" else None
                        cells.append(number(times) if times else "")
                    lines.append([what, NAMES[server], *cells])
        return table(heads, lines)

    def note(self):
        if not self.rows:
            return "_Not measured yet._"
        text = f"_Measured {self.entry.get('date', '?')} ({self.entry.get('profile', '?')} size, {self.entry.get('seconds', 0):,} s"
        if "peer_date" in self.entry:
            text += f"; kube-apiserver recorded {self.entry['peer_date']}"
        text += f"), Holdfast {self.entry.get('provenance', {}).get('holdfast') or 'of an unknown commit'}._"
        if "failed" in self.entry:
            text += f" **The section failed:** {self.entry['failed']}"
        return text


REQUEST_COLUMNS = [("per second", "per_second", number), ("CPU of the server", "cpu_us", time_text), ("CPU of etcd", "etcd_cpu_us", time_text),
                   ("p50", "p50_us", time_text), ("p99", "p99_us", time_text), ("p99.9", "p999_us", time_text), ("peak memory", "peak_mb", mb),
                   ("bytes", "bytes_each", bytes_text), ("generator", "own_share", percent)]


def passed(value, limit):
    return "" if value is None else "pass" if value <= limit else "**FAIL**"


def memory_rows(section, shape):
    found = {}
    for row in section.rows:
        if row.get("shape") == shape:
            found[row["mechanism"]] = row
    return {name: found[name] for name in MEMORY_ORDER if name in found}


def targets(report):
    """(target, measured, limit, passed or not)."""
    lines = []
    memory, growth, crds, policies = (Section(report, name) for name in ("memory", "growth", "crds", "policies"))
    for shape, title in SHAPES.items():
        row = memory_rows(memory, shape).get("all")
        if not row or row["objects"] < 1000:
            continue
        scale = PLAN_OBJECTS / row["objects"]
        projected = "" if scale == 1 else f", projected from {row['objects']:,}"
        # Neither the memory of an empty server nor that added by churn (the window of recent events) grows with the number
        # of objects.
        idle = Section(report, "start").figure("empty", "holdfast", "rss_mb") or 0
        rss = idle + (row["rss_mb"] - idle) * scale + row["high_rss_mb"] - row["rss_mb"]
        owned = row["high_ownership_mb"] * scale
        lines.append([f"{PLAN_OBJECTS:,} {title}: resident memory{projected}", mb(rss), "5 GB", passed(rss, 5000)])
        lines.append([f"{PLAN_OBJECTS:,} {title}: managedFields{projected}", mb(owned), "300 MB", passed(owned, 300)])
        verdict = passed(row["event_drop_bytes"], 3000)
        if verdict != "pass":  # The object itself is larger: no treatment of ownership can meet the target.
            verdict += f", {bytes_text(row['event_bytes'])} with them"
        lines.append([f"{title}: event without managedFields", bytes_text(row["event_drop_bytes"]), "3 KB", verdict])
        lines.append([f"{title}: apply p99, 32 clients", time_text(row["apply_p99_us"]), "60 ms", passed(row["apply_p99_us"], 60_000)])
    for operation, counts in plan_rows(report).items():
        more = counts["all"] / counts["nothing"] - 1
        lines.append([f"{operation}: instructions with all mechanisms of the plan", f"{more:+.1%}", "+1%", passed(more, PLAN_LIMIT)])
    sizes = sorted((row for row in growth.rows if row["server"] == "holdfast" and "failed" not in row), key=lambda row: row["objects"])
    if sizes:
        last = sizes[-1]
        if last["objects"] >= 1_000_000:
            lines.append(["1,000,000 pods: resident memory", mb(last["rss_mb"]), "900 MB", passed(last["rss_mb"], 900)])
            lines.append(["1,000,000 pods: ready from the own store", milliseconds(last["ready_ms"]), "10 s", passed(last["ready_ms"], 10_000)])
        base = next((row for row in sizes if row["objects"] >= 10_000), sizes[0])
        steps = list(zip(sizes[sizes.index(base):], sizes[sizes.index(base) + 1:]))
        if len(steps) > 1:
            # Between steps, because the memory of an empty server equals that of thousands of pods and varies between runs.
            of = [(after["rss_mb"] - before["rss_mb"]) / (after["objects"] - before["objects"]) for before, after in (steps[0], steps[-1])]
            more = of[1] / of[0] - 1
            lines.append([f"memory of a further pod, {steps[-1][0]['objects']:,} to {last['objects']:,} pods against {base['objects']:,} to {steps[0][1]['objects']:,}",
                          f"{more:+.0%}", "+25%", passed(more, 0.25)])
        if last["objects"] >= 100_000 and last is not base:
            more = (last["ready_cpu_ms"] / last["objects"]) / (base["ready_cpu_ms"] / base["objects"]) - 1
            lines.append([f"CPU to start, per pod with {last['objects']:,} pods against {base['objects']:,}", f"{more:+.0%}", "+25%", passed(more, 0.25)])
        for title, key in (("GET", "get_cpu_us"), ("apply", "apply_cpu_us"), ("page of 500", "page_cpu_us"), ("event per watcher", "deliver_cpu_us")):
            if last["objects"] >= 100_000 and last is not base and base.get(key):
                more = last[key] / base[key] - 1
                lines.append([f"{title}: CPU with {last['objects']:,} pods against {base['objects']:,}", f"{more:+.0%}", "+25%", passed(more, 0.25)])
    for row in crds.rows:
        if row["server"] == "holdfast" and "failed" not in row and row["count"] >= 1000:  # With fewer, the cost of one cannot be determined.
            lines.append([f"{row['count']:,} definitions: time for 2,000", number(row["ms_each"] * 2) + " s", "10 s", passed(row["ms_each"] * 2, 10)])
            lines.append([f"{row['count']:,} definitions: memory of each", number(row["kb_each"]) + " KB", "100 KB", passed(row["kb_each"], 100)])
    for count in (1000, 100):
        # Instructions, if counted: the difference is too small to be timed.
        for ending, key, title in ((", counted by callgrind", "instructions", "instructions"), ("", "cpu_us", "CPU")):
            none = policies.figure(f"update of a ConfigMap, policies: none{ending}", "holdfast", key)
            many = policies.figure(f"update of a ConfigMap, policies: {count} not matching{ending}", "holdfast", key)
            if none and many:
                lines.append([f"{count:,} policies that do not match: {title} of an update", f"{many / none - 1:+.1%}", "+5%", passed(many / none - 1, 0.05)])
                return lines
    return lines


# What the figures depend on; the rest of the repository can change without making them older than what they measure.
MEASURED = ("src/core", "src/storage", "src/network", "src/kube", "src/serving", "src/programs/server", "src/programs/controllers", "catalog", "bench/release.profdata")


@functools.cache
def changed_since(commit):
    """How many measured files have changed since a commit, or None where that cannot be told."""
    if not commit or commit.endswith("-dirty"):
        return None
    done = subprocess.run(["git", "diff", "-M", "--name-status", commit, "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        return None
    changes = [line.split("\t") for line in done.stdout.splitlines()]
    # A file that only has another name measures the same.
    return sum(kind != "R100" and names[-1].startswith(MEASURED) and not names[-1].endswith(("_test.cc", "_fuzz.cc", "_bench.cc")) for kind, *names in changes)


def origin(report):
    """Where the figures come from: one run, or several of different commits."""
    of = {name: entry.get("provenance", {}) for name, entry in report["sections"].items()}
    if not of:
        return "_Not measured yet._"
    describe = lambda made: (f"{made.get('processor', '?')}, {made.get('cores', '?')} cores, {made.get('memory_gb', '?')} GB, {made.get('system', '?')}, "  # noqa: E731
                             f"Linux {made.get('kernel', '?')}; {made.get('kube-apiserver') or 'kube-apiserver: not measured'}; {made.get('etcd') or 'etcd: not measured'}")
    runs = {}
    for name, made in of.items():
        runs.setdefault((made.get("holdfast", ""), made.get("command", ""), describe(made)), []).append(name)
    lines = []
    for (commit, command, machine), names in runs.items():
        changed = changed_since(commit)
        age = "it is not known what has changed since" if changed is None else f"{changed:,} measured files have changed since" if changed else "nothing measured has changed since"
        lines.append([", ".join(names), f"`{command or '?'}`", commit or "?", age, machine])
    text = table(["sections", "command", "commit of Holdfast", "", "machine and versions"], lines)
    if len({made.get("holdfast", "") for made in of.values()}) > 1:
        text = "**These sections were measured at different commits: do not compare figures of one with those of another.**\n\n" + text
    if any(changed_since(made.get("holdfast", "")) != 0 for made in of.values()):
        text += "\n\nSections with changed files are older than the code: they say what was true then."
    return text


def summary(report, name):
    """One line of the history: the headline figures of a section, and the targets that it failed."""
    entry = report["sections"][name]
    rows = [{key: row[key] for key in ("what", "server", "shape", "mechanism", "objects", "cpu_us", "cpu_ms", "p99_us", "rss_mb", "ready_ms", "apply_cpu_us", "high_rss_mb", "ms_each", "kb_each", "failed")
             if key in row} for row in entry["rows"]]
    failed = [f"{title}: {measured} (limit {limit})" for title, measured, limit, verdict in targets({"sections": {name: entry}}) if "FAIL" in verdict]
    return {"section": name, "date": entry["date"], "profile": entry["profile"], "provenance": entry.get("provenance", {}), "rows": rows, "failed_targets": failed}


def earlier_failures(report, out):
    """Targets that the recorded section passes and that its last earlier run failed."""
    path = out / "benchmarks/history.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    lines = []
    for name, entry in report["sections"].items():
        before = [run for run in runs if run["section"] == name and run["date"] < entry.get("date", "") and run["profile"] == entry.get("profile")]
        now = {line.rsplit(": ", 1)[0] for line in summary(report, name)["failed_targets"]} if before else set()
        lines += [f"- {name}, {before[-1]['date']}: {line}" for line in (before[-1]["failed_targets"] if before else []) if line.rsplit(": ", 1)[0] not in now]
    return "\n\nFailed by the run before the recorded one, and passed now:\n\n" + "\n".join(lines) if lines else ""


def glance(report):
    start, lists, gets, writes, watch, mixed = (Section(report, name) for name in ("start", "lists", "gets", "writes", "watch", "mixed"))
    rows = []

    def add(title, section, what, key, show):
        theirs, ours = (section.figure(what, server, key) for server in ORDER[:2])
        if ours is not None:
            times = section.ratio(what, key)
            rows.append([title, show(theirs), show(ours), number(times) if times else ""])
    add("start, no data", start, "empty", "ready_ms", milliseconds)
    add("idle memory", start, "empty", "rss_mb", mb)
    pods = next((what for what in start.titles() if what.endswith("pods, etcd")), None)
    own = next((what for what in start.titles() if what.endswith("own store")), None)
    if own:
        for title, key, show in ((f"start with {own.split(' pods')[0]} pods", "ready_ms", milliseconds), (f"memory with {own.split(' pods')[0]} pods", "rss_mb", mb)):
            theirs, ours = start.figure(pods, "kube-apiserver", key) if pods else None, start.figure(own, "holdfast", key)
            if ours:
                rows.append([title, show(theirs), show(ours), number(theirs / ours) if theirs else ""])
    add("memory after LISTs of all of them", lists, "after LISTs", "rss_mb", mb)
    add("GET, CPU", gets, "JSON", "cpu_us", time_text)
    for what in ("apply Deployment, 32 clients", "no-op apply Deployment, 32 clients"):
        add(what + ", CPU", writes, what, "cpu_us", time_text)
    add("apply Deployment, 32 clients, p99", writes, "apply Deployment, 32 clients", "p99_us", time_text)
    for what in watch.titles():
        if what.endswith("JSON") and not what.startswith("1 "):
            add(f"event to one of {what.split(' watchers')[0]} watchers, CPU", watch, what, "cpu_us", time_text)
    for what in ("JSON", "JSON drop", "Protobuf", "metadata only"):
        add(f"LIST, {what}, CPU", lists, what, "cpu_ms", milliseconds)
    add("mixed load, CPU per operation", mixed, "all", "cpu_us", time_text)
    return table(["", "kube-apiserver + etcd", "Holdfast", "ratio"], rows) if rows else "_Not measured yet._"


README_BEGIN, README_END = "<!-- Figures: kept up to date by ./dev bench report. -->\n", "<!-- End of figures. -->"


def readme_figures(report):
    """The three figures at the top of the README, or None if one of them is missing."""
    start, lists, writes = (Section(report, name) for name in ("start", "lists", "writes"))
    pods = next((what.split(" pods")[0] for what in start.titles() if what.endswith("own store")), "")
    wanted = [(f"memory with {pods} pods, after listing them", lists, "after LISTs", "rss_mb", mb),
              ("CPU of an apply that changes a Deployment", writes, "apply Deployment, 32 clients", "cpu_us", time_text),
              ("start to ready, no data", start, "empty", "ready_ms", milliseconds)]
    rows = [[title, *(section.figure(what, server, key) for server in ORDER[:2])] for title, section, what, key, _ in wanted]
    if any(value is None for row in rows for value in row):
        return None
    return table(["[measured](docs/benchmarks.md) side by side on one machine", "kube-apiserver + etcd", "Holdfast"],
                 [[title, *(wanted[number][4](value) for value in values)] for number, (title, *values) in enumerate(rows)])


def write_readme(report, path):
    figures, text = readme_figures(report), path.read_text()
    if figures and README_BEGIN in text:
        before, rest = text.split(README_BEGIN, 1)
        path.write_text(before + README_BEGIN + figures + "\n" + README_END + rest.split(README_END, 1)[1])


def behind(report):
    """Scenarios in which kube-apiserver did better, found in the figures."""
    lines = []
    for name in ("start", "gets", "writes", "watch", "mixed", "lists", "policies", "crds"):
        section = Section(report, name)
        for what in section.titles():
            for server in ORDER[1:]:
                for key, title, show in (("cpu_us", "CPU", time_text), ("cpu_ms", "CPU", milliseconds), ("ready_ms", "time to ready", milliseconds), ("p99_us", "p99", time_text),
                                         ("rss_mb", "memory", mb), ("seconds_each", "time", lambda value: time_text(value * 1e6))):
                    times = section.ratio(what, key, server)
                    if times and times < 1:
                        lines.append(f"- {NAMES[server]}, {name}, {what}: {title} {show(section.figure(what, server, key))}, kube-apiserver {show(section.figure(what, 'kube-apiserver', key))}.")
    return "\n".join(lines) if lines else "- In no scenario of this run did kube-apiserver use less CPU or memory, or respond faster at p99."


def generator(report):
    shares = []
    for name, entry in report["sections"].items():
        for row in entry["rows"]:
            if row.get("own_share") is not None and row["server"] != "kube-apiserver":
                shares.append((row["own_share"], row.get("server_cores", 0), name, row["what"]))
    if not shares:
        return ""
    most = max(shares)
    limited = sorted(f"{name}: {what} ({percent(share)})" for share, cores, name, what in shares if share > 0.9)
    return (f"With the fastest server, Holdfast, the generator was busiest in “{most[2]}: {most[3]}”, with {percent(most[0])} of its core while the server used {number(most[1])} cores. "
            + ("It was the bottleneck (above 90% of its core) in: " + "; ".join(limited) + ". Throughput and latency there are limited by the generator; CPU per operation is not affected." if limited
               else "It was never the bottleneck (above 90% of its core)."))


def plan_rows(report):
    """{operation: {mechanism: instructions}}"""
    found = {}
    for row in Section(report, "plan").rows:
        if "failed" not in row:
            found.setdefault(row["operation"], {})[row["mechanism"]] = row["instructions"]
    return found


def plan_text(report):
    rows = plan_rows(report)
    if not rows:
        return "_Not measured yet._"
    lines = []
    for operation, counts in rows.items():
        shown = {name: counts[name] / counts["nothing"] - 1 for name in MEMORY_ORDER if name in counts and name != "nothing"}
        lines.append([operation, f"{counts['nothing']:,}"] + [f"{more:+.1%} {passed(more, PLAN_LIMIT)}" for more in shown.values()])
    return table(["instructions", "nothing", *(name for name in MEMORY_ORDER[2:])], lines)


def memory_text(report):
    section = Section(report, "memory")
    parts = []
    for shape, title in SHAPES.items():
        rows = memory_rows(section, shape)
        if not rows:
            continue
        base = rows.get("nothing")
        lines = []
        for mechanism, row in rows.items():
            budget = ""
            if base and mechanism not in ("nothing", "kube-apiserver"):
                cpu, p99 = row["apply_cpu_us"] / base["apply_cpu_us"] - 1, row["apply_p99_us"] / base["apply_p99_us"] - 1
                noise_cpu, noise_p99 = (max(base[key], row[key]) for key in ("apply_cpu_spread", "apply_p99_spread"))

                def verdict(value, limit, noise):
                    return "pass" if value <= limit else "noise" if value <= limit + noise else "**FAIL**"
                budget = f"{cpu:+.1%} {verdict(cpu, 0.01, noise_cpu)}, {p99:+.0%} {verdict(p99, 0.05, noise_p99)}"
            lines.append([mechanism, milliseconds(row.get("ready_cpu_ms")), mb(row["rss_mb"]), mb(row["low_rss_mb"]), mb(row["high_rss_mb"]), mb(row.get("ownership_mb")), mb(row.get("watched_rendered_mb")),
                          bytes_text(row["event_bytes"]), bytes_text(row["event_drop_bytes"]), bytes_text(row["event_v2_bytes"]), time_text(row["low_apply_p99_us"]),
                          time_text(row["apply_p99_us"]), time_text(row["apply_cpu_us"]), time_text(row["noop_cpu_us"]), time_text(row.get("unset_cpu_us")), budget])
        objects = next(iter(rows.values()))["objects"]
        alone = [row for row in section.rows if row.get("cache_of") == shape and "failed" not in row]
        raw = next((row["ownership_raw_mb"] for row in rows.values() if "ownership_raw_mb" in row), None)
        parts.append(f"### {objects:,} {title}\n\nOwnership as FieldsV1 in every object, as in kube-apiserver, would take {mb(raw)}.\n\n" + table(
            ["mechanism", "CPU to start", "memory", "after low churn", "after high churn", "ownership", "cached serializations", "event", "event, drop", "event, mf=v2", "apply p99, low churn",
             "apply p99, high churn", "apply, CPU", "no-op apply, CPU", "apply with unset marker, CPU", "budget by the clock: CPU (1%), p99 (5%)"], lines))
        if alone:
            parts.append("The watch cache alone, without a server (`memory_bench`), where ownership can also be left in the objects:\n\n" + table(
                ["", "memory", "bodies", "ownership", "CPU to load"],
                [[row["form"], mb(row["rss_mb"]), mb(row["bodies_mb"]), "in the bodies" if row["ownership_raw_mb"] == 0 else mb(row["ownership_mb"]), milliseconds(row["cpu_ms"])] for row in alone]))
    return "\n\n".join(parts)


def write(report, out):
    notes = (pathlib.Path(__file__).parent / "report_notes.md").read_text()
    start, lists, gets, writes, watch, mixed, policies, crds, growth, memory, plan = (
        Section(report, name) for name in ("start", "lists", "gets", "writes", "watch", "mixed", "policies", "crds", "growth", "memory", "plan"))
    plot = lambda name, title: f"![{title}](benchmarks/{name}.svg)"  # noqa: E731
    list_columns = [("time", "seconds_each", lambda value: "" if value is None else time_text(value * 1e6)), ("CPU of the server", "cpu_ms", milliseconds),
                    ("CPU of etcd", "etcd_cpu_us", time_text), ("p50 of a request", "p50_us", time_text), ("p99", "p99_us", time_text), ("peak memory", "peak_mb", mb),
                    ("memory", "rss_mb", mb), ("size", "mb_each", mb), ("generator", "own_share", percent)]
    text = f"""# Benchmarks

<!-- Written by bench/report_page.py: ./dev bench report --render. Change the text there or in bench/report_notes.md. -->

One command measures everything on this page: Holdfast and kube-apiserver with its etcd, one after the other, on one
machine, under the same load over TLS and HTTP/2.

```sh
./dev bench report                     # everything, at most 90 minutes
./dev bench report --quick             # ten minutes, smaller
./dev bench report --only lists,watch  # some sections
```

{origin(report)}

Raw figures: [benchmarks/report.json](benchmarks/report.json); those of earlier runs: [benchmarks/history.jsonl](benchmarks/history.jsonl).

Absolute figures vary with the machine: compare within one run. CPU is that of the API server process; Holdfast's includes its
store, and the additional CPU of etcd is a separate column. “Ratio” is the factor by which Holdfast needs less than
kube-apiserver. Both servers write to disk (fsync) before they respond.

## At a glance

{glance(report)}

## Targets

{table(["target", "measured", "limit", ""], targets(report))}{earlier_failures(report, out)}

## Where Holdfast is not ahead, or far from what the machine could do

Found in the figures of this run:

{behind(report)}

{notes}

## How the load is generated

`bench/load_bench.cc` sends requests with the transport of the C++ client and reads responses without decoding them: one
thread, at most 32 connections for requests, 100 watches per connection. It reads the CPU clocks of the server and of etcd,
resets and reads their peak memory around each phase, and counts the bytes of bodies as received (possibly compressed).
The column “generator” is its own CPU time as a share of its thread. {generator(report)}

## Start and idle memory

{start.note()}

{start.by_server([("ready", "ready_ms", milliseconds), ("fastest", "least_ms", milliseconds), ("slowest", "most_ms", milliseconds), ("CPU until then", "cpu_ms", milliseconds), ("memory", "rss_mb", mb), ("etcd's memory", "etcd_rss_mb", mb)], "ready_ms")}

{plot("start", "Time to ready and memory")}

## GET

{gets.note()} 32 clients, 100 Deployments.

{gets.by_server(REQUEST_COLUMNS, "cpu_us")}

## Writes

{writes.note()} An update replaces the object, a patch is a merge patch, an apply changes one field. A no-op apply repeats the last one; all
deletions are sent at once. Each client works on its own objects.

{writes.by_server(REQUEST_COLUMNS, "cpu_us")}

{plot("writes", "CPU and p99 of writes")}

## Watch

{watch.note()} Per delivery: one event to one watcher. “Five forms”: JSON and Protobuf with and without managedFields, and metadata only, in turn.

{watch.by_server(REQUEST_COLUMNS, "cpu_us")}

{plot("watch", "CPU per delivery and delivery latency by number of watchers")}

## Mixed load

{mixed.note()} 8 informers (half of them without managedFields), 16 writers, 4 readers. Failed GETs (404) are for objects that a writer had deleted.

{mixed.by_server([*REQUEST_COLUMNS, ("events to informers", "informer_events", number), ("informers converged", "converged", lambda value: "" if value is None else "yes" if value else "**NO**")], "cpu_us")}

## LIST

{lists.note()} One client. “Drop”: without managedFields, which kube-apiserver sends anyway.

{lists.by_server(list_columns, "cpu_ms")}

{plot("lists", "CPU of a LIST by form")}

## Policies and CEL

{policies.note()}

{policies.by_server([("CPU of the server", "cpu_us", time_text), ("time", "p50_us", time_text), ("instructions", "instructions", lambda value: "" if value is None else f"{value:,.0f}"), ("each", "ns_each", lambda value: "" if value is None else time_text(value / 1000))], None)}

## Custom resource definitions

{crds.note()}

{crds.by_server([("each, one client", "ms_each", milliseconds), ("CPU of each", "cpu_ms_each", milliseconds), ("each, eight clients", "ms_each_by_eight", milliseconds), ("memory of each", "kb_each", lambda value: "" if value is None else bytes_text(value * 1024)), ("an object of one", "object_ms", milliseconds), ("start with all", "start_ms", milliseconds), ("memory then", "memory_mb", mb)])}

## The memory plan

{memory.note()} Each mechanism on its own, then all of them. Separate ownership and the avoidance of no-op writes are part of every row except
that of kube-apiserver: they have no gate. “Low churn” applies to 1% of the objects, “high churn” to {report.get('high_churn', 'a fifth or more')}, with 32 clients;
the budget by the clock compares CPU and p99 of an apply with “nothing”, and shows “noise” if the difference is within the spread
of three rounds. CPU is judged by instructions, which do not depend on what else the machine does: the table at the end. `mf=v2` needs two gates, FieldsV2 and ManagedFieldsOptOut. Cached serializations are those kept after 60 events
were sent to watchers in three forms. See [decisions/](decisions/) for the decision about each mechanism.

{memory_text(report)}

### Instructions

{plan.note()} Of the whole server, for writes that change one value of 20 objects in turn, relative to “nothing”: `./dev bench plan`.

{plan_text(report)}

{plot("memory", "Memory by mechanism")}

{plot("events", "Bytes of a watch event and p99 of an apply by mechanism")}

## Growth

{growth.note()}

{growth.by_server([("ready", "ready_ms", milliseconds), ("CPU until then", "ready_cpu_ms", milliseconds), ("memory", "rss_mb", mb), ("GET, CPU", "get_cpu_us", time_text), ("apply, CPU", "apply_cpu_us", time_text), ("apply p99", "apply_p99_us", time_text), ("page of 500, CPU", "page_cpu_us", time_text), ("LIST, CPU per object", "list_cpu_us_per_object", time_text), ("delivery to one of 100, CPU", "deliver_cpu_us", time_text)])}

{plot("growth", "Memory and time to ready by number of pods")}
"""
    (out / "benchmarks.md").write_text(text)
