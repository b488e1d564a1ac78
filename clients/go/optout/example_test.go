package optout_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"holdfast.test/go/optout"
)

// Informers of a clientset that opts out.
func Example() {
	original, err := clientcmd.BuildConfigFromFlags("", clientcmd.RecommendedHomeFile)
	if err != nil {
		return
	}
	config, err := optout.Wrap(original)
	if err != nil {
		return
	}
	clients := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(clients, 0)
	pods := factory.Core().V1().Pods().Lister()
	factory.Start(context.Background().Done())
	factory.WaitForCacheSync(context.Background().Done())
	_ = pods
}

// One call that reads ownership.
func ExampleKeep() {
	config, err := optout.Wrap(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		return
	}
	clients := kubernetes.NewForConfigOrDie(config)
	deployment, err := clients.AppsV1().Deployments("default").Get(optout.Keep(context.Background()), "web", metav1.GetOptions{})
	if err != nil {
		return
	}
	fmt.Println(len(deployment.ManagedFields))
}

// Names of fields are checked.
func ExampleWrap() {
	_, err := optout.Wrap(&rest.Config{}, optout.ManagedFields, "metadata.name")
	fmt.Println(err)
	// Output: optout: metadata.name cannot be left out: it identifies the object
}
