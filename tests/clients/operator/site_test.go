package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func newSite(t *testing.T, ns, name string) *Site {
	t.Helper()
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: SiteSpec{Title: "Hello"}}
	if err := k8s.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	return site
}

func ready(ctx context.Context, key client.ObjectKey) error {
	var site Site
	if err := k8s.Get(ctx, key, &site); err != nil {
		return err
	}
	if site.Status.ObservedGeneration != site.Generation || !meta.IsStatusConditionTrue(site.Status.Conditions, "Ready") {
		return fmt.Errorf("not ready: %+v", site.Status)
	}
	return nil
}

func TestSiteBecomesAPageAndADeploymentThatItOwns(t *testing.T) {
	ctx, ns := t.Context(), space(t)
	site := newSite(t, ns, "blog")
	key := client.ObjectKeyFromObject(site)
	eventually(t, func() error { return ready(ctx, key) })
	var page corev1.ConfigMap
	if err := k8s.Get(ctx, key, &page); err != nil || page.Data["index.html"] != "<h1>Hello</h1>" {
		t.Fatal(err, page.Data)
	}
	var deployment appsv1.Deployment
	if err := k8s.Get(ctx, key, &deployment); err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(&deployment, site) || *deployment.Spec.Replicas != 1 {
		t.Fatalf("%+v", deployment)
	}

	// Deleted objects are recreated.
	if err := k8s.Delete(ctx, &page); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return k8s.Get(ctx, key, &corev1.ConfigMap{}) })

	// Changes are propagated.
	if err := k8s.Get(ctx, key, site); err != nil {
		t.Fatal(err)
	}
	before := site.DeepCopy()
	site.Spec.Title = "Hello again"
	if err := k8s.Patch(ctx, site, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := k8s.Get(ctx, key, &page); err != nil {
			return err
		}
		if page.Data["index.html"] != "<h1>Hello again</h1>" {
			return fmt.Errorf("still %q", page.Data)
		}
		return nil
	})
}

func TestPredicatesKeepLabelsFromWakingTheReconciler(t *testing.T) {
	ctx, ns := t.Context(), space(t)
	site := newSite(t, ns, "quiet")
	key := client.ObjectKeyFromObject(site)
	eventually(t, func() error { return ready(ctx, key) })
	touch := func(change func(*Site)) {
		t.Helper()
		eventually(t, func() error {
			if err := k8s.Get(ctx, key, site); err != nil {
				return err
			}
			change(site)
			return k8s.Update(ctx, site)
		})
	}
	// Wait until it is idle: events of owned objects arrive a little later.
	runs := int64(-1)
	eventually(t, func() error {
		if now := reconciler.Runs.Load(); now != runs {
			runs = now
			return fmt.Errorf("still busy")
		}
		return nil
	})
	touch(func(s *Site) { s.Labels = map[string]string{"a": "b"} })
	touch(func(s *Site) { s.Annotations = map[string]string{"a": "b"} })
	eventually(t, func() error {
		if reconciler.Runs.Load() == runs {
			return fmt.Errorf("the annotation was not seen")
		}
		return nil
	})
	if extra := reconciler.Runs.Load() - runs; extra > 2 {
		t.Fatalf("%d runs for one annotation", extra)
	}
}

func TestFinalizerRunsBeforeTheSiteGoes(t *testing.T) {
	ctx, ns := t.Context(), space(t)
	site := newSite(t, ns, "short-lived")
	key := client.ObjectKeyFromObject(site)
	eventually(t, func() error { return ready(ctx, key) })
	before := reconciler.Farewells.Load()
	if err := k8s.Delete(ctx, site); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return gone(ctx, key, &Site{}) })
	if reconciler.Farewells.Load() == before { // Twice, if its cache was behind and the update conflicted.
		t.Fatal("no farewell")
	}
	if os.Getenv("USE_EXISTING_CLUSTER") == "true" { // A control plane of envtest has no garbage collector.
		eventually(t, func() error { return gone(ctx, key, &corev1.ConfigMap{}) })
		eventually(t, func() error { return gone(ctx, key, &appsv1.Deployment{}) })
	}
}

func gone(ctx context.Context, key client.ObjectKey, into client.Object) error {
	if err := k8s.Get(ctx, key, into); !apierrors.IsNotFound(err) {
		return fmt.Errorf("still there (%v)", err)
	}
	return nil
}

func TestWebhooksFillInAndRefuse(t *testing.T) {
	ctx, ns := t.Context(), space(t)
	site := newSite(t, ns, "plain")
	if site.Spec.Image != "nginx:stable" {
		t.Fatalf("image %q", site.Spec.Image)
	}
	err := k8s.Create(ctx, &Site{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nameless"}, Spec: SiteSpec{Title: " "}})
	if err == nil || !strings.Contains(err.Error(), `admission webhook "rules.web.holdfast.test" denied the request: a site needs a title`) {
		t.Fatal(err)
	}
	warnings := &collected{}
	loud := rest.CopyConfig(config)
	loud.WarningHandler = warnings
	c, err := client.New(loud, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, &Site{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "loud"}, Spec: SiteSpec{Title: "NEWS"}}); err != nil {
		t.Fatal(err)
	}
	if len(warnings.texts) != 1 || warnings.texts[0] != "the title shouts" {
		t.Fatal(warnings.texts)
	}
}

type collected struct{ texts []string }

func (c *collected) HandleWarningHeader(_ int, _, text string) { c.texts = append(c.texts, text) }

func TestLeadershipPassesOn(t *testing.T) {
	ns := space(t)
	elect := func(name string, leads *atomic.Bool) (context.CancelFunc, chan error) {
		mgr, err := ctrl.NewManager(config, ctrl.Options{
			Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
			LeaderElection: true, LeaderElectionID: "site-operator", LeaderElectionNamespace: ns,
			LeaderElectionReleaseOnCancel: true,
			LeaseDuration:                 duration(4 * time.Second), RenewDeadline: duration(2 * time.Second), RetryPeriod: duration(100 * time.Millisecond),
		})
		if err != nil {
			t.Fatal(name, err)
		}
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			leads.Store(true)
			<-ctx.Done()
			leads.Store(false)
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		return stop, ended
	}
	var first, second atomic.Bool
	stopFirst, firstEnded := elect("first", &first)
	eventually(t, func() error { return leading(&first) })
	stopSecond, secondEnded := elect("second", &second)
	time.Sleep(300 * time.Millisecond)
	if second.Load() {
		t.Fatal("two leaders")
	}
	stopFirst()
	if err := <-firstEnded; err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return leading(&second) })
	stopSecond()
	if err := <-secondEnded; err != nil {
		t.Fatal(err)
	}
}

func leading(who *atomic.Bool) error {
	if !who.Load() {
		return fmt.Errorf("nobody leads")
	}
	return nil
}

func duration(d time.Duration) *time.Duration { return &d }
