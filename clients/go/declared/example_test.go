package declared_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"holdfast.test/go/declared"
)

// Any server: the name is sent in the way that it knows.
func Example() {
	object, err := declared.In(coreapply.ConfigMap("settings", "default").WithData(map[string]string{"color": "red"}), "team-a")
	if err != nil {
		return
	}
	config := declared.Wrap(&rest.Config{Host: "https://127.0.0.1:6443"})
	maps := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	_, _ = maps.Namespace("default").Apply(context.Background(), object.GetName(), object, metav1.ApplyOptions{})
}
