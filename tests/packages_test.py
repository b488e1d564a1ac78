#!/usr/bin/env python3
"""The packages in build/packages, if ./dev package has made them: what they contain, and that the program needs nothing else.

packages_test.py [FOLDER]
"""
import gzip, hashlib, io, json, os, re, subprocess, sys, tarfile, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import needs  # noqa: E402

FOLDER = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(HERE, '..', 'build', 'packages')
with open(os.path.join(HERE, '..', 'CMakeLists.txt')) as f:
    VERSION = re.search(r'project\(Holdfast VERSION ([\d.]+)', f.read()).group(1)


def find(pattern):
    found = [name for name in os.listdir(FOLDER) if re.fullmatch(pattern, name)]
    assert len(found) == 1, (pattern, found)
    return os.path.join(FOLDER, found[0])


class Packages(unittest.TestCase):
    def test_checksums(self):
        with open(os.path.join(FOLDER, 'SHA256SUMS')) as f:
            sums = dict(reversed(line.split()) for line in f)
        self.assertEqual(set(sums), set(os.listdir(FOLDER)) - {'SHA256SUMS'})
        for name, digest in sums.items():
            with open(os.path.join(FOLDER, name), 'rb') as f:
                self.assertEqual(hashlib.sha256(f.read()).hexdigest(), digest, name)

    def test_the_archive_holds_one_static_program(self):
        with tempfile.TemporaryDirectory() as folder, tarfile.open(find(rf'holdfast-{VERSION}-linux-\w+\.tar\.xz')) as archive:
            members = archive.getmembers()
            self.assertEqual({(member.uid, member.gid, member.uname) for member in members}, {(0, 0, '')})
            self.assertEqual(len({member.mtime for member in members}), 1)
            archive.extractall(folder)
            base = os.path.join(folder, os.listdir(folder)[0])
            program = os.path.join(base, 'bin', 'holdfast')
            self.assertNotIn('(NEEDED)', subprocess.check_output(['readelf', '-d', program], text=True))
            self.assertNotIn('INTERP', subprocess.check_output(['readelf', '-l', program], text=True))
            about = json.loads(subprocess.check_output([program, 'version', '-o', 'json']))
            self.assertEqual((about['version'], about['linkage']), (VERSION, 'static'))
            self.assertRegex(about['commit'], '^[0-9a-f]{40}$')
            for name in ('LICENSE', 'NOTICES', 'CHANGELOG.md', 'share/man/man1/holdfast.1.gz', 'share/bash-completion/completions/holdfast'):
                self.assertTrue(os.path.getsize(os.path.join(base, name)), name)
            # Neither where nor on whose machine it was built.
            with open(program, 'rb') as f:
                self.assertNotIn(os.path.realpath(os.path.join(HERE, '..')).encode() + b'/src', f.read())

    def test_the_package_runs_a_service_as_its_own_user(self):
        listed = subprocess.check_output(['dpkg-deb', '--contents', find(rf'holdfast_{VERSION}-\d+_\w+\.deb')], text=True)
        self.assertEqual({line.split()[1] for line in listed.splitlines()}, {'root/root'})
        for name in ('./usr/bin/holdfast', './etc/holdfast/holdfast.conf', './lib/systemd/system/holdfast.service',
                     './usr/share/man/man1/holdfast-serve.1.gz', './usr/share/doc/holdfast/NOTICES.gz'):
            self.assertIn(name + '\n', listed)
        self.assertIn('/holdfast/client/client.h\n', subprocess.check_output(['dpkg-deb', '--contents', find(r'libholdfast-dev_.*\.deb')], text=True))

    def test_the_image_holds_the_program_and_nothing_else(self):
        with tarfile.open(find(rf'holdfast-{VERSION}-oci-\w+\.tar')) as archive:
            def blob(digest):
                kind, name = digest.split(':')
                data = archive.extractfile(f'blobs/{kind}/{name}').read()
                self.assertEqual(hashlib.sha256(data).hexdigest(), name)
                return data
            manifest = json.loads(blob(json.load(archive.extractfile('index.json'))['manifests'][0]['digest']))
            config = json.loads(blob(manifest['config']['digest']))
            self.assertRegex(config['config']['User'], '^[1-9]')
            self.assertEqual(len(manifest['layers']), 1)
            layer = gzip.decompress(blob(manifest['layers'][0]['digest']))
            self.assertEqual(config['rootfs']['diff_ids'], ['sha256:' + hashlib.sha256(layer).hexdigest()])
            with tarfile.open(fileobj=io.BytesIO(layer)) as files:
                self.assertEqual({member.name for member in files}, {'holdfast', 'data', 'tmp', 'etc/passwd', 'etc/group'})
            self.assertLess(manifest['layers'][0]['size'], 16_000_000)

    def test_setup_envtest_gets_regular_files(self):
        path = find(r'envtest-v[\d.]+-linux-\w+\.tar\.gz')
        with tarfile.open(path) as archive:
            members = [member for member in archive if not member.isdir()]
            self.assertEqual({os.path.basename(member.name) for member in members}, {'kube-apiserver', 'etcd', 'kubectl'})
            self.assertTrue(all(member.isreg() and member.mode == 0o755 for member in members))
        with open(path, 'rb') as f, open(os.path.join(FOLDER, 'envtest-releases.yaml')) as index:
            self.assertIn(hashlib.sha512(f.read()).hexdigest(), index.read())

    def test_the_sbom_names_every_library_with_a_licence(self):
        with open(find(r'.*\.spdx\.json')) as f:
            document = json.load(f)
        libraries = {package['name']: package for package in document['packages'] if package['primaryPackagePurpose'] == 'LIBRARY'}
        self.assertLessEqual({'openssl', 'rocksdb', 'grpc', 'glibc', 'nghttp2', 'libisal', 'jemalloc'}, set(libraries))
        for name, package in libraries.items():
            self.assertTrue(package['versionInfo'] and package['licenseDeclared'], name)


if __name__ == '__main__':
    if not os.path.exists(os.path.join(FOLDER, 'SHA256SUMS')):
        needs.skip('there are no packages', './dev package')
    if not any(VERSION in name for name in os.listdir(FOLDER)):
        needs.skip('the packages are of another version', './dev package')
    unittest.main(verbosity=2)
