package apipath

import "testing"

func TestParse(t *testing.T) {
	for _, test := range []struct {
		path, prefix string
		want         Path
		ok           bool
	}{
		{"/api/v1/pods", "", Path{Version: "v1", Resource: "pods"}, true},
		{"/api/v1/namespaces", "", Path{Version: "v1", Resource: "namespaces"}, true},
		{"/api/v1/namespaces/x", "", Path{Version: "v1", Resource: "namespaces", Name: "x"}, true},
		{"/api/v1/namespaces/x/status", "", Path{Version: "v1", Resource: "namespaces", Name: "x", Subresource: "status"}, true},
		{"/api/v1/namespaces/x/pods", "", Path{Version: "v1", Resource: "pods"}, true},
		{"/api/v1/namespaces/x/pods/a", "", Path{Version: "v1", Resource: "pods", Name: "a"}, true},
		{"/apis/apps/v1/namespaces/x/deployments/a/scale", "", Path{Group: "apps", Version: "v1", Resource: "deployments", Name: "a", Subresource: "scale"}, true},
		{"/clusters/api/apis/apps/v1/deployments", "/clusters/api/", Path{Group: "apps", Version: "v1", Resource: "deployments"}, true},
		{"/api/v1/watch/namespaces/x/pods", "", Path{Version: "v1", Resource: "pods", Watch: true}, true},
		{"/api/v1", "", Path{}, false},
		{"/apis/apps/v1", "", Path{}, false},
		{"/apis", "", Path{}, false},
		{"/version", "", Path{}, false},
		{"/openapi/v3/apis/apps/v1", "", Path{}, false},
		{"/api/v1/namespaces/x/pods/a/log", "", Path{}, false},
		{"/api/v1/namespaces/x/services/a/proxy", "", Path{}, false},
		{"/api/v1/namespaces/x/services/a/proxy/api/v1/pods", "", Path{}, false},
		{"/api/v1/pods", "/prefix", Path{}, false},
	} {
		got, ok := Parse(test.path, test.prefix)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s below %q: got %+v %v, want %+v %v", test.path, test.prefix, got, ok, test.want, test.ok)
		}
	}
}
