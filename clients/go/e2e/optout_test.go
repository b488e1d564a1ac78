package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.test/go/optout"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

var encodings = []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"}

func in(config *rest.Config, media string) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.ContentType, copied.AcceptContentTypes = media, media
	if media != "application/json" {
		copied.AcceptContentTypes += ",application/json"
	}
	return copied
}

// informer makes an informer over the config maps of a namespace, with each kind of client.
func informer(t *testing.T, kind string, config *rest.Config, namespace string) cache.SharedIndexInformer {
	t.Helper()
	switch kind {
	case "typed":
		factory := informers.NewSharedInformerFactoryWithOptions(must(kubernetes.NewForConfig(config))(t), 0, informers.WithNamespace(namespace))
		return factory.Core().V1().ConfigMaps().Informer()
	case "dynamic":
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(must(dynamic.NewForConfig(config))(t), 0, namespace, nil)
		return factory.ForResource(configMaps).Informer()
	default:
		factory := metadatainformer.NewFilteredSharedInformerFactory(must(metadata.NewForConfig(config))(t), 0, namespace, nil)
		return factory.ForResource(configMaps).Informer()
	}
}

func TestInformers(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		for _, kind := range []string{"typed", "dynamic", "metadata"} {
			for _, media := range encodings {
				if kind == "typed" && media == "application/cbor" || kind == "dynamic" && strings.Contains(media, "protobuf") {
					continue // Not offered by client-go.
				}
				t.Run(kind+" "+media, func(t *testing.T) {
					clients := must(kubernetes.NewForConfig(s.config))(t).CoreV1().ConfigMaps(namespace)
					name := kind + "-" + media[len(media)-4:]
					for i := range 3 {
						config := coreapply.ConfigMap(fmt.Sprintf("%s-%d", name, i), namespace).WithData(map[string]string{"k": "v"})
						must(clients.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "e2e", Force: true}))(t)
					}
					config := in(s.config, media)
					dropping := informer(t, kind, must(optout.Wrap(config))(t), namespace)
					keeping := informer(t, kind, config, namespace)
					go dropping.Run(t.Context().Done())
					go keeping.Run(t.Context().Done())
					if !cache.WaitForCacheSync(t.Context().Done(), dropping.HasSynced, keeping.HasSynced) {
						t.Fatal("not synced")
					}
					// One from a list, one that is changed, one that is new.
					must(clients.Patch(t.Context(), name+"-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}))(t)
					must(clients.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-new"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{}))(t)
					for _, which := range []cache.SharedIndexInformer{dropping, keeping} {
						var objects []metav1.Object
						eventually(t, "the informer has every object", func() bool {
							objects = nil
							changed := false
							for _, object := range which.GetStore().List() {
								accessor := must(meta.Accessor(object))(t)
								if strings.HasPrefix(accessor.GetName(), name+"-") {
									objects = append(objects, accessor)
									changed = changed || accessor.GetLabels()["x"] == "y"
								}
							}
							return len(objects) == 4 && changed
						})
						for _, object := range objects {
							if (object.GetManagedFields() == nil) != (which == dropping) {
								t.Errorf("%s: %v", object.GetName(), object.GetManagedFields())
							}
							if object.GetUID() == "" || object.GetResourceVersion() == "" {
								t.Errorf("%v lost more than it should", object)
							}
						}
					}
					for _, object := range dropping.GetStore().List() {
						if u, ok := object.(*unstructured.Unstructured); ok {
							if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields"); found {
								t.Error("the key is still there")
							}
						}
					}
				})
			}
		}
	})
}

func TestEveryVerb(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		ctx := t.Context()
		for _, media := range encodings[:2] {
			config := in(s.config, media)
			clients := must(kubernetes.NewForConfig(must(optout.Wrap(config))(t)))(t).CoreV1().ConfigMaps(namespace)
			original := must(kubernetes.NewForConfig(config))(t).CoreV1().ConfigMaps(namespace)
			check := func(verb string, object *corev1.ConfigMap, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", verb, err)
				}
				if object.ManagedFields != nil || object.Name != "verbs" || object.UID == "" {
					t.Errorf("%s: %v", verb, object)
				}
			}
			object, err := clients.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "verbs"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{FieldManager: "creator"})
			check("create", object, err)
			object.Data["a"] = "c"
			object, err = clients.Update(ctx, object, metav1.UpdateOptions{FieldManager: "updater"})
			check("update", object, err)
			object, err = clients.Patch(ctx, "verbs", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x"]}}`), metav1.PatchOptions{})
			check("patch", object, err)
			object, err = clients.Apply(ctx, coreapply.ConfigMap("verbs", namespace).WithData(map[string]string{"x": "y"}), metav1.ApplyOptions{FieldManager: "applier"})
			check("apply", object, err)
			object, err = clients.Get(ctx, "verbs", metav1.GetOptions{})
			check("get", object, err)
			list, err := clients.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				t.Fatal(err)
			}
			for i := range list.Items {
				if list.Items[i].ManagedFields != nil {
					t.Error("list: ", list.Items[i].Name)
				}
			}
			// One call can keep ownership, and the server has all of it: writing a stripped object resets nothing.
			object, err = clients.Get(optout.Keep(ctx), "verbs", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			managers := map[string]bool{}
			for _, entry := range object.ManagedFields {
				managers[entry.Manager] = true
			}
			if !managers["creator"] && !managers["updater"] || !managers["applier"] {
				t.Error("ownership was lost: ", managers)
			}
			if err := original.Delete(ctx, "verbs", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			must(original.Patch(ctx, "verbs", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
		}
	})
}

func TestTables(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		wrapped := must(kubernetes.NewForConfig(must(optout.Wrap(s.config))(t)))(t).CoreV1()
		must(wrapped.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{}))(t)
		original := must(kubernetes.NewForConfig(s.config))(t).CoreV1()
		read := func(client rest.Interface, more string) string {
			text := must(client.Get().AbsPath("/api/v1/namespaces", namespace, "configmaps"+more).Param("includeObject", "Object").
				SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").Do(t.Context()).Raw())(t)
			var table metav1.Table
			if err := json.Unmarshal(text, &table); err != nil || table.Kind != "Table" || len(table.Rows) == 0 {
				t.Fatal(err, string(text))
			}
			return string(text)
		}
		for _, more := range []string{"", "/a"} {
			if !strings.Contains(read(original.RESTClient(), more), "managedFields") {
				t.Error("the original has no managedFields either")
			}
			if text := read(wrapped.RESTClient(), more); strings.Contains(text, "managedFields") {
				t.Error(text)
			}
		}
	})
}

func TestMoreFields(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		maps := must(kubernetes.NewForConfig(s.config))(t).CoreV1().ConfigMaps(namespace)
		must(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "m"}}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{}))(t)
		for _, media := range encodings[:2] {
			config := must(optout.Wrap(in(s.config, media), optout.ManagedFields, "data"))(t)
			clients := must(kubernetes.NewForConfig(config))(t).CoreV1().ConfigMaps(namespace)
			object := must(clients.Get(t.Context(), "a", metav1.GetOptions{}))(t)
			if object.ManagedFields != nil || object.Data != nil || object.Labels["l"] != "m" {
				t.Errorf("%s: %v", media, object)
			}
			if _, err := clients.Update(t.Context(), object, metav1.UpdateOptions{}); err == nil {
				t.Error("an update that deletes data is sent")
			}
			list := informer(t, "typed", config, namespace)
			go list.Run(t.Context().Done())
			eventually(t, "the informer has the object", func() bool { return len(list.GetStore().ListKeys()) > 0 })
			for _, object := range list.GetStore().List() {
				if object := object.(*corev1.ConfigMap); object.Data != nil || object.ManagedFields != nil {
					t.Errorf("%s: %v", media, object)
				}
			}
		}
	})
}

func TestControllerRuntime(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		config := must(optout.Wrap(s.config))(t)
		objects := must(crcache.New(config, crcache.Options{DefaultNamespaces: map[string]crcache.Config{namespace: {}}}))(t)
		client := must(crclient.New(config, crclient.Options{Cache: &crclient.CacheOptions{Reader: objects}}))(t)
		done := make(chan error, 1)
		go func() { done <- objects.Start(ctx) }()
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace}, Data: map[string]string{"k": "v"}}
		if err := client.Create(ctx, made); err != nil || made.ManagedFields != nil {
			t.Fatal(err, made)
		}
		read := &corev1.ConfigMap{}
		eventually(t, "the cache has the object", func() bool {
			return client.Get(ctx, crclient.ObjectKeyFromObject(made), read) == nil
		})
		if read.ManagedFields != nil || read.Data["k"] != "v" {
			t.Error(read)
		}
		read.Data["k"] = "w"
		if err := client.Update(ctx, read); err != nil || read.ManagedFields != nil {
			t.Error(err, read)
		}
		eventually(t, "the cache has the update", func() bool {
			return client.Get(ctx, crclient.ObjectKeyFromObject(made), read) == nil && read.Data["k"] == "w"
		})
		if read.ManagedFields != nil {
			t.Error(read)
		}
		partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		eventually(t, "the cache has the metadata", func() bool {
			return client.Get(ctx, crclient.ObjectKeyFromObject(made), partial) == nil
		})
		if partial.ManagedFields != nil || partial.UID == "" {
			t.Error(partial)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
