"""A real kube-apiserver for one test, and requests to any server with its token. Standard library only."""
import json, os, ssl, subprocess, sys, time, urllib.error, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'clients'))
from server import free_port  # noqa: E402

TOKEN = 'either-token'
INSECURE = ssl._create_unverified_context()


class Api:
    """Requests to one server, with the same user, agent and manager on each."""

    def __init__(self, url):
        self.url = url

    def call(self, method, path, body=None, content='application/json'):
        request = urllib.request.Request(self.url + path, method=method, headers={
            'Authorization': 'Bearer ' + TOKEN, 'User-Agent': 'either/1', 'Accept': 'application/json', 'Content-Type': content})
        if body is not None:
            # Compact as in Go: otherwise raw values would change with every patch.
            request.data = json.dumps(body, separators=(',', ':')).encode()
        try:
            with urllib.request.urlopen(request, context=INSECURE, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            try:
                return error.code, json.loads(text)
            except ValueError:
                return error.code, {'message': text}

    def get(self, path):
        code, value = self.call('GET', path)
        assert code == 200, (path, value)
        return value


class KubeApiserver:
    def __init__(self, binary, etcd, folder, *flags):
        os.makedirs(folder, exist_ok=True)
        key, tokens = os.path.join(folder, 'sa.key'), os.path.join(folder, 'tokens.csv')
        if not os.path.exists(key):
            subprocess.check_call(['openssl', 'genrsa', '-out', key, '2048'], stderr=subprocess.DEVNULL)
            with open(tokens, 'w') as f:
                f.write(TOKEN + ',admin,admin,"system:masters"\n')
        self.log = os.path.join(folder, 'log')
        port = free_port()
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                [binary, '--etcd-servers', etcd.url, '--bind-address', '127.0.0.1', '--secure-port', str(port), '--cert-dir',
                 os.path.join(folder, 'certs'), '--token-auth-file', tokens, '--authorization-mode', 'RBAC',
                 *(flags or ('--service-cluster-ip-range', '10.0.0.0/24')), '--service-account-issuer', 'https://kubernetes.default.svc',
                 '--service-account-key-file', key, '--service-account-signing-key-file', key,
                 '--disable-admission-plugins', 'ServiceAccount,Priority'], stdout=log, stderr=log)
        self.api = Api(f'https://127.0.0.1:{port}')
        end = time.time() + 120
        while not self.ready():
            if self.process.poll() is not None or time.time() > end:
                with open(self.log, errors='replace') as log:
                    raise AssertionError('kube-apiserver did not start: ' + log.read()[-3000:])
            time.sleep(0.1)

    def ready(self):
        try:
            request = urllib.request.Request(self.api.url + '/readyz', headers={'Authorization': 'Bearer ' + TOKEN})
            with urllib.request.urlopen(request, context=INSECURE, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        # A graceful stop takes a minute.
        self.process.kill()
        self.process.wait()
