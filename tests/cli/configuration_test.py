#!/usr/bin/env python3
"""docs/configuration.md lists every flag of `holdfast serve`, and what becomes of each flag of kube-apiserver.

configuration_test.py PATH/TO/holdfast [--write]      --write rewrites the page
"""
import os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
sys.path.insert(0, os.path.join(HERE, '..'))
import needs  # noqa: E402

PAGE = os.path.join(ROOT, 'docs', 'configuration.md')
HEAD = '''# Configuration reference

The flags of `holdfast serve`, which `--config FILE` and the environment (`HOLDFAST_SERVE_DATA_DIR`) can set as well:
[operations.md](operations.md#configuration). `tests/cli/configuration_test.py` writes this page from the program and checks it.

| flag | default | meaning |
| --- | --- | --- |
'''
KUBE = '''
## Flags of kube-apiserver

`holdfast serve` under the name `kube-apiserver` (a link, made by `holdfast envtest-assets`) takes the flags of kube-apiserver v1.36.
Those above work as there. All others are listed here: none is ignored silently.

| flag | accepted | otherwise |
| --- | --- | --- |
'''


def flags(binary):
    """[(names, default, description)] from the man page, which is made by the parser itself."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, 'man', folder], check=True)
        with open(os.path.join(folder, 'holdfast-serve.1')) as f:
            text = f.read()
    found = []
    for names, description in re.findall(r'^\.TP\n\.B (.*)\n(.*)\n', text.split('.SH OPTIONS\n')[1], re.M):
        unescape = lambda text: re.sub(r'\\(.)', lambda m: '' if m.group(1) == '&' else m.group(1), text)  # noqa: E731
        names, description = unescape(names), unescape(description)
        default = re.search(r' \(default (.*)\)$', description)
        found.append((names.replace(',', ', '), default.group(1) if default else '', description[:default.start()] if default else description))
    return found


def kube_flags():
    """{name: (accepted values, why it has no effect)} from the tables of kube_flags.cc."""
    with open(os.path.join(ROOT, 'src', 'programs', 'cli', 'kube_flags.cc')) as f:
        text = f.read()
    fixed, internal = re.search(r'kFixed\[\] = \{\n(.*?)\n\};', text, re.S), re.search(r'kInternal\[\] = \{\n(.*?)\n\};', text, re.S)
    out = {}
    for name, values in re.findall(r'\{"([^"]+)", k\w+(?:, \{(.*?)\})?\}', fixed.group(1)):
        out[name] = (re.findall(r'"([^"]*)"', values) or [''], None)
    for name, why in re.findall(r'\{"([^"]+)", k\w+, "([^"]*)"\}', internal.group(1)):
        out[name] = (None, why)
    assert len(out) > 70, 'the tables cannot be read'
    return out


def cell(text):
    return text.replace('|', '\\|').replace('<', '&lt;')


def page(binary):
    ours = flags(binary)
    assert len(ours) > 80, 'the man page cannot be read'
    text = HEAD + ''.join(f'| `{names}` | {f"`{default}`" if default else ""} | {cell(description)} |\n' for names, default, description in ours
                          if '--help' not in names)
    known = {name.lstrip('-') for names, _, _ in ours for name in names.split(', ')}
    text += KUBE
    for name, (accepted, why) in sorted(kube_flags().items()):
        if name in known:
            continue
        if accepted is None:
            text += f'| `--{name}` | any value, with a warning | no effect: {cell(why)} |\n'
        else:
            values = ' or '.join(f'`{value}`' for value in accepted if value) or 'not set'
            text += f'| `--{name}` | {values} | an error at the start: not implemented |\n'
    return text


def main():
    binary, wanted = os.path.abspath(sys.argv[1]), None
    wanted = page(binary)
    if '--write' in sys.argv:
        with open(PAGE, 'w') as f:
            f.write(wanted)
        return 0
    with open(PAGE) as f:
        if f.read() != wanted:
            print('FAILED: docs/configuration.md is not up to date (configuration_test.py HOLDFAST --write)')
            return 1
    peer = needs.peer('kube-apiserver')
    if not peer:
        needs.skip_part('flags of kube-apiserver', 'there is no kube-apiserver to list them')
        return 0
    listed = subprocess.run([os.path.join(peer, 'kube-apiserver'), '--help'], capture_output=True, text=True, check=True).stdout
    theirs = set(re.findall(r'^ +(?:-\w, )?--([a-z0-9-]+)', listed, re.M)) - {'help', 'version'}
    named = {name.lstrip('-') for names, _, _ in flags(binary) for name in names.split(', ')} | set(kube_flags())
    missing = sorted(theirs - named)
    print(f'{len(theirs)} flags of kube-apiserver, {len(missing)} neither taken nor listed: {missing}')
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main())
