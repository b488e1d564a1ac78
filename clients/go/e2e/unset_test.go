package e2e

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.test/go/declared"
	"holdfast.test/go/unset"
)

func owned(object metav1.Object, manager, path string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && strings.Contains(string(entry.FieldsV1.Raw), path) {
			return true
		}
	}
	return false
}

func TestUnset(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		ctx := t.Context()
		clients := must(kubernetes.NewForConfig(s.config))(t)
		maps := clients.CoreV1().ConfigMaps(namespace)
		must(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"legacy": "1", "kept": "2"}}, metav1.CreateOptions{FieldManager: "old"}))(t)
		options := metav1.ApplyOptions{FieldManager: "me", Force: true}
		guarded := unset.Wrap(s.config)
		// controller-runtime takes only JSON as the response to an apply, also where client-go may accept CBOR.
		controller := must(crclient.New(in(guarded, "application/json"), crclient.Options{}))(t)
		config := func() *unset.Configuration {
			return must(unset.In(coreapply.ConfigMap("a", namespace), unset.Field("data", "legacy")))(t)
		}
		for how, apply := range map[string]func() error{
			"Apply": func() error {
				return unset.Apply(ctx, clients.CoreV1().RESTClient(), "configmaps", config(), options, &corev1.ConfigMap{})
			},
			"the dynamic client": func() error {
				_, err := must(dynamic.NewForConfig(guarded))(t).Resource(configMaps).Namespace(namespace).Apply(ctx, "a", config().Unstructured(), options)
				return err
			},
			"controller-runtime": func() error {
				return controller.Apply(ctx, config(), crclient.FieldOwner("me"), crclient.ForceOwnership)
			},
			"controller-runtime, unstructured": func() error {
				return controller.Apply(ctx, crclient.ApplyConfigurationFromUnstructured(config().Unstructured()), crclient.FieldOwner("me"), crclient.ForceOwnership)
			},
		} {
			err := apply()
			object := must(maps.Get(ctx, "a", metav1.GetOptions{}))(t)
			if s.holdfast {
				if _, there := object.Data["legacy"]; err != nil || there || object.Data["kept"] != "2" || !owned(object, "me", `"f:legacy"`) {
					t.Errorf("%s: %v %v", how, err, object)
				}
				must(maps.Apply(ctx, coreapply.ConfigMap("a", namespace), options))(t)
				must(maps.Patch(ctx, "a", "application/merge-patch+json", []byte(`{"data":{"legacy":"1"}}`), metav1.PatchOptions{FieldManager: "old"}))(t)
			} else if !errors.Is(err, unset.ErrUnsupported) || object.Data["legacy"] != "1" {
				t.Errorf("%s: %v %v", how, err, object)
			}
		}
		if !s.holdfast {
			return
		}
		labels := map[string]string{"app": "web"}
		container := coreapply.Container().WithName("web").WithImage("web:1").WithEnv(coreapply.EnvVar().WithName("DEBUG").WithValue("1"), coreapply.EnvVar().WithName("KEPT").WithValue("2"))
		deployment := func() *appsapply.DeploymentApplyConfiguration {
			return appsapply.Deployment("web", namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(3).
				WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(container))))
		}
		must(clients.AppsV1().Deployments(namespace).Apply(ctx, deployment(), metav1.ApplyOptions{FieldManager: "old"}))(t)
		marked := must(unset.In(appsapply.Deployment("web", namespace),
			unset.Field("spec", "template", "spec", "containers").Item("name", "web").Field("env").Item("name", "DEBUG"),
			unset.Field("spec", "replicas")))(t)
		result := &appsv1.Deployment{}
		if err := unset.Apply(ctx, clients.AppsV1().RESTClient(), "deployments", marked, metav1.ApplyOptions{FieldManager: "me"}, result); !apierrors.IsConflict(err) {
			t.Error("no conflict with the owner: ", err)
		}
		if err := unset.Apply(ctx, clients.AppsV1().RESTClient(), "deployments", marked, options, result); err != nil {
			t.Fatal(err)
		}
		if env := result.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "KEPT" || *result.Spec.Replicas != 1 {
			t.Error(result.Spec)
		}
	})
}

func TestDeclared(t *testing.T) {
	onEach(t, func(t *testing.T, s server, namespace string) {
		ctx := t.Context()
		maps := must(kubernetes.NewForConfig(s.config))(t).CoreV1().ConfigMaps(namespace)
		config := declared.Wrap(s.config)
		resource := must(dynamic.NewForConfig(config))(t).Resource(configMaps).Namespace(namespace)
		controller := must(crclient.New(in(config, "application/json"), crclient.Options{}))(t)
		object := func(name string) *unset.Configuration {
			return must(unset.In(coreapply.ConfigMap(name, namespace).WithData(map[string]string{name: "x"})))(t)
		}
		for name, write := range map[string]func(name string) error{
			"create": func(name string) error {
				_, err := resource.Create(ctx, must(declared.In(object(name), "team-a"))(t), metav1.CreateOptions{FieldValidation: "Strict"})
				return err
			},
			"apply": func(name string) error {
				_, err := resource.Apply(ctx, name, must(declared.In(object(name), "team-a"))(t), metav1.ApplyOptions{})
				return err
			},
			"controller-runtime": func(name string) error {
				return controller.Apply(ctx, crclient.ApplyConfigurationFromUnstructured(must(declared.In(object(name), "team-a"))(t)))
			},
		} {
			if err := write(name); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			written := must(maps.Get(ctx, name, metav1.GetOptions{}))(t)
			if !owned(written, "team-a", `"f:`+name+`"`) || len(written.ManagedFields) != 1 {
				t.Errorf("%s: %v", name, written.ManagedFields)
			}
		}
	})
}
