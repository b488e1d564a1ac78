"""report_plots.py REPORT_JSON FOLDER: the plots of docs/benchmarks.md as SVG. Needs Debian's python3-matplotlib."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

# The same figures produce the same bytes.
matplotlib.rcParams.update({"svg.hashsalt": "holdfast", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True})
COLORS = {"kube-apiserver": "#9aa5b1", "holdfast": "#1f6feb", "holdfast on etcd": "#7fb0ff"}
NAMES = {"kube-apiserver": "kube-apiserver", "holdfast": "Holdfast", "holdfast on etcd": "Holdfast on etcd"}
TARGET = "#d1242f"
PLAN_OBJECTS = 100_000


class Figures:
    def __init__(self, report):
        self.sections = report["sections"]

    def rows(self, section):
        return [row for row in self.sections.get(section, {"rows": []})["rows"] if "failed" not in row]


def bars(axis, rows, key, titles, scale=1.0, log=True):
    """Groups of horizontal bars: one group per title, one bar per server."""
    present = [server for server in COLORS if any(row["server"] == server and key in row for row in rows)]
    height = 0.8 / max(len(present), 1)
    for number, server in enumerate(present):
        values = []
        for title in titles:
            values.append(next((row[key] * scale for row in rows if row["what"] == title and row["server"] == server and key in row), 0))
        places = [place + (number - (len(present) - 1) / 2) * height for place in range(len(titles))]
        drawn = axis.barh(places, values, height, color=COLORS[server], label=NAMES[server])
        axis.bar_label(drawn, [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value else "" for value in values], padding=2, fontsize=6)
    axis.set_yticks(range(len(titles)), titles)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    if log:
        axis.set_xscale("log")
    axis.margins(x=0.15)


def titles_of(rows, wanted=lambda title: True):
    return list(dict.fromkeys(row["what"] for row in rows if wanted(row["what"])))


def save(figure, folder, name):
    """Adds one legend below all axes."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=max(len(labels), 1), frameon=False)
    figure.tight_layout(rect=(0, 0.25 / figure.get_figheight(), 1, 1))
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def start(figures, folder):
    rows = figures.rows("start")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
    bars(left, rows, "ready_ms", titles_of(rows))
    left.set_title("Time to ready, ms")
    bars(right, rows, "rss_mb", titles_of(rows))
    right.set_title("Resident memory, MB")
    right.set_yticklabels([])
    save(figure, folder, "start")


def writes(figures, folder):
    rows = figures.rows("writes")
    titles = titles_of(rows, lambda title: "Deployment" in title)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 0.28 * len(titles) + 1.2))
    bars(left, rows, "cpu_us", titles)
    left.set_title("CPU of the server per request, us")
    bars(right, rows, "p99_us", titles, 1e-3)
    right.set_title("p99, ms")
    right.set_yticklabels([])
    save(figure, folder, "writes")


def lists(figures, folder):
    rows = [row for row in figures.rows("lists") if "cpu_ms" in row]
    titles = titles_of(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 0.4 * len(titles) + 1))
    bars(left, rows, "cpu_ms", titles)
    left.set_title("CPU of the server per LIST, ms")
    bars(right, rows, "mb_each", titles)
    right.set_title("Size, MB")
    right.set_yticklabels([])
    save(figure, folder, "lists")


def watch(figures, folder):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, key, scale, title in ((axes[0], "cpu_us", 1, "CPU of the server per delivery, us"), (axes[1], "p99_us", 1e-3, "p99 from write to arrival, ms")):
        for server, color in COLORS.items():
            for form, style in (("JSON", "-"), ("five forms", "--")):
                points = sorted((int(row["what"].split(" ")[0].replace(",", "")), row[key] * scale) for row in figures.rows("watch")
                                if row["server"] == server and row["what"].endswith(form) and row.get(key))
                if points:
                    axis.plot(*zip(*points), style, marker="o", markersize=3, color=color, label=f"{NAMES[server]}, {form}")
        axis.set(xscale="log", yscale="log", xlabel="watchers", title=title)
        axis.grid(alpha=0.3)
    save(figure, folder, "watch")


def plan_rows(figures):
    shapes = {}
    for row in figures.rows("memory"):
        if "shape" in row:
            shapes.setdefault(row["shape"], []).append(row)
    return shapes


def per_mechanism(axis, shapes, value, title, target=None, target_text="", log=True):
    mechanisms = list(dict.fromkeys(row["mechanism"] for rows in shapes.values() for row in rows))
    width = 0.8 / max(len(shapes), 1)
    for number, (shape, rows) in enumerate(shapes.items()):
        values = [next((value(row) or 0 for row in rows if row["mechanism"] == mechanism), 0) for mechanism in mechanisms]
        axis.bar([place + (number - (len(shapes) - 1) / 2) * width for place in range(len(mechanisms))], values, width, label=shape)
    if target is not None:
        axis.axhline(target, color=TARGET, linewidth=1, linestyle="--")
        axis.text(len(mechanisms) - 0.6, target, target_text, color=TARGET, ha="right", va="bottom", fontsize=7)
    axis.set_xticks(range(len(mechanisms)), mechanisms, rotation=30, ha="right")
    if log:
        axis.set_yscale("log")
    axis.set_title(title)
    axis.grid(axis="y", alpha=0.3)


def memory(figures, folder):
    shapes = plan_rows(figures)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    scale = lambda row: PLAN_OBJECTS / row["objects"]  # noqa: E731
    # Neither the memory of an empty server nor that added by churn grows with the number of objects.
    idle = {row["server"]: row["rss_mb"] for row in figures.rows("start") if row["what"] == "empty"}
    of_all = lambda row: idle.get(row["server"], 0) + (row["rss_mb"] - idle.get(row["server"], 0)) * scale(row) + row["high_rss_mb"] - row["rss_mb"]  # noqa: E731
    per_mechanism(left, shapes, of_all, "Resident memory of 100,000 objects after high churn, MB", 5000, "target: 5 GB")
    per_mechanism(right, shapes, lambda row: row.get("high_ownership_mb", 0) * scale(row), "Ownership of 100,000 objects, MB", 300, "target: 300 MB")
    save(figure, folder, "memory")


def events(figures, folder):
    shapes = plan_rows(figures)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6))
    per_mechanism(axes[0], shapes, lambda row: row["event_bytes"], "Bytes of an event", log=False)
    per_mechanism(axes[1], shapes, lambda row: row["event_drop_bytes"], "Bytes of an event to a client that opts out", 3000, "target: 3 KB", log=False)
    per_mechanism(axes[2], shapes, lambda row: row["apply_p99_us"] / 1e3, "p99 of an apply, 32 clients, ms", 60, "target: 60 ms")
    save(figure, folder, "events")


def growth(figures, folder):
    figure, axes = plt.subplots(1, 3, figsize=(12, 3))
    for axis, value, title, target in (
            (axes[0], lambda row: row["rss_mb"], "Resident memory, MB", (1_000_000, 900)),
            (axes[1], lambda row: row["ready_ms"] / 1e3, "Time to ready, s", (1_000_000, 10)),
            (axes[2], lambda row: row["apply_cpu_us"], "CPU of an apply, us", None)):
        for server, color in COLORS.items():
            points = sorted((row["objects"], value(row)) for row in figures.rows("growth") if row["server"] == server)
            if points:
                axis.plot(*zip(*points), marker="o", markersize=3, color=color, label=NAMES[server])
        if target:
            axis.plot(*target, marker="_", markersize=16, color=TARGET)
            axis.annotate("target", target, color=TARGET, textcoords="offset points", xytext=(-8, 4), ha="right")
        axis.set(xscale="log", yscale="log" if target else "linear", xlabel="pods", title=title)
        if not target:
            axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    save(figure, folder, "growth")


def main():
    figures, folder = Figures(json.loads(pathlib.Path(sys.argv[1]).read_text())), pathlib.Path(sys.argv[2])
    for section, plots in {"start": [start], "writes": [writes], "lists": [lists], "watch": [watch], "memory": [memory, events], "growth": [growth]}.items():
        for plot in plots if figures.rows(section) else []:
            plot(figures, folder)


main()
