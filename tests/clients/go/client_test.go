// client-go against a running server: as used by controllers, operators and Helm.
package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/wait"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func config(t *testing.T) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	c.QPS, c.Burst = 1000, 1000
	return c
}

// A separate namespace for each test, and its deadline.
func space(t *testing.T, client kubernetes.Interface) (context.Context, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}, metav1.CreateOptions{})
	must(t, err)
	return ctx, ns.Name
}

func eventually(t *testing.T, ctx context.Context, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func configMap(name string, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}, Data: map[string]string{"k": data}}
}

func TestSharedInformersFollowInEveryEncoding(t *testing.T) {
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"} {
		t.Run(encoding, func(t *testing.T) {
			c := config(t)
			c.ContentType, c.AcceptContentTypes = encoding, encoding+",application/json"
			if encoding == "application/cbor" {
				c.ContentType = "application/json"
			}
			client := kubernetes.NewForConfigOrDie(c)
			ctx, ns := space(t, client)
			maps := client.CoreV1().ConfigMaps(ns)
			for i := 0; i < 5; i++ {
				_, err := maps.Create(ctx, configMap(fmt.Sprintf("before-%d", i), "x"), metav1.CreateOptions{})
				must(t, err)
			}

			factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
			lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(ns)
			deleted := make(chan string, 10)
			_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				DeleteFunc: func(obj any) { deleted <- obj.(*corev1.ConfigMap).Name },
			})
			must(t, err)
			factory.Start(ctx.Done())
			for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
				if !synced {
					t.Fatalf("%v did not sync", kind)
				}
			}
			known, err := lister.List(labels.SelectorFromSet(labels.Set{"app": "web"}))
			must(t, err)
			if len(known) != 5 {
				t.Fatalf("the informer began with %d objects", len(known))
			}

			_, err = maps.Create(ctx, configMap("after", "1"), metav1.CreateOptions{})
			must(t, err)
			err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
				live, err := maps.Get(ctx, "after", metav1.GetOptions{})
				if err != nil {
					return err
				}
				live.Data["k"] = "2"
				_, err = maps.Update(ctx, live, metav1.UpdateOptions{})
				return err
			})
			must(t, err)
			eventually(t, ctx, "the update arrives", func() bool {
				seen, err := lister.Get("after")
				return err == nil && seen.Data["k"] == "2" && len(seen.ManagedFields) == 1
			})
			must(t, maps.Delete(ctx, "after", metav1.DeleteOptions{}))
			if name := <-deleted; name != "after" {
				t.Fatalf("%s was deleted", name)
			}
		})
	}
}

func TestAStaleUpdateIsAConflict(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(config(t))
	ctx, ns := space(t, client)
	first, err := client.CoreV1().ConfigMaps(ns).Create(ctx, configMap("c", "1"), metav1.CreateOptions{})
	must(t, err)
	second := first.DeepCopy()
	second.Data["k"] = "2"
	_, err = client.CoreV1().ConfigMaps(ns).Update(ctx, second, metav1.UpdateOptions{})
	must(t, err)
	first.Data["k"] = "3"
	if _, err = client.CoreV1().ConfigMaps(ns).Update(ctx, first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("not a conflict: %v", err)
	}
	if _, err = client.CoreV1().ConfigMaps(ns).Create(ctx, configMap("c", "1"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("not already there: %v", err)
	}
	if _, err = client.CoreV1().ConfigMaps(ns).Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("found: %v", err)
	}
}

func TestTheDynamicClientAndDiscovery(t *testing.T) {
	c := config(t)
	client, dyn := kubernetes.NewForConfigOrDie(c), dynamic.NewForConfigOrDie(c)
	ctx, ns := space(t, client)

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(c)))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	must(t, err)
	if mapping.Resource.Resource != "deployments" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Fatalf("mapped to %v", mapping)
	}

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dyn, 0, ns, nil)
	informer := factory.ForResource(configMaps)
	informer.Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "made-"}, "data": map[string]any{"k": "v"}}}
	made, err := dyn.Resource(configMaps).Namespace(ns).Create(ctx, object, metav1.CreateOptions{FieldManager: "dyn"})
	must(t, err)
	eventually(t, ctx, "the dynamic informer sees it", func() bool {
		_, err := informer.Lister().ByNamespace(ns).Get(made.GetName())
		return err == nil
	})
	patched, err := dyn.Resource(configMaps).Namespace(ns).Patch(ctx, made.GetName(), types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/data/k","value":"w"}]`), metav1.PatchOptions{})
	must(t, err)
	if got, _, _ := unstructured.NestedString(patched.Object, "data", "k"); got != "w" {
		t.Fatalf("patched to %q", got)
	}

	// Pages of one list, at one revision.
	for i := 0; i < 7; i++ {
		_, err := client.CoreV1().ConfigMaps(ns).Create(ctx, configMap(fmt.Sprintf("page-%d", i), "x"), metav1.CreateOptions{})
		must(t, err)
	}
	names, options := []string{}, metav1.ListOptions{Limit: 3, LabelSelector: "app=web"}
	for {
		page, err := dyn.Resource(configMaps).Namespace(ns).List(ctx, options)
		must(t, err)
		for _, item := range page.Items {
			names = append(names, item.GetName())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	if len(names) != 7 {
		t.Fatalf("pages had %v", names)
	}
	must(t, dyn.Resource(configMaps).Namespace(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}))
	rest, err := dyn.Resource(configMaps).Namespace(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	must(t, err)
	if len(rest.Items) != 0 {
		t.Fatalf("%d are left", len(rest.Items))
	}
}

func TestOneLeaderAtATime(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(config(t))
	ctx, ns := space(t, client)
	elected := make(chan string, 2)
	elect := func(ctx context.Context, name string) {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, ns, "leader", client.CoreV1(), client.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: name})
		must(t, err)
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { elected <- name }, OnStoppedLeading: func() {}},
		})
	}
	first, stop := context.WithCancel(ctx)
	elect(first, "first")
	if name := <-elected; name != "first" {
		t.Fatalf("%s leads", name)
	}
	elect(ctx, "second")
	lease, err := client.CoordinationV1().Leases(ns).Get(ctx, "leader", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.HolderIdentity != "first" {
		t.Fatalf("the lease is held by %s", *lease.Spec.HolderIdentity)
	}
	stop()
	if name := <-elected; name != "second" {
		t.Fatalf("%s leads", name)
	}
}

func deployment(replicas int32, image string) *appsapply.DeploymentApplyConfiguration {
	set := map[string]string{"app": "web"}
	return appsapply.Deployment("web", "").WithSpec(appsapply.DeploymentSpec().WithReplicas(replicas).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(set)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(set).WithSpec(coreapply.PodSpec().
			WithContainers(coreapply.Container().WithName("main").WithImage(image)))))
}

func TestApplyConfigurationsOwnTheirFields(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(config(t))
	ctx, ns := space(t, client)
	deployments := client.AppsV1().Deployments(ns)
	mine := deployment(2, "web:1")
	mine.Namespace = &ns
	made, err := deployments.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "alice"})
	must(t, err)

	extracted, err := appsapply.ExtractDeployment(made, "alice")
	must(t, err)
	if *extracted.Spec.Replicas != 2 || *extracted.Spec.Template.Spec.Containers[0].Image != "web:1" || extracted.Spec.RevisionHistoryLimit != nil {
		t.Fatalf("extracted %+v", extracted.Spec)
	}

	theirs := appsapply.Deployment("web", ns).WithSpec(appsapply.DeploymentSpec().WithReplicas(5))
	_, err = deployments.Apply(ctx, theirs, metav1.ApplyOptions{FieldManager: "bob"})
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Fatalf("not a conflict: %v", err)
	}
	_, err = deployments.Apply(ctx, theirs, metav1.ApplyOptions{FieldManager: "bob", Force: true})
	must(t, err)
	mine.Spec.Replicas = nil
	after, err := deployments.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "alice"})
	must(t, err)
	if *after.Spec.Replicas != 5 {
		t.Fatalf("%d replicas", *after.Spec.Replicas)
	}

	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	must(t, err)
	scale.Spec.Replicas = 7
	_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	must(t, err)
	status := appsapply.Deployment("web", ns).WithStatus(appsapply.DeploymentStatus().WithReplicas(7).WithObservedGeneration(3))
	scaled, err := deployments.ApplyStatus(ctx, status, metav1.ApplyOptions{FieldManager: "controller"})
	must(t, err)
	if *scaled.Spec.Replicas != 7 || scaled.Status.Replicas != 7 {
		t.Fatalf("scaled to %d, reported %d", *scaled.Spec.Replicas, scaled.Status.Replicas)
	}
}

// The operations of Helm: releases in Secrets found by labels, objects created or three-way patched, old ones deleted.
func TestAReleaseAsHelmMakesIt(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(config(t))
	ctx, ns := space(t, client)
	deployments, secrets := client.AppsV1().Deployments(ns), client.CoreV1().Secrets(ns)
	set := map[string]string{"app": "web"}
	chart := func(image string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: set},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}},
		}
	}
	store := func(version int, status string, manifest any) {
		var packed bytes.Buffer
		plain, err := json.Marshal(manifest)
		must(t, err)
		writer := gzip.NewWriter(&packed)
		_, err = writer.Write(plain)
		must(t, err)
		must(t, writer.Close())
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.web.v%d", version),
				Labels: map[string]string{"owner": "helm", "name": "web", "status": status, "version": fmt.Sprint(version)}},
			Type: "helm.sh/release.v1",
			Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
		}, metav1.CreateOptions{FieldManager: "Helm"})
		must(t, err)
	}

	original := chart("web:1", 1)
	_, err := deployments.Create(ctx, original, metav1.CreateOptions{FieldManager: "Helm"})
	must(t, err)
	store(1, "deployed", original)

	// Another client adds a sidecar; the upgrade keeps it.
	_, err = deployments.Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"side:1"}]}}}}`), metav1.PatchOptions{})
	must(t, err)
	live, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	must(t, err)
	upgraded := chart("web:2", 3)
	encode := func(value any) []byte {
		data, err := json.Marshal(value)
		must(t, err)
		return data
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	must(t, err)
	patch, err := strategicpatch.CreateThreeWayMergePatch(encode(original), encode(upgraded), encode(live), lookup, true)
	must(t, err)
	patched, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "Helm"})
	must(t, err)
	images := map[string]string{}
	for _, container := range patched.Spec.Template.Spec.Containers {
		images[container.Name] = container.Image
	}
	if *patched.Spec.Replicas != 3 || images["main"] != "web:2" || images["sidecar"] != "side:1" {
		t.Fatalf("%d replicas of %v", *patched.Spec.Replicas, images)
	}
	store(2, "deployed", upgraded)
	_, err = secrets.Patch(ctx, "sh.helm.release.v1.web.v1", types.MergePatchType, []byte(`{"metadata":{"labels":{"status":"superseded"}}}`), metav1.PatchOptions{})
	must(t, err)

	releases, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=web,status=deployed"})
	must(t, err)
	if len(releases.Items) != 1 || releases.Items[0].Labels["version"] != "2" {
		t.Fatalf("deployed: %d releases", len(releases.Items))
	}
	packed, err := base64.StdEncoding.DecodeString(string(releases.Items[0].Data["release"]))
	must(t, err)
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	plain, err := io.ReadAll(reader)
	must(t, err)
	if !bytes.Equal(plain, encode(upgraded)) {
		t.Fatal("the release came back changed")
	}
	background := metav1.DeletePropagationBackground
	must(t, deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &background}))
	must(t, secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm"}))
}
