"""A real etcd for one test, and its keys. HOLDFAST_ETCD overrides the binary on the PATH. Standard library only."""
import base64, json, os, shutil, subprocess, sys, tempfile, time, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'clients'))
from server import free_port  # noqa: E402


def program():
    return os.environ.get('HOLDFAST_ETCD') or shutil.which('etcd') or '/usr/bin/etcd'


def prefix_end(prefix):
    return prefix[:-1] + bytes([prefix[-1] + 1])


class Etcd:
    def __init__(self, binary=None, data=None):
        """`data`: a directory with the data of another etcd, which is moved here."""
        self.binary = binary or program()
        self.folder = tempfile.mkdtemp(prefix='holdfast-etcd-')
        if data:
            shutil.move(data, os.path.join(self.folder, 'data'))
        self.port, self.peer_port = free_port(), free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        self.start()

    def start(self):
        peer = f'http://127.0.0.1:{self.peer_port}'
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self.process = subprocess.Popen(
                [self.binary, '--data-dir', os.path.join(self.folder, 'data'), '--listen-client-urls', self.url,
                 '--advertise-client-urls', self.url, '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                 '--initial-cluster', 'default=' + peer], stdout=log, stderr=log)
        end = time.time() + 120
        while True:
            try:
                with urllib.request.urlopen(self.url + '/health', timeout=2) as answer:
                    if json.load(answer)['health'] == 'true':
                        return
            except OSError:
                pass
            if self.process.poll() is not None or time.time() > end:
                with open(os.path.join(self.folder, 'log'), errors='replace') as log:
                    raise AssertionError('etcd did not start: ' + log.read()[-2000:])
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, path, **members):
        request = urllib.request.Request(self.url + '/v3/' + path, json.dumps(members).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    @staticmethod
    def text(data):
        return base64.b64encode(data).decode()

    def values(self, prefix='/registry/'):
        """{key: (value, mod revision)} of every key below a prefix."""
        prefix = prefix.encode()
        found = self.call('kv/range', key=self.text(prefix), range_end=self.text(prefix_end(prefix))).get('kvs', [])
        return {base64.b64decode(i['key']).decode(): (base64.b64decode(i.get('value', '')), int(i['mod_revision']))
                for i in found}

    def put(self, key, value):
        self.call('kv/put', key=self.text(key.encode()), value=self.text(value))

    def delete_all(self):
        self.call('kv/deleterange', key=self.text(b'\0'), range_end=self.text(b'\0'))
