package unset

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestIn(t *testing.T) {
	container := func() *coreapply.ContainerApplyConfiguration {
		return coreapply.Container().WithName("web").WithEnv(coreapply.EnvVar().WithName("A").WithValue("b"))
	}
	deployment := appsapply.Deployment("web", "x").WithSpec(appsapply.DeploymentSpec().WithReplicas(2).WithTemplate(
		coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(container()))))
	web := Field("spec", "template", "spec", "containers").Item("name", "web")
	for _, test := range []struct {
		name  string
		paths []Path
		want  string // Of spec.
	}{
		{"a field that is not there", []Path{Field("spec", "minReadySeconds")},
			`{"minReadySeconds":{"k8s_io__value":"unset"},"replicas":2,"template":{"spec":{"containers":[{"env":[{"name":"A","value":"b"}],"name":"web"}]}}}`},
		{"a field that is set", []Path{Field("spec", "replicas"), Field("spec", "template")},
			`{"replicas":{"k8s_io__value":"unset"},"template":{"k8s_io__value":"unset"}}`},
		{"an item that is not there, and one that is", []Path{web.Field("env").Item("name", "DEBUG"), web.Field("env").Item("name", "A")},
			`{"replicas":2,"template":{"spec":{"containers":[{"env":[{"k8s_io__value":"unset","name":"A"},{"k8s_io__value":"unset","name":"DEBUG"}],"name":"web"}]}}}`},
		{"an item with two keys, one a number", []Path{Field("spec", "template"), Field("spec", "ports").Item("containerPort", 80, "protocol", "TCP")},
			`{"ports":[{"containerPort":80,"k8s_io__value":"unset","protocol":"TCP"}],"replicas":2,"template":{"k8s_io__value":"unset"}}`},
	} {
		marked, err := In(deployment, test.paths...)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal((*marked)["spec"])
		// The order of items is that of the paths.
		if string(got) != test.want && strings.ReplaceAll(string(got), `{"k8s_io__value":"unset","name":"DEBUG"},{"k8s_io__value":"unset","name":"A"}`,
			`{"k8s_io__value":"unset","name":"A"},{"k8s_io__value":"unset","name":"DEBUG"}`) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
		if *marked.GetKind() != "Deployment" || *marked.GetAPIVersion() != "apps/v1" || *marked.GetName() != "web" || *marked.GetNamespace() != "x" {
			t.Errorf("%s: %v", test.name, marked)
		}
	}
	// The configuration itself has not changed.
	if *deployment.Spec.Replicas != 2 || len(deployment.Spec.Template.Spec.Containers[0].Env) != 1 {
		t.Error(deployment)
	}
	again, err := In(Configuration{"kind": "X"}, Field("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := In(again, Field("b")); err != nil {
		t.Error(err)
	}
}

func TestElementsOfSets(t *testing.T) {
	finalizers := Field("metadata", "finalizers")
	config := coreapply.ConfigMap("a", "x").WithFinalizers("x.io/a", "x.io/b")
	marked, err := In(config, finalizers.Element("x.io/a"), finalizers.Element("x.io/c"), finalizers.Element("x.io/c"))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal((*marked)["metadata"].(map[string]any)["finalizers"])
	want := `["x.io/b",{"k8s_io__value":"unset","value":"x.io/a"},{"k8s_io__value":"unset","value":"x.io/c"}]`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if text := finalizers.Element("x.io/a").String(); text != `.metadata.finalizers[="x.io/a"]` {
		t.Error(text)
	}
}

func TestDataWithTheKeyOfMarkers(t *testing.T) {
	config := coreapply.ConfigMap("a", "x").WithData(map[string]string{MarkerKey: MarkerValue, "b": "c"})
	for _, test := range []struct {
		config any
		paths  []Path
		want   string // Of data.
	}{
		{config, nil, `{"b":"c","k8s_io__value":{"k8s_io__value":"unset"}}`},
		{config, []Path{Field("data", MarkerKey)}, `{"b":"c","k8s_io__value":{"k8s_io__value":{"k8s_io__value":"unset"}}}`},
		{coreapply.ConfigMap("a", "x"), []Path{Field("data", MarkerKey)}, `{"k8s_io__value":{"k8s_io__value":{"k8s_io__value":"unset"}}}`},
	} {
		marked, err := In(test.config, test.paths...)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // What has markers already stays as it is.
			if got, _ := json.Marshal((*marked)["data"]); string(got) != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if marked, err = In(marked, test.paths...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPathsThatMakeNoSense(t *testing.T) {
	config := Configuration{"kind": "X", "spec": map[string]any{"text": "a", "list": []any{"a"}, "map": map[string]any{}}}
	for _, test := range []struct {
		path Path
		want string
	}{
		{Field(), "starts with a field"},
		{Path{}.Item("a", "b"), "starts with a field"},
		{Field("spec", "text", "a"), "text is not a struct or map"},
		{Field("spec", "map").Item("a", "b"), "map is not a list"},
		{Field("spec", "list").Item("a", "b"), "items without keys"},
		{Field("spec", "new").Item("a"), "pairs"},
		{Field("spec", "new").Item(), "pairs"},
		{Field("spec", "new").Item(1, 2), "not the name of a key"},
		{Field("spec", "list").Element("a").Field("b"), "nothing is below"},
		{Path{}.Element("a"), "starts with a field"},
		{Field("spec", "map").Element("a"), "map is not a list"},
		{Field("spec", "new").Item("a", "b").Item("c", "d"), "follows the name of its list"},
	} {
		if _, err := In(config, test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.path, err, test.want)
		}
	}
	if _, err := In(config, Field("spec", "a"), Field("spec", "a", "b")); err == nil {
		t.Error("a marker below a marker")
	}
	if _, err := In(&corev1.ConfigMap{}, Field("data")); err == nil {
		t.Error("an object instead of a configuration")
	}
	if got := Field("a").Item("n", "x", "p", 1).Field("b").String(); got != `.a[n="x",p=1].b` {
		t.Error(got)
	}
}

// server has OpenAPI documents with or without markers and records the bodies it gets.
func server(t *testing.T, document string, code int) (*rest.Config, *[]string) {
	var requests []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/prefix/openapi/v3/") {
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(401)
				return
			}
			w.WriteHeader(code)
			io.WriteString(w, document)
			return
		}
		io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL + "/prefix", BearerToken: "secret"}, &requests
}

const knowsMarkers = `{"paths":{"/api/v1/x":{"patch":{"requestBody":{"content":{"application/apply-patch+yaml":{"x-kubernetes-unset-marker":{}}}}}}}}`

func TestMarkersAreSentOnlyWhereTheyAreUnderstood(t *testing.T) {
	ctx := context.Background()
	options := metav1.ApplyOptions{FieldManager: "me", Force: true}
	marked, err := In(coreapply.ConfigMap("a", "x"), Field("data", "legacy"))
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := In(coreapply.ConfigMap("a", "x"))
	for _, test := range []struct {
		name, document string
		code           int
		understood     bool
	}{
		{"a server with markers", knowsMarkers, 200, true},
		{"a server without", `{"paths":{}}`, 200, false},
		{"a server without a document", `{}`, 404, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, requests := server(t, test.document, test.code)
			clients := kubernetes.NewForConfigOrDie(config)
			dynamics := dynamic.NewForConfigOrDie(Wrap(config)).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("x")
			apply := map[string]func(c *Configuration) error{
				"Apply": func(c *Configuration) error {
					return Apply(ctx, clients.CoreV1().RESTClient(), "configmaps", c, options, &corev1.ConfigMap{})
				},
				"Wrap": func(c *Configuration) error {
					_, err := dynamics.Apply(ctx, "a", c.Unstructured(), options)
					return err
				},
			}
			for how, do := range apply {
				if err := do(plain); err != nil {
					t.Errorf("%s without markers: %v", how, err)
				}
				if len(*requests) != 1 {
					t.Errorf("%s without markers asks for support: %v", how, *requests)
				}
				*requests = nil
				for range 2 {
					if err := do(marked); errors.Is(err, ErrUnsupported) == test.understood || err != nil && test.understood {
						t.Errorf("%s: %v", how, err)
					}
				}
				asked, sent := 0, 0
				for _, request := range *requests {
					if strings.HasPrefix(request, "GET /prefix/openapi/v3/api/v1") {
						asked++
					} else if strings.HasPrefix(request, "PATCH /prefix/api/v1/namespaces/x/configmaps/a") && strings.Contains(request, `"legacy":{"k8s_io__value":"unset"}`) {
						sent++
					}
				}
				if asked != 1 || (sent == 2) != test.understood || len(*requests) != asked+sent {
					t.Errorf("%s: %v", how, *requests)
				}
				*requests = nil
			}
		})
	}
	config, requests := server(t, "", 500)
	if err := Apply(ctx, kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient(), "configmaps", marked, options, &corev1.ConfigMap{}); err == nil || errors.Is(err, ErrUnsupported) {
		t.Error("a server that cannot be asked: ", err)
	}
	for _, request := range *requests {
		if strings.HasPrefix(request, "PATCH") {
			t.Error(request)
		}
	}
}
