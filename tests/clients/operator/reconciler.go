package operator

import (
	"context"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const Finalizer = "web.holdfast.test/farewell"

// Reconciler creates the objects of a Site, reads through the manager's cache, and runs a finalizer before a Site is deleted.
type Reconciler struct {
	client.Client
	Farewells atomic.Int64
	Runs      atomic.Int64
}

func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	skip := true // Several managers in one test process use the same name.
	return ctrl.NewControllerManagedBy(mgr).
		For(&Site{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{SkipNameValidation: &skip}).
		Named("site").
		Complete(r)
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.Runs.Add(1)
	var site Site
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.ContainsFinalizer(&site, Finalizer) {
			r.Farewells.Add(1)
			controllerutil.RemoveFinalizer(&site, Finalizer)
			return ctrl.Result{}, r.Update(ctx, &site)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&site, Finalizer) {
		if err := r.Update(ctx, &site); err != nil {
			return ctrl.Result{}, err
		}
	}

	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"index.html": fmt.Sprintf("<h1>%s</h1>", site.Spec.Title)}
		return controllerutil.SetControllerReference(&site, page, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}

	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrPatch(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"site": site.Name}
		deployment.Spec.Replicas = site.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
		}
		image := site.Spec.Image
		if image == "" {
			image = "nginx:1"
		}
		deployment.Spec.Template.Spec.Containers[0].Image = image
		return controllerutil.SetControllerReference(&site, deployment, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}

	before := site.DeepCopy()
	site.Status.ObservedGeneration = site.Generation
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", Message: "page and deployment are there",
		ObservedGeneration: site.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, &site, client.MergeFrom(before))
}
