#!/usr/bin/env python3
"""The checkers detect errors and have no false positives."""
import unittest

from checks import History, Op, Refused, State, Version, after


class Story:
    """A history of one key, built step by step: each operation takes one unit of time unless specified otherwise."""

    def __init__(self):
        self.history, self.time, self.revision = History(), 0, 1
        self.state, self.uid, self.log = None, "u1", [("list", 1, {})]
        self.history.watchers.append(self.log)

    def op(self, verb, **more):
        span = more.pop("span", None) or (self.time, self.time + 0.5)
        self.time += 1
        op = Op(len(self.history.ops), verb, more.pop("key", "a"), span[0], end=span[1], **more)
        self.history.ops.append(op)
        return op

    def write(self, verb, answer="ok", **more):
        """A write that takes effect, regardless of the response."""
        op = self.op(verb, **more)
        before = self.state
        self.state = after(self.state, op)
        if self.state != before:
            self.revision += 1
            kind = "DELETED" if self.state is None else "ADDED" if before is None else "MODIFIED"
            self.log.append(("event", kind, self.version()))
        op.outcome = answer
        if answer == "unknown":
            op.end = float("inf")
        elif verb == "delete":
            op.uid = self.uid
            self.uid += "'"
        else:
            op.seen = self.version()
        return op

    def version(self):
        return Version("a", self.revision, self.uid, self.state)

    def read(self, version=None, **more):
        op = self.op("get", outcome="ok", **more)
        op.seen = version or self.version()
        return op

    def problems(self):
        return [problem.what for problem in self.history.problems()]


class Checks(unittest.TestCase):
    def good(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        story.write("apply", manager="n", data={"x": "1", "y": "2"})
        story.read()
        story.write("patch", manager="m", data={"y": "3"}, answer="unknown")
        story.write("apply", manager="n", data={"x": "1"})
        story.op("create", manager="m", outcome="refused", code=409)
        story.write("delete")
        story.op("get", outcome="refused", code=404)
        return story

    def test_a_valid_history(self):
        self.assertEqual(self.good().problems(), [])

    def test_ownership_by_the_model(self):
        state = after(None, Op(1, "apply", "a", 0, manager="n", data={"x": "1", "y": "2"}))
        state = after(state, Op(2, "patch", "a", 0, manager="m", data={"y": "3"}))
        self.assertEqual(state, State.of({"x": "1", "y": "3"}, {("n", "Apply"): {"x"}, ("m", "Update"): {"y"}}))
        with self.assertRaises(Refused):
            after(state, Op(3, "apply", "a", 0, manager="n", data={"y": "4"}))
        state = after(state, Op(4, "apply", "a", 0, manager="n", data={"y": "4"}, force=True))
        self.assertEqual(state, State.of({"y": "4"}, {("n", "Apply"): {"y"}}))
        shared = after(state, Op(5, "apply", "a", 0, manager="o", data={"y": "4"}))
        self.assertEqual(after(shared, Op(6, "apply", "a", 0, manager="n", data={})), State.of({"y": "4"}, {("o", "Apply"): {"y"}}))

    def test_a_stale_read(self):
        story = self.good()
        first = story.history.ops[0].seen
        story.read(first)
        self.assertTrue(any("ended before something" in what for what in story.problems()), story.problems())

    def test_a_lost_acknowledged_write(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        lost = story.op("patch", manager="m", data={"x": "2"}, outcome="ok")
        lost.seen = story.version()
        self.assertTrue(any("which it did not make" in what for what in story.problems()), story.problems())

    def test_a_version_without_a_writer(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        story.history.ops.clear()
        self.assertTrue(any("no write makes" in what for what in story.problems()), story.problems())

    def test_a_rejected_write_that_took_effect(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        patch = story.write("patch", manager="m", data={"x": "2"})
        patch.outcome, patch.code, patch.seen = "refused", 409, None
        self.assertTrue(any("no write makes" in what for what in story.problems()), story.problems())

    def test_wrong_owners(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        story.log[-1][2].state = State.of({"x": "1"}, {("other", "Update"): {"x"}})
        self.assertTrue(any("saw another" in what or "no write makes" in what for what in story.problems()), story.problems())

    def test_a_404_for_an_existing_object(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        story.op("get", outcome="refused", code=404)
        self.assertTrue(any("nothing explains the answer 404" in what for what in story.problems()), story.problems())

    def test_a_404_during_creation_is_valid(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"}, span=(0, 9))
        story.op("get", outcome="refused", code=404, span=(1, 2))
        self.assertEqual(story.problems(), [])

    def test_two_reads_in_the_wrong_order(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"}, span=(0, 9))
        story.read(span=(1, 2))
        story.op("get", outcome="refused", code=404, span=(3, 4))
        self.assertTrue(story.problems())

    def test_an_update_of_an_outdated_revision(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        first = story.revision
        story.write("patch", manager="m", data={"x": "2"})
        story.write("put", manager="m", data={"x": "3"}, expected=first)
        self.assertTrue(any("no write makes" in what for what in story.problems()), story.problems())

    def test_watchers_that_miss_repeat_or_reorder_events(self):
        for change in (lambda log: log.pop(2), lambda log: log.insert(2, log[1]), lambda log: log.insert(1, log.pop(2))):
            story = self.good()
            copied = list(story.log)
            change(copied)
            story.history.watchers.append(copied)
            self.assertTrue(any("watcher 1" in what for what in story.problems()), story.problems())

    def test_a_watcher_that_lists_again_may_miss_events(self):
        story = self.good()
        end = story.revision
        story.history.watchers.append([story.log[0], story.log[1], ("gone",), ("list", end, {})])
        self.assertEqual(story.problems(), [])

    def test_a_deletion_not_seen_by_any_watcher_is_valid(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        story.write("delete")
        story.log[-1:] = [("gone",), ("list", story.revision + 1, {})]
        story.op("get", outcome="refused", code=404)
        op = story.op("list", key="", outcome="ok")
        op.revision, op.items = story.revision + 1, {}
        self.assertEqual(story.problems(), [])

    def test_a_list_with_deleted_objects(self):
        story = Story()
        created = story.write("create", manager="m", data={"x": "1"}).seen
        story.write("delete")
        story.log[-1:] = [("gone",), ("list", story.revision + 1, {})]
        op = story.op("list", key="", outcome="ok")
        op.revision, op.items = story.revision + 1, {"a": created}
        self.assertTrue(any("although its deletion was acknowledged" in what for what in story.problems()), story.problems())

    def test_a_stale_list(self):
        story = self.good()
        created = story.history.ops[0].seen
        op = story.op("list", key="", outcome="ok")
        op.revision, op.items = created.revision, {"a": created}
        self.assertTrue(any("lacks a at" in what for what in story.problems()), story.problems())

    def test_a_list_that_mixes_revisions(self):
        story = Story()
        story.write("create", manager="m", data={"x": "1"})
        first = story.version()
        story.write("patch", manager="m", data={"x": "2"})
        op = story.op("list", key="", outcome="ok")
        op.revision, op.items = story.revision, {"a": first}
        self.assertTrue(any("has a at" in what for what in story.problems()), story.problems())


if __name__ == "__main__":
    unittest.main()
