package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"holdfast.test/go/optout"
)

// define makes a kind of its own for a test, with any content.
func define(t *testing.T, s server, group string) schema.GroupVersionResource {
	t.Helper()
	definitions := must(dynamic.NewForConfig(in(s.config, "application/json")))(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var content map[string]any
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "sheets.%[1]s"},
		"spec": {"group": %[1]q, "scope": "Namespaced", "names": {"plural": "sheets", "kind": "Sheet"}, "versions": [{"name": "v1", "served": true, "storage": true,
		"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`, group)), &content); err != nil {
		t.Fatal(err)
	}
	must(definitions.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		definitions.Delete(context.Background(), "sheets."+group, metav1.DeleteOptions{})
	})
	sheets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "sheets"}
	client := must(dynamic.NewForConfig(in(s.config, "application/json")))(t).Resource(sheets)
	eventually(t, "the kind is served", func() bool {
		_, err := client.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return sheets
}

// Objects with fields that look like those of Tables and metadata, with one field and with several to leave out.
func TestCustomResources(t *testing.T) {
	onAll(t, func(t *testing.T, s server, namespace string) {
		sheets := define(t, s, namespace+".example.com")
		client := must(dynamic.NewForConfig(in(s.config, "application/json")))(t).Resource(sheets).Namespace(namespace)
		inner := map[string]any{"metadata": map[string]any{"managedFields": "kept"}}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": sheets.GroupVersion().String(), "kind": "Sheet", "metadata": map[string]any{"name": "a"},
			"rows": []any{map[string]any{"object": inner}}, "secret": "x", "spec": map[string]any{"secret": "y", "size": int64(3)},
		}}
		// The kind is served a moment before its objects can be made.
		var err error
		eventually(t, "objects can be made", func() bool {
			_, err = client.Create(t.Context(), object.DeepCopy(), metav1.CreateOptions{})
			return err == nil || !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, media := range []string{"application/json", "application/cbor"} {
			for _, fields := range [][]string{{optout.ManagedFields}, {optout.ManagedFields, "secret", "spec.secret"}, {"secret"}} {
				t.Run(media+" "+strings.Join(fields, " "), func(t *testing.T) {
					config := must(optout.Wrap(in(s.config, media), fields...))(t)
					dropping := must(dynamic.NewForConfig(config))(t)
					check := func(how string, got *unstructured.Unstructured) {
						t.Helper()
						want := object.DeepCopy()
						for _, field := range fields {
							unstructured.RemoveNestedField(want.Object, strings.Split(field, ".")...)
						}
						_, owned, _ := unstructured.NestedFieldNoCopy(got.Object, "metadata", "managedFields")
						if owned == strings.Contains(strings.Join(fields, " "), optout.ManagedFields) || got.GetUID() == "" {
							t.Errorf("%s: %v", how, got)
						}
						for _, field := range []string{"rows", "secret", "spec"} {
							if fmt.Sprint(got.Object[field]) != fmt.Sprint(want.Object[field]) {
								t.Errorf("%s: %s is %v instead of %v", how, field, got.Object[field], want.Object[field])
							}
						}
					}
					resource := dropping.Resource(sheets).Namespace(namespace)
					check("get", must(resource.Get(t.Context(), "a", metav1.GetOptions{}))(t))
					check("list", &must(resource.List(t.Context(), metav1.ListOptions{}))(t).Items[0])
					check("patch", must(resource.Patch(t.Context(), "a", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}))(t))
					informer := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dropping, 0, namespace, nil).ForResource(sheets).Informer()
					go informer.Run(t.Context().Done())
					eventually(t, "the informer has the object", func() bool { return len(informer.GetStore().ListKeys()) == 1 })
					check("informer", informer.GetStore().List()[0].(*unstructured.Unstructured))
				})
			}
		}
	})
}
