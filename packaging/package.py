#!/usr/bin/env python3
"""Makes the packages from build/portable: ./dev package

package.py [--output FOLDER] [--build FOLDER] [--url URL]

  holdfast-VERSION-linux-ARCH.tar.xz           one program for any distribution, with completions and man pages
  holdfast-VERSION-linux-ARCH-symbols.tar.xz   its debug symbols
  holdfast_VERSION-1_ARCH.deb                  the same with a systemd unit, a user and /etc/holdfast
  libholdfast-dev_VERSION-1_ARCH.deb           the C++ libraries
  holdfast-dbgsym_VERSION-1_ARCH.deb           debug symbols
  holdfast-VERSION-oci-ARCH.tar                an image for container runtimes (OCI layout), with nothing but the program
  envtest-vKUBERNETES-linux-ARCH.tar.gz        kube-apiserver, etcd and kubectl for setup-envtest, with its index
  holdfast-VERSION.spdx.json                   what they contain (SPDX 2.3)
  SHA256SUMS

The same binaries give the same bytes: times are those of SOURCE_DATE_EPOCH, or of the last commit.
"""
import argparse, datetime, gzip, hashlib, io, json, os, re, shutil, subprocess, sys, tarfile, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEBIAN = os.path.join(ROOT, 'packaging', 'debian')
# Whoever makes packages for others names themselves, as with Debian's own tools.
MAINTAINER = f"{os.environ.get('DEBFULLNAME', 'The Holdfast authors')} <{os.environ.get('DEBEMAIL', 'holdfast@example.org')}>"
# Licences of the source packages that libraries inside the program come from, as SPDX expressions.
LICENCES = {
    'abseil': 'Apache-2.0', 'bzip2': 'bzip2-1.0.6', 'c-ares': 'MIT', 'cli11': 'BSD-3-Clause', 'gcc-12': 'GPL-3.0-or-later WITH GCC-exception-3.1',
    'gcc-14': 'GPL-3.0-or-later WITH GCC-exception-3.1', 'gflags': 'BSD-3-Clause', 'glibc': 'LGPL-2.1-or-later', 'grpc': 'Apache-2.0',
    'jemalloc': 'BSD-2-Clause', 'libisal': 'BSD-3-Clause', 'lz4': 'BSD-2-Clause', 'nghttp2': 'MIT', 'openssl': 'Apache-2.0',
    'protobuf': 'BSD-3-Clause', 're2': 'BSD-3-Clause', 'rocksdb': 'Apache-2.0', 'simdjson': 'Apache-2.0', 'snappy': 'BSD-3-Clause',
    'xxhash': 'BSD-2-Clause', 'zlib': 'Zlib', 'libzstd': 'BSD-3-Clause',
}
# Libraries that are headers only, or come with the compiler, and therefore are not in the link command.
IMPLICIT = ('libc6-dev', 'libcli11-dev', 'libxxhash-dev')


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


class Tree:
    """A directory of files to pack, with the modes that they get whatever the umask is."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)

    def copy(self, source, name, mode=0o644):
        shutil.copyfile(source, self.path(name))
        os.chmod(self.path(name), mode)

    def compress(self, name, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.write(name + '.gz', gzip.compress(data, 9, mtime=0))

    def link(self, name, target):
        os.symlink(target, self.path(name))

    def files(self):
        for folder, _, names in os.walk(self.folder):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self.folder)


class Packages:
    def __init__(self, build, output):
        self.build, self.output = build, output
        self.version = re.search(r'project\(Holdfast VERSION ([\d.]+)', read(ROOT, 'CMakeLists.txt')).group(1)
        self.machine = run('dpkg', '--print-architecture').strip()
        self.epoch = int(os.environ.get('SOURCE_DATE_EPOCH') or run('git', '-C', ROOT, 'log', '-1', '--format=%ct'))
        os.environ['SOURCE_DATE_EPOCH'] = str(self.epoch)
        self.work = tempfile.mkdtemp(prefix='holdfast-package-')
        os.chmod(self.work, 0o755)
        self.made = []

    def tree(self, name):
        folder = os.path.join(self.work, name)
        os.makedirs(folder)
        return Tree(folder)

    def strip(self):
        """The program without symbols, its symbols, and where debuggers look for them."""
        linked = os.path.join(self.build, 'bin', 'holdfast')
        self.program, self.symbols = os.path.join(self.work, 'holdfast'), os.path.join(self.work, 'holdfast.debug')
        run('objcopy', '--only-keep-debug', linked, self.symbols)
        run('objcopy', '--strip-all', '--remove-section=.comment', linked, self.program)
        os.chmod(self.program, 0o755)
        self.build_id = re.search(r'Build ID: (\w+)', run('readelf', '-n', linked)).group(1)
        self.debug_path = f'usr/lib/debug/.build-id/{self.build_id[:2]}/{self.build_id[2:]}.debug'

    def libraries(self):
        """[(Debian package, its source, version)] of the libraries inside the program: those in the link command."""
        command = run('ninja', '-C', self.build, '-t', 'commands', 'bin/holdfast').strip().split('\n')[-1].split(' && ')
        command = next(part for part in command if ' -o bin/holdfast' in part)
        # The linker says which files it reads.
        traced = run('sh', '-c', command.replace('-o bin/holdfast', '-o /dev/null -Wl,--trace', 1), cwd=self.build)
        packages = set(IMPLICIT)
        for line in traced.split('\n'):
            path = re.sub(r'\(.*', '', line.strip())
            if not path or not os.path.isabs(path) or os.path.realpath(path).startswith(os.path.realpath(self.build)):
                continue
            real = os.path.realpath(path)
            if '/clang' in real or '/llvm' in real:
                continue  # The compiler's start files.
            packages.add(self.owner(real, path))
        packages.add('libisal-dev')  # Built from its source package.
        packages.add('libsimdjson-dev')
        found = {}
        for package in sorted(packages):
            source, version = run('dpkg-query', '-W', '-f=${source:Package} ${source:Version}', package).split('\n')[0].split()
            if source not in LICENCES:
                raise SystemExit(f'package: the licence of {source} ({package}) is not known: add it to LICENCES in {__file__}')
            found.setdefault(source, (package, version))
        return [(source, package, version) for source, (package, version) in sorted(found.items())]

    @staticmethod
    def owner(*paths):
        for path in paths:
            for name in (path, path.replace('/usr/lib/', '/lib/', 1), path.replace('/lib/', '/usr/lib/', 1)):
                done = subprocess.run(['dpkg', '-S', name], capture_output=True, text=True)
                if done.returncode == 0:
                    return done.stdout.split(':')[0]
        raise SystemExit(f'package: no Debian package has {paths[0]}')

    def notices(self):
        text = 'The program holdfast contains these libraries, linked statically.\n'
        for source, package, version in self.contents:
            with open(f'/usr/share/doc/{package}/copyright', errors='replace') as f:
                text += f'\n{"=" * 80}\n{source} {version}: {LICENCES[source]}\n{"=" * 80}\n\n{f.read().strip()}\n'
        return text

    def sbom(self):
        created = datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
        with open(self.program, 'rb') as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        packages = [{'SPDXID': 'SPDXRef-holdfast', 'name': 'holdfast', 'versionInfo': self.version, 'downloadLocation': 'NOASSERTION',
                     'filesAnalyzed': False, 'licenseConcluded': 'NOASSERTION', 'licenseDeclared': 'Apache-2.0', 'copyrightText': 'NOASSERTION',
                     'checksums': [{'algorithm': 'SHA256', 'checksumValue': digest}], 'primaryPackagePurpose': 'APPLICATION'}]
        relations = [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES', 'relatedSpdxElement': 'SPDXRef-holdfast'}]
        for source, _, version in self.contents:
            name = 'SPDXRef-' + re.sub(r'[^A-Za-z0-9.-]', '-', source)
            packages.append({'SPDXID': name, 'name': source, 'versionInfo': version, 'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False,
                             'supplier': 'Organization: Debian', 'licenseConcluded': 'NOASSERTION', 'licenseDeclared': LICENCES[source],
                             'copyrightText': 'NOASSERTION', 'primaryPackagePurpose': 'LIBRARY',
                             'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
                                               'referenceLocator': f'pkg:deb/debian/{source}@{version.replace("+", "%2B").replace(":", "%3A")}?arch=source'}]})
            relations.append({'spdxElementId': 'SPDXRef-holdfast', 'relationshipType': 'STATIC_LINK', 'relatedSpdxElement': name})
        document = {'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': f'holdfast-{self.version}',
                    'documentNamespace': f'https://spdx.org/spdxdocs/holdfast-{self.version}-{digest}',
                    'creationInfo': {'created': created, 'creators': ['Tool: packaging/package.py']}, 'packages': packages,
                    'relationships': relations}
        return json.dumps(document, indent=2) + '\n'

    def documentation(self):
        """(man pages, completions): {name: text}"""
        folder = os.path.join(self.work, 'man')
        run(self.program, 'man', folder)
        pages = {name: read(folder, name) for name in sorted(os.listdir(folder))}
        return pages, {shell: run(self.program, 'completion', shell) for shell in ('bash', 'zsh', 'fish')}

    def archive(self, tree, name, level='-9'):
        path = os.path.join(self.output, name + '.tar.xz')
        packed = subprocess.Popen(['tar', '-C', tree.folder, '--format=gnu', '--sort=name', f'--mtime=@{self.epoch}', '--owner=0', '--group=0',
                                   '--numeric-owner', '-cf', '-', '.' if os.listdir(tree.folder) != [name] else name], stdout=subprocess.PIPE)
        with open(path, 'wb') as f:
            subprocess.run(['xz', level, '-T1'], stdin=packed.stdout, stdout=f, check=True)
        if packed.wait() != 0:
            raise SystemExit('package: tar failed')
        self.made.append(path)

    def make_archives(self):
        name = f'holdfast-{self.version}-linux-{self.machine}'
        tree = self.tree('archive')
        tree.copy(self.program, f'{name}/bin/holdfast', 0o755)
        tree.link(f'{name}/bin/kubectl-blame', 'holdfast')
        for page, text in self.pages.items():
            tree.compress(f'{name}/share/man/man1/{page}', text)
        for shell, file in (('bash', 'bash-completion/completions/holdfast'), ('zsh', 'zsh/site-functions/_holdfast'),
                            ('fish', 'fish/vendor_completions.d/holdfast.fish')):
            tree.write(f'{name}/share/{file}', self.completions[shell])
        for file in ('README.md', 'LICENSE', 'CHANGELOG.md'):
            tree.copy(os.path.join(ROOT, file), f'{name}/{file}')
        tree.write(f'{name}/NOTICES', self.notices())
        tree.copy(os.path.join(DEBIAN, 'holdfast.service'), f'{name}/examples/holdfast.service')
        tree.copy(os.path.join(DEBIAN, 'holdfast.conf'), f'{name}/examples/holdfast.conf')
        tree.copy(os.path.join(DEBIAN, 'audit-policy.yaml'), f'{name}/examples/audit-policy.yaml')
        self.archive(tree, name)
        symbols = self.tree('symbols')
        symbols.copy(self.symbols, f'{name}-symbols/{self.debug_path}')
        self.archive(symbols, f'{name}-symbols', '-3')

    def deb(self, tree, package, fields, scripts=(), conffiles=(), level='-z9'):
        doc = f'usr/share/doc/{package}/'
        tree.write(doc + 'copyright', self.copyright(package))
        date = datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime('%a, %d %b %Y %H:%M:%S +0000')
        tree.compress(doc + 'changelog.Debian', f'holdfast ({self.version}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {date}\n')
        control = os.path.join(tree.folder, 'DEBIAN')
        os.makedirs(control)
        size = sum(max(1, (os.path.getsize(os.path.join(tree.folder, f)) + 1023) // 1024)
                   for f in tree.files() if not f.startswith('DEBIAN/') and not os.path.islink(os.path.join(tree.folder, f)))
        sums = ''.join(f'{hashlib.md5(open(os.path.join(tree.folder, f), "rb").read()).hexdigest()}  {f}\n' for f in sorted(tree.files())
                       if not f.startswith('DEBIAN/') and f not in conffiles and not os.path.islink(os.path.join(tree.folder, f)))
        head = {'Package': package, 'Source': 'holdfast' if package != 'holdfast' else None, 'Version': f'{self.version}-1', 'Architecture': self.machine,
                'Maintainer': MAINTAINER, 'Installed-Size': str(size), **fields}
        tree.write('DEBIAN/control', ''.join(f'{k}: {v}\n' for k, v in head.items() if v))
        tree.write('DEBIAN/md5sums', sums)
        if conffiles:
            tree.write('DEBIAN/conffiles', ''.join(f'/{f}\n' for f in conffiles))
        for script in scripts:
            tree.copy(os.path.join(DEBIAN, script), 'DEBIAN/' + script, 0o755)
        for folder, _, _ in os.walk(tree.folder):
            os.chmod(folder, 0o755)
        path = os.path.join(self.output, f'{package}_{self.version}-1_{self.machine}.deb')
        run('dpkg-deb', '--root-owner-group', '-Zxz', level, '--build', tree.folder, path)
        self.made.append(path)

    def copyright(self, package):
        text = ('Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: holdfast\n\nFiles: *\n'
                'Copyright: 2026 The Holdfast authors\nLicense: Apache-2.0\n On Debian systems, the text of the license is in\n'
                ' /usr/share/common-licenses/Apache-2.0.\n')
        if package == 'holdfast':
            text += 'Comment:\n The program contains libraries with licenses of their own: NOTICES.gz in this directory has them.\n'
        return text

    def make_debs(self):
        tree = self.tree('deb')
        tree.copy(self.program, 'usr/bin/holdfast', 0o755)
        tree.link('usr/bin/kubectl-blame', 'holdfast')
        for page, text in self.pages.items():
            tree.compress(f'usr/share/man/man1/{page}', text)
        tree.link('usr/share/man/man1/kubectl-blame.1.gz', 'holdfast-blame.1.gz')
        tree.write('usr/share/bash-completion/completions/holdfast', self.completions['bash'])
        tree.write('usr/share/zsh/vendor-completions/_holdfast', self.completions['zsh'])
        tree.write('usr/share/fish/vendor_completions.d/holdfast.fish', self.completions['fish'])
        tree.copy(os.path.join(DEBIAN, 'holdfast.service'), 'lib/systemd/system/holdfast.service')
        conffiles = ('etc/holdfast/audit-policy.yaml', 'etc/holdfast/holdfast.conf')
        for file in conffiles:
            tree.copy(os.path.join(DEBIAN, os.path.basename(file)), file)
        tree.compress('usr/share/doc/holdfast/NOTICES', self.notices())
        tree.compress('usr/share/doc/holdfast/changelog', read(ROOT, 'CHANGELOG.md'))
        tree.write('usr/share/lintian/overrides/holdfast', read(DEBIAN, 'holdfast.lintian-overrides'))
        self.deb(tree, 'holdfast', {
            'Section': 'admin', 'Priority': 'optional', 'Depends': 'adduser, init-system-helpers (>= 1.52)', 'Suggests': 'etcd-server',
            'Description': 'Kubernetes API server in one small process\n'
                           ' Holdfast serves the Kubernetes API (v1.36) from an embedded store or an etcd.\n'
                           ' It starts in milliseconds, and keeps field ownership (Server-Side Apply and\n'
                           ' managedFields) apart from the objects.\n'
                           ' .\n'
                           ' The package runs a server as a service, configured in /etc/holdfast. Its\n'
                           " command line is also a client for any Kubernetes server."},
            scripts=('postinst', 'prerm', 'postrm'), conffiles=conffiles)

        tree = self.tree('dev')
        staged = os.path.join(self.work, 'staged')
        run('cmake', '--install', self.build, '--component', 'library', '--prefix', os.path.join(staged, 'usr'))
        for folder, _, names in os.walk(staged):
            for name in names:
                path = os.path.join(folder, name)
                tree.copy(path, os.path.relpath(path, staged))
        self.deb(tree, 'libholdfast-dev', {
            'Section': 'libdevel', 'Priority': 'optional', 'Depends': 'libzstd-dev, libssl-dev, libnghttp2-dev, libisal-dev',
            'Description': 'C++ libraries for Kubernetes objects, field ownership and clients\n'
                           ' libholdfast consists of object types, codecs (JSON, YAML, CBOR, Protobuf) and\n'
                           ' the engine of Server-Side Apply. libholdfast_client adds a client for any\n'
                           ' Kubernetes API server, with informers, reconcile loops and type-safe apply\n'
                           ' configurations. Both are static libraries for C++20, found by\n'
                           ' find_package(Holdfast) of CMake.'})

        tree = self.tree('dbgsym')
        tree.copy(self.symbols, self.debug_path)
        self.deb(tree, 'holdfast-dbgsym', {
            'Auto-Built-Package': 'debug-symbols', 'Section': 'debug', 'Priority': 'optional', 'Depends': f'holdfast (= {self.version}-1)',
            'Build-Ids': self.build_id, 'Description': 'debug symbols for holdfast'}, level='-z3')

    def make_image(self):
        """An image in OCI layout: one layer with the program and an empty data directory of a user without a name."""
        user = 65532
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode='w', format=tarfile.GNU_FORMAT) as tar:
            def add(name, mode, kind=tarfile.DIRTYPE, owner=0, content=b''):
                member = tarfile.TarInfo(name)
                member.mode, member.type, member.uid, member.gid, member.size, member.mtime = mode, kind, owner, owner, len(content), self.epoch
                tar.addfile(member, io.BytesIO(content))
            with open(self.program, 'rb') as f:
                add('holdfast', 0o755, tarfile.REGTYPE, content=f.read())
            add('data', 0o700, owner=user)
            add('tmp', 0o1777)
            for name, content in (('etc/passwd', f'holdfast:x:{user}:{user}::/data:/sbin/nologin\n'), ('etc/group', f'holdfast:x:{user}:\n')):
                add(name, 0o644, tarfile.REGTYPE, content=content.encode())
        plain = layer.getvalue()
        created = datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
        labels = {'org.opencontainers.image.title': 'holdfast', 'org.opencontainers.image.version': self.version,
                  'org.opencontainers.image.licenses': 'Apache-2.0', 'org.opencontainers.image.created': created}
        blobs = {}

        def blob(data):
            digest = hashlib.sha256(data).hexdigest()
            blobs[digest] = data
            return {'digest': f'sha256:{digest}', 'size': len(data)}

        def document(value):
            return json.dumps(value, separators=(',', ':'), sort_keys=True).encode()
        packed = blob(gzip.compress(plain, 9, mtime=0))
        config = blob(document({
            'created': created, 'architecture': self.machine, 'os': 'linux',
            'config': {'User': f'{user}:{user}', 'ExposedPorts': {'6443/tcp': {}}, 'Entrypoint': ['/holdfast'],
                       'Cmd': ['serve', '--data-dir=/data', '--listen=0.0.0.0:6443'], 'Env': ['HOME=/data'], 'Volumes': {'/data': {}}, 'WorkingDir': '/data', 'Labels': labels,
                       # Docker's; others ignore it.
                       'Healthcheck': {'Test': ['CMD', '/holdfast', 'get', '--raw', '/readyz', '--kubeconfig', '/data/kubeconfig'], 'Interval': 10_000_000_000}},
            'rootfs': {'type': 'layers', 'diff_ids': [f'sha256:{hashlib.sha256(plain).hexdigest()}']},
            'history': [{'created': created, 'created_by': 'packaging/package.py'}]}))
        media = 'application/vnd.oci.image.'
        manifest = blob(document({'schemaVersion': 2, 'mediaType': media + 'manifest.v1+json', 'config': {'mediaType': media + 'config.v1+json', **config},
                                  'layers': [{'mediaType': media + 'layer.v1.tar+gzip', **packed}], 'annotations': labels}))
        index = document({'schemaVersion': 2, 'mediaType': media + 'index.v1+json', 'manifests': [
            {'mediaType': media + 'manifest.v1+json', **manifest, 'platform': {'architecture': self.machine, 'os': 'linux'},
             'annotations': {'org.opencontainers.image.ref.name': self.version}}]})
        tree = self.tree('image')
        tree.write('oci-layout', '{"imageLayoutVersion":"1.0.0"}')
        tree.write('index.json', index)
        for digest, data in blobs.items():
            tree.write(f'blobs/sha256/{digest}', data)
        path = os.path.join(self.output, f'holdfast-{self.version}-oci-{self.machine}.tar')
        run('tar', '-C', tree.folder, '--format=gnu', '--sort=name', f'--mtime=@{self.epoch}', '--owner=0', '--group=0', '--numeric-owner', '-cf', path,
            'oci-layout', 'index.json', 'blobs')
        self.made.append(path)

    def make_envtest(self, url):
        """What setup-envtest downloads: regular files, because it skips links. They are the same program, which acts as its name says."""
        kubernetes = json.loads(run(self.program, 'version', '-o', 'json'))['kubernetesVersion']
        tree = self.tree('envtest')
        for name in ('kube-apiserver', 'etcd', 'kubectl'):
            tree.copy(self.program, f'controller-tools/envtest/{name}', 0o755)
        name = f'envtest-{kubernetes}-linux-{self.machine}.tar.gz'
        path = os.path.join(self.output, name)
        packed = subprocess.run(['tar', '-C', tree.folder, '--format=gnu', '--sort=name', f'--mtime=@{self.epoch}', '--owner=0', '--group=0', '--numeric-owner',
                                 '-cf', '-', 'controller-tools'], check=True, stdout=subprocess.PIPE).stdout
        with open(path, 'wb') as f:
            f.write(gzip.compress(packed, 9, mtime=0))
        with open(path, 'rb') as f:
            digest = hashlib.sha512(f.read()).hexdigest()
        index = os.path.join(self.output, 'envtest-releases.yaml')
        with open(index, 'w') as f:
            f.write(f'releases:\n  {kubernetes}:\n    {name}:\n      hash: {digest}\n      selfLink: {url.rstrip("/")}/{name}\n')
        self.made += [path, index]

    def make(self, url):
        shutil.rmtree(self.output, ignore_errors=True)
        os.makedirs(self.output)
        self.strip()
        self.contents = self.libraries()
        self.pages, self.completions = self.documentation()
        self.make_archives()
        self.make_debs()
        self.make_image()
        self.make_envtest(url)
        sbom = os.path.join(self.output, f'holdfast-{self.version}.spdx.json')
        with open(sbom, 'w') as f:
            f.write(self.sbom())
        self.made.append(sbom)
        with open(os.path.join(self.output, 'SHA256SUMS'), 'w') as sums:
            for path in sorted(self.made):
                with open(path, 'rb') as f:
                    sums.write(f'{hashlib.sha256(f.read()).hexdigest()}  {os.path.basename(path)}\n')
        for path in sorted(self.made):
            print(f'{os.path.getsize(path) / 1e6:8.2f} MB  {os.path.relpath(path, ROOT)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build', 'portable'))
    parser.add_argument('--output', default=os.path.join(ROOT, 'build', 'packages'))
    parser.add_argument('--url', default='https://example.org/holdfast', help='where the release will be, for the index of setup-envtest')
    options = parser.parse_args()
    packages = Packages(os.path.abspath(options.build), os.path.abspath(options.output))
    try:
        packages.make(options.url)
    finally:
        shutil.rmtree(packages.work)


if __name__ == '__main__':
    main()
