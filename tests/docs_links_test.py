#!/usr/bin/env python3
"""The pages of docs/: each is in the index docs/README.md, and every relative link leads to a file, and to a heading in it."""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pages():
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '--cached', '--others', '--exclude-standard', '*.md'], capture_output=True, text=True)
    if listed.returncode == 0:
        return [os.path.join(ROOT, name) for name in listed.stdout.split()]
    return [os.path.join(folder, name) for folder, _, names in os.walk(ROOT) for name in names if name.endswith('.md')]


def without_code(text):
    return re.sub(r'^```.*?^```', '', text, flags=re.M | re.S)


def anchors(path):
    """The anchors that GitHub makes of headings."""
    found = set()
    with open(path, encoding='utf-8') as f:
        for heading in re.findall(r'^#+ +(.*?)\s*$', without_code(f.read()), re.M):
            plain = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading).replace('`', '').lower()
            anchor = re.sub(r'[^\w\- ]', '', plain).replace(' ', '-')
            number = 0
            while (anchor if number == 0 else f'{anchor}-{number}') in found:
                number += 1
            found.add(anchor if number == 0 else f'{anchor}-{number}')
    return found


def main():
    problems, linked = [], set()
    for page in pages():
        if not os.path.exists(page):
            continue
        with open(page, encoding='utf-8') as f:
            text = re.sub(r'`[^`\n]*`', '', without_code(f.read()))
        name = os.path.relpath(page, ROOT)
        for target in re.findall(r'\]\(([^)\s]+)\)', text):
            if re.match(r'[a-z]+:', target):
                continue
            file, _, anchor = target.partition('#')
            path = os.path.normpath(os.path.join(os.path.dirname(page), file)) if file else page
            if not os.path.exists(path):
                problems.append(f'{name}: {target} does not exist')
            elif anchor and path.endswith('.md') and anchor not in anchors(path):
                problems.append(f'{name}: {target}: there is no such heading')
            if name == os.path.join('docs', 'README.md'):
                linked.add(path)
    docs = os.path.join(ROOT, 'docs')
    for page in sorted(os.listdir(docs)):
        if page.endswith('.md') and page != 'README.md' and os.path.join(docs, page) not in linked:
            problems.append(f'docs/README.md does not list {page}')
    for problem in problems:
        print('FAILED:', problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
