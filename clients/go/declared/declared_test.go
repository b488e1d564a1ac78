package declared

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const knowsOptions = `{"components":{"schemas":{"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"properties":{"name":{},"options":{}}}}}}`
const knowsNothing = `{"components":{"schemas":{"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"properties":{"name":{}}}}}}`

func server(t *testing.T, document string) (*rest.Config, *[]string) {
	var requests []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/openapi/v3/") {
			io.WriteString(w, document)
			return
		}
		requests = append(requests, r.Method+" "+r.URL.Query().Get("fieldManager")+" "+string(body))
		io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}, &requests
}

func TestIn(t *testing.T) {
	for _, object := range []any{
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		coreapply.ConfigMap("a", "x"),
		map[string]any{"kind": "ConfigMap"},
	} {
		declared, err := In(object, "team-a")
		if err != nil || Of(declared) != "team-a" || declared.GetKind() != "ConfigMap" {
			t.Errorf("%T: %v %v", object, declared, err)
		}
	}
	if _, err := In(map[string]any{}, ""); err == nil {
		t.Error("a manager without a name")
	}
	if _, err := In("text", "a"); err == nil {
		t.Error("text")
	}
}

func TestEveryWrite(t *testing.T) {
	ctx := context.Background()
	object, err := In(coreapply.ConfigMap("a", "x").WithData(map[string]string{"n": "1"}), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, document string
		inBody         bool
	}{{"a server that knows options", knowsOptions, true}, {"one that does not", knowsNothing, false}} {
		t.Run(test.name, func(t *testing.T) {
			config, requests := server(t, test.document)
			maps := dynamic.NewForConfigOrDie(Wrap(config)).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("x")
			writes := map[string]func() error{
				"create": func() error { _, err := maps.Create(ctx, object, metav1.CreateOptions{}); return err },
				"update": func() error { _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); return err },
				"apply":  func() error { _, err := maps.Apply(ctx, "a", object, metav1.ApplyOptions{}); return err },
				"patch": func() error {
					_, err := maps.Patch(ctx, "a", "application/merge-patch+json", []byte(`{"metadata":{"options":{"fieldManager":"team-a"}},"data":{"n":12345678901234567890}}`), metav1.PatchOptions{})
					return err
				},
				"apply of YAML": func() error {
					_, err := maps.Patch(ctx, "a", "application/apply-patch+yaml", []byte("metadata:\n  options: {fieldManager: team-a}\n"), metav1.PatchOptions{})
					return err
				},
			}
			for name, write := range writes {
				*requests = nil
				if err := write(); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				got := (*requests)[0]
				if strings.Contains(got, "options") != test.inBody || (strings.Split(got, " ")[1] == "team-a") == test.inBody {
					t.Errorf("%s: %s", name, got)
				}
				if name == "patch" && !strings.Contains(got, "12345678901234567890") {
					t.Errorf("%s: %s", name, got)
				}
			}
			// What declares nothing is not touched.
			*requests = nil
			if _, err := maps.Patch(ctx, "a", "application/json-patch+json", []byte(`[ {"op":"add","path":"/metadata/options","value":{"fieldManager":"x"}} ]`), metav1.PatchOptions{}); err != nil || !strings.Contains((*requests)[0], "[ {") {
				t.Error(err, *requests)
			}
		})
	}
	if Of(object) != "team-a" {
		t.Error("the object has changed")
	}
}

func TestFallbackRefusesContradictions(t *testing.T) {
	config, requests := server(t, knowsNothing)
	maps := dynamic.NewForConfigOrDie(Wrap(config)).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("x")
	object, _ := In(coreapply.ConfigMap("a", "x"), "team-a")
	if _, err := maps.Apply(context.Background(), "a", object, metav1.ApplyOptions{FieldManager: "somebody"}); err == nil || !strings.Contains(err.Error(), "team-a") {
		t.Error(err)
	}
	if _, err := maps.Apply(context.Background(), "a", object, metav1.ApplyOptions{FieldManager: "team-a"}); err != nil {
		t.Error(err)
	}
	object.Object["metadata"].(map[string]any)["options"].(map[string]any)["other"] = "x"
	if _, err := maps.Apply(context.Background(), "a", object, metav1.ApplyOptions{}); err == nil {
		t.Error("an unknown option is sent")
	}
	if len(*requests) != 1 {
		t.Error(*requests)
	}
}

func TestCBOR(t *testing.T) {
	config, requests := server(t, knowsNothing)
	wrapped := Wrap(config)
	body, err := direct.Marshal(map[string]any{"metadata": map[string]any{"options": map[string]any{"fieldManager": "team-a"}}, "data": map[string]any{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: wrapped.WrapTransport(http.DefaultTransport)}
	request, _ := http.NewRequest("PATCH", config.Host+"/api/v1/namespaces/x/configmaps/a", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/apply-patch+cbor")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	var got map[string]any
	parts := strings.SplitN((*requests)[0], " ", 3)
	if err := direct.Unmarshal([]byte(parts[2]), &got); err != nil || parts[1] != "team-a" || len(got["metadata"].(map[string]any)) != 0 {
		t.Error(got, err)
	}
}
