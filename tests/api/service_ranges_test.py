"""service_ranges_test.py HOLDFAST: cluster IPs of one and of two families, and ServiceCIDRs."""
import os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(__file__))
from serve import Server, check, finish, wait_until  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
MERGE = "application/merge-patch+json"
V4, V6 = "10.7.0.0/29", "2001:db8:1::/64"


class Local(Server):
    """Reached by the address that it listens on rather than by the one that it advertises."""

    def start(self, gates=""):
        super().start(gates)
        self.host = "127.0.0.1:" + self.host.rsplit(":", 1)[1]


def ranges(*cidrs, advertise="10.1.2.3"):
    return ["--service-cluster-ip-range=" + ",".join(cidrs), "--advertise-address=" + advertise,
            "--controllers=service-cidr-controller"]


def create(server, name, want=201, **spec):
    return server.json("POST", SERVICES, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}, want=want)


def ready(server, name):
    """The Ready condition of a ServiceCIDR that exists, as (status, reason)."""
    found = server.json("GET", f"{CIDRS}/{name}")
    if found["kind"] == "Status":
        return None
    conditions = found.get("status", {}).get("conditions", [])
    return next(((c["status"], c["reason"]) for c in conditions if c["type"] == "Ready"), ())


def two_families(binary):
    with Local(binary, flags=ranges(V6, V4, advertise="2001:db8:9::1")) as server:
        own = server.json("GET", SERVICES + "/kubernetes", want=200)["spec"]
        check(own["clusterIPs"] == ["2001:db8:1::1"] and own["ipFamilies"] == ["IPv6"], "the Service kubernetes has the first address")
        endpoints = server.json("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", want=200)
        check(endpoints["addressType"] == "IPv6" and endpoints["endpoints"][0]["addresses"] == ["2001:db8:9::1"], "its endpoints have the same family")
        check(server.json("GET", CIDRS + "/kubernetes")["spec"]["cidrs"] == [V6, V4], "the default ServiceCIDR has both ranges")
        one = create(server, "one")["spec"]
        check(one["ipFamilies"] == ["IPv6"] and one["ipFamilyPolicy"] == "SingleStack", "one family is the default")
        both = create(server, "both", ipFamilyPolicy="PreferDualStack", type="NodePort")["spec"]
        check(both["ipFamilies"] == ["IPv6", "IPv4"] and both["clusterIPs"][1].startswith("10.7.0."), "two families if preferred")
        check(both["clusterIP"] == both["clusterIPs"][0] and both["ports"][0]["nodePort"] >= 30000, "with a node port")
        v4 = create(server, "v4", ipFamilies=["IPv4"], type="LoadBalancer")["spec"]
        check(v4["clusterIP"].startswith("10.7.0."), "the second family alone")
        headless = create(server, "headless", clusterIP="None", ipFamilyPolicy="PreferDualStack", selector={"a": "b"})["spec"]
        check(headless["ipFamilies"] == ["IPv6", "IPv4"] and headless["clusterIPs"] == ["None"], "headless with two families")


def further_ranges(binary):
    with Local(binary, flags=ranges(V4)) as server:
        wait_until("the default ServiceCIDR is protected", lambda: server.json("GET", CIDRS + "/kubernetes")["metadata"].get("finalizers"))
        check(ready(server, "kubernetes") == ("True", ""), "and ready")
        for i in range(5):
            create(server, f"s{i}")
        check("range is full" in create(server, "full", want=500)["message"], "the first range is full")
        server.json("POST", CIDRS, {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.8.0.0/24"]}}, want=201)
        wait_until("the second ServiceCIDR is ready", lambda: ready(server, "more") == ("True", ""))
        address = create(server, "more")["spec"]["clusterIP"]
        check(address.startswith("10.8.0."), "addresses come from the second ServiceCIDR")

        server.json("DELETE", CIDRS + "/more", want=200)
        wait_until("it is held while an address is used", lambda: ready(server, "more") == ("False", "Terminating"))
        check(create(server, "none", want=422, clusterIP="10.8.0.77")["reason"] == "Invalid", "nothing is allocated from it any more")
        server.json("DELETE", SERVICES + "/more", want=200)
        wait_until("it is gone when the address is free", lambda: ready(server, "more") is None)

        # One that is part of another may go although its addresses are used.
        server.json("POST", CIDRS, {"metadata": {"name": "same"}, "spec": {"cidrs": [V4]}}, want=201)
        wait_until("an equal ServiceCIDR is ready", lambda: ready(server, "same") == ("True", ""))
        server.json("DELETE", CIDRS + "/same", want=200)
        wait_until("an equal ServiceCIDR is gone", lambda: ready(server, "same") is None)


def migration(binary):
    with Local(binary, flags=ranges(V4)) as server:
        before = create(server, "before")["spec"]["clusterIP"]
        server.given = server.given[:-3] + ranges(V4, V6)
        server.restart()
        check(server.json("GET", CIDRS + "/kubernetes")["spec"]["cidrs"] == [V4, V6], "the second family is added at the next start")
        check(server.json("GET", SERVICES + "/before")["spec"]["clusterIPs"] == [before], "addresses stay")
        upgraded = server.json("PATCH", SERVICES + "/before", {"spec": {"ipFamilyPolicy": "RequireDualStack"}}, want=200, content_type=MERGE)
        check(upgraded["spec"]["ipFamilies"] == ["IPv4", "IPv6"] and upgraded["spec"]["clusterIPs"][0] == before, "a Service gets the second family")
        server.given = server.given[:-3] + ranges(V6, V4, advertise="2001:db8:9::1")
        server.restart()
        check(server.json("GET", CIDRS + "/kubernetes")["spec"]["cidrs"] == [V4, V6], "other changes of the flag leave the ServiceCIDR as it is")
        check(server.json("GET", SERVICES + "/kubernetes")["spec"]["clusterIP"] == "10.7.0.1", "and the Service kubernetes")
        check("the default ServiceCIDR has other ranges" in server.text(), "with a warning")


def refused(binary):
    for flags, problem in (
            (ranges("10.0.0.0/24", "10.1.0.0/24"), "the two ranges must be of different IP families"),
            (ranges("10.0.0.0/30"), "must be at least 8 IP addresses"),
            (ranges(V6), 'service IP family "2001:db8:1::/64" must match public address family "10.1.2.3"')):
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
            ended = subprocess.run([binary, "serve", "--data-dir", folder, "--listen", "127.0.0.1:0", *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, timeout=60)
            check(ended.returncode != 0 and problem in ended.stdout, problem)


def main():
    for part in (two_families, further_ranges, migration, refused):
        part(sys.argv[1])
    finish()


if __name__ == "__main__":
    main()
