package operator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// The suite as the usual scaffolding makes it. KUBEBUILDER_ASSETS chooses the control plane, USE_EXISTING_CLUSTER=true
// with KUBECONFIG a running one.
var (
	env        *envtest.Environment
	config     *rest.Config
	scheme     = runtime.NewScheme()
	k8s        client.Client
	reconciler *Reconciler
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true), zap.Level(zapLevel())))
	must(clientgoscheme.AddToScheme(scheme))
	must(AddToScheme(scheme))
	env = &envtest.Environment{
		Scheme:                scheme,
		CRDDirectoryPaths:     []string{filepath.Join("config", "crd.yaml")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("config", "webhooks.yaml")}},
	}
	begin := time.Now()
	var err error
	config, err = env.Start()
	must(err)
	fmt.Printf("envtest set-up: %d ms\n", time.Since(begin).Milliseconds())
	defer func() {
		begin := time.Now()
		must(env.Stop())
		fmt.Printf("envtest tear-down: %d ms\n", time.Since(begin).Milliseconds())
	}()
	k8s, err = client.New(config, client.Options{Scheme: scheme})
	must(err)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    env.WebhookInstallOptions.LocalServingHost,
			Port:    env.WebhookInstallOptions.LocalServingPort,
			CertDir: env.WebhookInstallOptions.LocalServingCertDir,
		}),
	})
	must(err)
	reconciler = &Reconciler{Client: mgr.GetClient()}
	must(reconciler.SetupWithManager(mgr))
	must(Hooks{}.SetupWithManager(mgr))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for mgr.GetWebhookServer().StartedChecker()(nil) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	code := m.Run()
	stop()
	must(<-ended)
	return code
}

func zapLevel() zapcore.Level {
	if os.Getenv("VERBOSE") != "" {
		return -4
	}
	return 2 // Errors alone.
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// eventually waits until check has nothing to complain about.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// space makes a namespace for one test.
func space(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "site-"}}
	if err := k8s.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}
