"""Checks the history that clients recorded of a server under faults.

A history is a list of operations (Op) and the logs of watchers. Every object is a small map of text; each version of it
that was observed has its revision, so the order of versions is known, and a history is linearizable if and only if all
operations on a key can be placed between its versions such that real-time order is preserved.

The effect of a write on an object and its owners is defined by a model (`after`), with which every version must agree.
"""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class State:
    """An object: its data, and the keys owned by each manager. Managers are (name, operation)."""
    data: tuple
    owners: tuple

    @staticmethod
    def of(data, owners):
        return State(tuple(sorted(data.items())), tuple(sorted((manager, tuple(sorted(keys))) for manager, keys in owners.items() if keys)))

    def parts(self):
        return dict(self.data), {manager: set(keys) for manager, keys in self.owners}


@dataclasses.dataclass(eq=False)
class Version:
    key: str
    revision: int
    uid: str
    state: State | None  # None: deleted
    writer: "Op | None" = None
    after_gap: bool = False  # Versions before this one may have been missed.
    unseen: bool = False  # An acknowledged deletion whose revision was not observed.


@dataclasses.dataclass(eq=False)
class Op:
    number: int
    verb: str  # create, apply, patch, put, delete, get, list
    key: str
    start: float
    manager: str = ""
    data: dict = dataclasses.field(default_factory=dict)
    force: bool = False
    expected: int | None = None  # The revision that a put replaces.
    end: float = math.inf
    outcome: str = "unknown"  # ok, refused, or unknown: it may have taken effect
    code: int = 0
    message: str = ""  # For a rejected request.
    seen: "Version | None" = None  # The version in a successful response.
    uid: str = ""  # Of the deleted object.
    revision: int = 0  # Of a list.
    items: dict | None = None  # Of a list: {key: Version}

    def __str__(self):
        end = "          ?" if self.end == math.inf else f"{self.end:11.6f}"
        what = " ".join(str(part) for part in (self.verb, self.key, self.manager, self.data or "", "force" if self.force else "",
                                               f"over {self.expected}" if self.expected else "") if part)
        shown = f" -> {self.seen.revision} {dict(self.seen.state.data) if self.seen.state else 'deleted'}" if self.seen else ""
        shown = f" -> list at {self.revision}" if self.items is not None else shown
        return f"{self.start:11.6f} {end} #{self.number} {what}: {self.outcome} {self.code or ''} {self.message}{shown}"


@dataclasses.dataclass
class Problem:
    what: str
    ops: list  # Only as many as needed.

    def __str__(self):
        lines = [self.what] + ["    " + str(op) for op in sorted((op for op in self.ops if op), key=lambda op: op.start)]
        return "\n".join(lines)


class Refused(Exception):
    """An operation that is not allowed in a state; the argument is the code of the response."""


def after(state, op):
    """The state after a write (None if there is no object). Raises Refused."""
    if op.verb == "create":
        if state is not None:
            raise Refused(409)
        return State.of(op.data, {(op.manager, "Update"): set(op.data)})
    if op.verb == "apply":
        data, owners = state.parts() if state is not None else ({}, {})
        own = (op.manager, "Apply")
        contested = {key for key, value in op.data.items() if data.get(key) != value
                     and any(key in keys for manager, keys in owners.items() if manager != own)}
        if contested and not op.force:
            raise Refused(409)
        for manager, keys in owners.items():
            if manager != own:
                keys -= contested
        for key in owners.get(own, set()) - set(op.data):
            if not any(key in keys for manager, keys in owners.items() if manager != own):
                data.pop(key, None)
        owners[own] = set(op.data)
        data.update(op.data)
        return State.of(data, owners)
    if state is None:
        raise Refused(404)
    if op.verb == "delete":
        return None
    data, owners = state.parts()
    wanted = dict(op.data) if op.verb == "put" else {key: value for key, value in {**data, **op.data}.items() if value is not None}
    changed = {key for key in set(data) | set(wanted) if data.get(key) != wanted.get(key)}
    for keys in owners.values():
        keys -= changed
    if changed & set(wanted):
        owners.setdefault((op.manager, "Update"), set()).update(changed & set(wanted))
    return State.of(wanted, owners)


class History:
    """Everything observed in one round. `watchers` are lists of entries, in order of arrival:
    ("list", revision, {key: Version}), ("event", type, Version), ("bookmark", revision), ("gone",)"""

    def __init__(self):
        self.ops, self.watchers = [], []

    def problems(self):
        problems = []
        versions = self.versions(problems)
        covered = self.covered()
        newest = max([op.revision for op in self.ops] + [end for _, end in covered], default=0)
        for key, chain in sorted(versions.items()):
            ops = [op for op in self.ops if op.key == key and op.verb != "list"]
            add_unseen_deletions(chain, ops)
            problems += explain(key, chain, ops, covered)
            # A deletion after the last version would have been observed, and every earlier version has its writer.
            whole = any(start <= chain[-1].revision and newest <= end for start, end in covered)
            if chain[-1].state is None or whole:
                problems += linearizable(key, chain, ops)
        problems += check_lists(self.ops, versions, covered)
        for number, log in enumerate(self.watchers):
            problems += check_watcher(f"watcher {number}", log, versions)
        return problems

    def versions(self, problems):
        """{key: versions in order}, of everything observed."""
        found = {}

        def saw(version, who):
            known = found.setdefault((version.key, version.revision), version)
            if (known.uid, known.state) != (version.uid, version.state):
                problems.append(Problem(f"{who} saw another {version.key} at revision {version.revision}: {known.state} and {version.state}",
                                        [op for op in self.ops if op.seen in (known, version)][:2]))

        for op in self.ops:
            if op.seen is not None:
                saw(op.seen, f"#{op.number}")
            for version in (op.items or {}).values():
                saw(version, f"#{op.number}")
        for number, log in enumerate(self.watchers):
            for entry in log:
                for version in [entry[2]] if entry[0] == "event" else entry[2].values() if entry[0] == "list" else []:
                    saw(version, f"watcher {number}")
        chains = {}
        for (key, _), version in sorted(found.items(), key=lambda item: item[0][1]):
            chains.setdefault(key, []).append(dataclasses.replace(version))
        return chains

    def covered(self):
        """Ranges of revisions (from, to) in which a watcher saw every event."""
        ranges = []
        for log in self.watchers:
            start = last = None
            for entry in log:
                if entry[0] == "list":
                    if start is not None:
                        ranges.append((start, last))
                    start = last = entry[1]
                elif entry[0] == "event":
                    last = entry[2].revision
                elif entry[0] == "bookmark":
                    last = max(last, entry[1])
            if start is not None:
                ranges.append((start, last))
        return ranges


def add_unseen_deletions(chain, ops):
    """Watchers that list again have missed deletions in between: such a deletion comes after the last version of its object."""
    seen = {version.uid for version in chain if version.state is None}
    for op in ops:
        if op.verb == "delete" and op.outcome == "ok" and op.uid not in seen:
            places = [i for i, version in enumerate(chain) if version.uid == op.uid]
            if places:
                chain.insert(places[-1] + 1, Version(op.key, chain[places[-1]].revision, op.uid, None, unseen=True))


def explain(key, chain, ops, covered):
    """Each version is the result of exactly one write applied to the previous version. Sets Version.writer and after_gap."""
    problems = []
    writes = [op for op in ops if op.verb != "get" and op.outcome != "refused"]
    by_revision, deletes, unknown = {}, {}, []
    for op in writes:
        if op.outcome == "unknown":
            unknown.append(op)
        elif op.verb == "delete":
            deletes.setdefault(op.uid, []).append(op)
        else:
            by_revision.setdefault(op.seen.revision, []).append(op)
    # Nothing is written before the first watcher lists.
    before, before_revision, before_uid = None, min((start for start, _ in covered), default=0), ""
    for version in chain:
        whole = any(start <= before_revision and version.revision <= end for start, end in covered)
        acknowledged = deletes.pop(before_uid, []) if version.state is None else by_revision.get(version.revision, [])
        candidates = [op for op in acknowledged + unknown if makes(op, before, version, before_revision)]
        if candidates:
            version.writer = candidates[0]
            if version.writer in unknown:
                unknown.remove(version.writer)
        elif whole:
            problems.append(Problem(f"no write makes {key} at {version.revision} ({version.state}) of {before_revision} ({before})",
                                    acknowledged + [op for op in unknown if op.manager][:3]))
        else:
            version.after_gap = True
        # Others with this revision were no-ops.
        for op in acknowledged:
            if version.state is not None and op is not version.writer and not (version.after_gap and version.writer is None) \
                    and not makes(op, version.state, version, op.expected or version.revision):
                problems.append(Problem(f"#{op.number} was acknowledged with revision {version.revision} of {key}, which it did not make ({version.state})",
                                        [op, version.writer]))
        before, before_revision, before_uid = version.state, version.revision, version.uid
    return problems


def makes(op, before, version, before_revision):
    if op.expected is not None and op.expected != before_revision:
        return False
    try:
        return after(before, op) == version.state
    except Refused:
        return False


def linearizable(key, chain, ops):
    """Places every operation between versions. Position 0 is before the first version, position i after the i-th."""
    position = {version.revision: i + 1 for i, version in enumerate(chain) if not version.unseen}
    fixed = [[] for _ in range(len(chain) + 1)]  # The operations that observed the version of this position.
    floating = []
    writers = {id(version.writer) for version in chain}
    for op in ops:
        if op.outcome == "unknown" or id(op) in writers:
            continue
        if op.outcome == "ok" and op.seen is not None:
            fixed[position[op.seen.revision]].append(op)
        elif op.outcome == "refused":
            floating.append(op)
    # An operation must not end before an operation placed earlier begins.
    latest = None  # The latest start of the operations before.
    begun = []  # For each position, the operation after which it begins.
    for i in range(len(chain) + 1):
        writer = chain[i - 1].writer if i > 0 else None
        if writer is not None:
            if latest and writer.end < latest.start:
                return [Problem(f"{key}: the write of revision {chain[i - 1].revision} ended before something that saw an older one began", [writer, latest])]
            latest = writer if latest is None or writer.start > latest.start else latest
        begun.append(latest)
        for op in fixed[i]:
            if latest and op.end < latest.start and op is not latest:
                return [Problem(f"{key}: revision {op.seen.revision} was seen by what ended before something older began", [op, latest])]
        for op in fixed[i]:
            latest = op if latest is None or op.start > latest.start else latest
    if any(version.after_gap for version in chain):
        return []  # It is unknown whether there was nothing in between.
    over = [None] * (len(chain) + 1)  # For each position, the earliest end of the operations after it.
    first = None
    for i in range(len(chain), -1, -1):
        over[i] = first
        writer = chain[i - 1].writer if i > 0 else None
        for op in fixed[i] + ([writer] if writer else []):
            first = op if first is None or op.end < first.end else first
    problems, placed = [], []
    for op in sorted(floating, key=lambda op: op.end):
        lowest = max((place for end, place in placed if end < op.start), default=0)
        for i in range(lowest, len(chain) + 1):
            version = chain[i - 1] if i > 0 else None
            in_time = (begun[i] is None or op.end >= begun[i].start) and (over[i] is None or op.start <= over[i].end)
            if in_time and refuses(op, version):
                placed.append((op.end, i))
                break
        else:
            around = [v.writer for v in chain if v.writer and v.writer.end >= op.start and v.writer.start <= op.end]
            before = [v.writer for v in chain if v.writer and v.writer.end < op.start][-1:]
            problems.append(Problem(f"{key}: nothing explains the answer {op.code}", [op] + before + around))
    return problems


def refuses(op, version):
    """Whether an operation can get its response while this version (None if never created) is the latest."""
    state = version.state if version else None
    if op.verb == "get":
        return state is None
    try:
        after(state, op)
    except Refused as refused:
        return refused.args[0] == op.code
    return op.expected is not None and op.code == 409 and version.revision != op.expected


def check_lists(ops, versions, covered):
    problems = []
    deleted = {op.uid: op for op in ops if op.verb == "delete" and op.outcome == "ok"}
    for op in ops:
        if op.verb != "list" or op.outcome != "ok":
            continue
        for key, chain in versions.items():
            newest = None
            for version in chain:
                if version.unseen:
                    continue
                if version.revision <= op.revision:
                    newest = version
                    if version.writer and version.writer.start > op.end:
                        problems.append(Problem(f"a list at {op.revision} ended before {key} at {version.revision} was begun", [op, version.writer]))
                elif version.writer and version.writer.outcome == "ok" and version.writer.end < op.start:
                    problems.append(Problem(f"a list at {op.revision} lacks {key} at {version.revision}, which was acknowledged before", [op, version.writer]))
                    break
            item = op.items.get(key)
            if item and item.uid in deleted and deleted[item.uid].end < op.start:
                problems.append(Problem(f"a list has {key} although its deletion was acknowledged before", [op, deleted[item.uid]]))
            expected = newest.revision if newest and newest.state is not None else None
            whole = newest is None or any(start <= newest.revision and op.revision <= end for start, end in covered)
            if (item.revision if item else None) != expected and whole:
                problems.append(Problem(f"a list at {op.revision} has {key} at {item.revision if item else None}, not at {expected}",
                                        [op, newest.writer if newest else None]))
    return problems


def check_watcher(name, log, versions):
    """Between two lists, each event is seen once, in order, without gaps."""
    problems = []
    start = last = None
    there, seen = {}, set()

    def complete():
        for key, chain in versions.items():
            for version in chain:
                if start is not None and not version.unseen and start < version.revision <= last and (key, version.revision) not in seen:
                    problems.append(Problem(f"{name} never got {key} at {version.revision}, between {start} and {last}", [version.writer]))

    for entry in log:
        if entry[0] == "list":
            complete()
            start = last = entry[1]
            there, seen = set(entry[2]), set()
        elif entry[0] == "bookmark":
            last = max(last, entry[1])
        elif entry[0] == "event":
            version = entry[2]
            if version.revision <= last:
                problems.append(Problem(f"{name} got {version.key} at {version.revision} after {last}", []))
            wanted = "DELETED" if version.state is None else "MODIFIED" if version.key in there else "ADDED"
            if entry[1] != wanted:
                problems.append(Problem(f"{name} got {version.key} at {version.revision} as {entry[1]}, not {wanted}", []))
            seen.add((version.key, version.revision))
            there.discard(version.key)
            if version.state is not None:
                there.add(version.key)
            last = version.revision
    complete()
    return problems
