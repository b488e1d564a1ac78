#!/usr/bin/env python3
"""bootstrap_tokens_test.py HOLDFAST: authentication by bootstrap tokens, and the first certificate of a node."""
import base64, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import access_helper  # noqa: E402
from check import check, finish, run_parts  # noqa: E402

SECRETS = "/api/v1/namespaces/kube-system/secrets"
ID, SECRET = "07401b", "f395accd246ae52d"
TOKEN = f"{ID}.{SECRET}"
# What makes a token valid. A case changes one of these; None removes it.
VALID = {"token-id": ID, "token-secret": SECRET, "usage-bootstrap-authentication": "true"}


def secret(type="bootstrap.kubernetes.io/token", **data):
    data = {key.replace("_", "-"): value for key, value in data.items()}
    texts = {key: value for key, value in {**VALID, **data}.items() if value is not None}
    return {"metadata": {"name": "bootstrap-token-" + ID}, "type": type, "stringData": texts}


def who_is(users, token):
    """The user of a token, or None if it is refused."""
    answer = users.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    if answer.code == 401:
        return None
    user = answer.json["status"]["userInfo"]
    return user["username"], user["groups"]


def only_valid_tokens_are_accepted(users):
    default = ["system:bootstrappers", "system:authenticated"]
    more = ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:z-1:b", "system:authenticated"]
    cases = [
        ("a token", {}, default),
        ("extra groups, sorted and without duplicates", {"auth_extra_groups": "system:bootstrappers:z-1:b,system:bootstrappers:a,system:bootstrappers:a"}, more),
        ("a token that has not expired", {"expiration": "2200-01-01T00:00:00Z"}, default),
        ("an expired token", {"expiration": "2020-01-01T00:00:00Z"}, None),
        ("an unreadable expiry", {"expiration": "tomorrow"}, None),
        ("a token for other uses", {"usage_bootstrap_authentication": None}, None),
        ("another value of its use", {"usage_bootstrap_authentication": "True"}, None),
        ("another secret", {"token_secret": "f395accd246ae52e"}, None),
        ("a shorter secret", {"token_secret": "f395"}, None),
        ("another id", {"token_id": "07401c"}, None),
        ("a group outside of the bootstrappers", {"auth_extra_groups": "system:masters"}, None),
        ("a group that ends in a dash", {"auth_extra_groups": "system:bootstrappers:a-"}, None),
        ("a group without a name", {"auth_extra_groups": "system:bootstrappers:"}, None),
        ("another type of Secret", {"type": "Opaque"}, None),
    ]
    for what, change, groups in cases:
        users.made(SECRETS, secret(**change))
        # The Secret is in the cache as soon as it can be read there.
        users.when(lambda: users.admin("GET", f"{SECRETS}/bootstrap-token-{ID}?resourceVersion=0").code == 200)
        expected = groups and ("system:bootstrap:" + ID, groups)
        found = who_is(users, TOKEN)
        check(found == expected, what, found)
        assert users.admin("DELETE", f"{SECRETS}/bootstrap-token-{ID}").code == 200
        users.when(lambda: who_is(users, TOKEN) is None)
    for token in (f"{ID}.{SECRET}a", f"{ID}-{SECRET}", TOKEN.upper(), f"{ID}.", "."):
        check(who_is(users, token) is None, f"the token {token} is refused")


def secrets_elsewhere_are_ignored(users):
    users.made("/api/v1/namespaces/default/secrets", secret())
    users.when(lambda: users.admin("GET", f"/api/v1/namespaces/default/secrets/bootstrap-token-{ID}?resourceVersion=0").code == 200)
    check(who_is(users, TOKEN) is None, "a Secret in another namespace is not a bootstrap token")


def reviews_know_bootstrap_tokens(users):
    users.made(SECRETS, secret())
    users.when(lambda: who_is(users, TOKEN) is not None)
    review = lambda spec: users.admin("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": TOKEN, **spec}}).json["status"]
    found = review({})
    check(found.get("user", {}).get("username") == "system:bootstrap:" + ID, "a TokenReview names the user", found)
    check(not review({"audiences": ["others"]}).get("authenticated"), "the token is valid for this server only")


def a_node_asks_for_its_certificate(users):
    """As kubeadm sets it up: bootstrappers may create requests, which a controller approves and signs."""
    binding = {"metadata": {"name": "kubeadm:kubelet-bootstrap"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}]}
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{folder}/key",
                               "-subj", "/O=system:nodes/CN=system:node:n1"], capture_output=True, check=True)
    request = {"metadata": {"name": "node-csr"},
               "spec": {"request": base64.b64encode(made.stdout).decode(), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                        "usages": ["digital signature", "client auth"]}}
    ask = lambda: users.call("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", request, token=TOKEN)
    refused = ask()
    check(refused.code == 403 and f'User "system:bootstrap:{ID}" cannot create resource' in refused.message, "a token grants nothing by itself", refused.message)
    users.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    users.when(lambda: ask().code in (201, 409))
    made = users.admin("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests/node-csr").json
    check(made["spec"]["username"] == "system:bootstrap:" + ID and "system:bootstrappers" in made["spec"]["groups"], "the request names the token", made["spec"])


def with_server(flags, use):
    server = access_helper.start(sys.argv[1], "--controllers=none", *flags)
    try:
        use(access_helper.Users(server))
    finally:
        server.stop()


def tokens_need_the_flag(users):
    users.made(SECRETS, secret())
    users.when(lambda: users.admin("GET", f"{SECRETS}/bootstrap-token-{ID}?resourceVersion=0").code == 200)
    check(who_is(users, TOKEN) is None, "bootstrap tokens are refused unless the flag is given")


def main():
    parts = [only_valid_tokens_are_accepted, secrets_elsewhere_are_ignored, reviews_know_bootstrap_tokens, a_node_asks_for_its_certificate]
    with_server(["--enable-bootstrap-token-auth=true"], lambda users: run_parts(users, parts))
    with_server([], tokens_need_the_flag)
    finish()


if __name__ == "__main__":
    main()
