package unset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"holdfast.test/go/unset"
)

// A field, a key of a map, and an item of a list.
func ExampleIn() {
	containers := unset.Field("spec", "template", "spec", "containers")
	marked, err := unset.In(appsapply.Deployment("web", "default"),
		unset.Field("spec", "minReadySeconds"),
		unset.Field("spec", "template", "metadata", "annotations", "example.com/legacy"),
		containers.Item("name", "web").Field("env").Item("name", "DEBUG"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := json.Marshal((*marked)["spec"])
	fmt.Println(string(text))
	// Output: {"minReadySeconds":{"k8s_io__value":"unset"},"template":{"metadata":{"annotations":{"example.com/legacy":{"k8s_io__value":"unset"}}},"spec":{"containers":[{"env":[{"k8s_io__value":"unset","name":"DEBUG"}],"name":"web"}]}}}
}

// With a typed clientset.
func ExampleApply() {
	ctx := context.Background()
	clients := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://127.0.0.1:6443"})
	marked, err := unset.In(coreapply.ConfigMap("settings", "default"), unset.Field("data", "legacy"))
	if err != nil {
		return
	}
	var result corev1.ConfigMap
	err = unset.Apply(ctx, clients.CoreV1().RESTClient(), "configmaps", marked, metav1.ApplyOptions{FieldManager: "me"}, &result)
	if errors.Is(err, unset.ErrUnsupported) {
		fmt.Println("remove the key with an update instead")
	}
}
