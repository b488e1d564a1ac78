#!/usr/bin/env python3
"""deploy/: the alerts and the board read metrics and labels that exist, and each alert has its line in docs/troubleshooting.md."""
import json, os, re, subprocess, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import needs  # noqa: E402

SCRAPED = {'job', 'instance'}  # Labels that Prometheus adds.
FUNCTIONS = {'sum', 'by', 'rate', 'increase', 'histogram_quantile', 'topk', 'time', 'max'}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


def metrics():
    """{name of a series: its labels}, from docs/metrics.md, which a test compares with a server."""
    found = {'up': SCRAPED}
    for name, kind, labels in re.findall(r'^\| `([a-z_]+)` \| (\w+) \| (.*?) \| ', read('docs', 'metrics.md'), re.M):
        labels = set(re.findall(r'`(\w+)`', labels)) | SCRAPED
        if kind == 'histogram':
            found.update({name + '_bucket': labels | {'le'}, name + '_sum': labels, name + '_count': labels})
        else:
            found[name] = labels
    assert len(found) > 80
    return found


def expressions():
    board = json.loads(read('deploy', 'grafana', 'holdfast.json'))
    for panel in board['panels']:
        for target in panel['targets']:
            yield f"{panel['title']}: {target['expr']}", target['expr'], re.findall(r'\{\{(\w+)\}\}', target['legendFormat'])
    for name, expression in alerts().items():
        yield f'{name}: {expression}', expression, []


def alerts():
    found = re.findall(r'- alert: (\w+)\n +expr: (".*")\n', read('deploy', 'prometheus', 'holdfast.rules.yaml'))
    return {name: json.loads(expression) for name, expression in found}


class Deploy(unittest.TestCase):
    def test_expressions_read_series_and_labels_that_exist(self):
        known = metrics()
        for where, expression, legend in expressions():
            with self.subTest(where):
                self.assertEqual(expression.count('('), expression.count(')'))
                bare = re.sub(r'"[^"]*"', '""', expression)
                series = re.findall(r'([a-z_]+)(\{[^}]*\})?(?:\[\w+\])?', re.sub(r'by \([^)]*\)', '', bare))
                used = [(name, re.findall(r'(\w+)(?:=~|!~|!=|=)', selector)) for name, selector in series if name in known or ('_' in name and name not in FUNCTIONS)]
                self.assertTrue(used)
                for name, labels in used:
                    self.assertTrue(name in known, f'there is no series {name}')
                    self.assertLessEqual(set(labels), known[name])
                grouped = {label.strip() for labels in re.findall(r'by \(([^)]*)\)', bare) for label in labels.split(',')}
                shown = set().union(*(known[name] for name, _ in used))
                self.assertLessEqual(grouped | set(legend), shown)

    def test_every_alert_has_its_remedy(self):
        listed = re.findall(r'^\| `(Holdfast\w+)` \|', read('docs', 'troubleshooting.md'), re.M)
        self.assertEqual(sorted(listed), sorted(alerts()))

    def test_promtool_accepts_the_rules(self):
        if needs.missing('promtool'):
            self.skipTest('promtool is not installed')
        subprocess.run(['promtool', 'check', 'rules', os.path.join(ROOT, 'deploy', 'prometheus', 'holdfast.rules.yaml')], check=True)


if __name__ == '__main__':
    unittest.main(verbosity=2)
