// Package e2e tests optout, unset and declared with client-go and controller-runtime on running servers.
//
// HOLDFAST_BINARY names the server to start: with its defaults, and with the gate off that drops fields. HOLDFAST_OTHER_SERVERS
// names more servers, as NAME=KUBECONFIG separated by commas: a kube-apiserver must pass the same tests, and a server of nothing
// but custom resources those of custom resources.
package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type server struct {
	name   string
	config *rest.Config
	// Whether it is a Holdfast, with unset markers and metadata.options.
	holdfast bool
	// It has no built-in kinds, and takes any namespace.
	customOnly bool
}

var servers []server

func TestMain(m *testing.M) {
	// client-go reads it when it is first used.
	os.Setenv("KUBE_FEATURE_ClientsAllowCBOR", "true")
	code, stops := 0, []func(){}
	if binary := os.Getenv("HOLDFAST_BINARY"); binary != "" {
		for name, flags := range map[string][]string{
			"holdfast":                                  nil,
			"holdfast that drops nothing":               {"--feature-gates=ManagedFieldsOptOut=false"},
			"holdfast that drops any":                   {"--feature-gates=DropAnyField=true"},
			"holdfast with the rule of Kubernetes 1.38": {"--strict-drop"},
		} {
			config, stop, err := start(binary, flags...)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
				break
			}
			stops = append(stops, stop)
			servers = append(servers, server{name: name, config: config, holdfast: true})
		}
	}
	for _, other := range strings.Split(os.Getenv("HOLDFAST_OTHER_SERVERS"), ",") {
		if name, path, ok := strings.Cut(other, "="); ok {
			config, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
				break
			}
			servers = append(servers, server{name: name, config: config})
		}
	}
	if code == 0 {
		code = m.Run()
	}
	for _, stop := range stops {
		stop()
	}
	os.Exit(code)
}

func start(binary string, flags ...string) (*rest.Config, func(), error) {
	folder, err := os.MkdirTemp("", "holdfast-go-")
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, nil, err
	}
	command := exec.Command(binary, append([]string{"serve", "--data-dir", folder, "--listen", "127.0.0.1:0"}, flags...)...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	stop := func() {
		command.Process.Signal(os.Interrupt)
		<-ended
		os.RemoveAll(folder)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if info, err := os.Stat(kubeconfig); err == nil && info.Size() > 0 {
			break
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			return nil, nil, fmt.Errorf("the server ended: %w\n%s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return nil, nil, fmt.Errorf("the server did not become ready")
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return config, stop, err
}

// onEach runs a test of built-in kinds on each server, in a new namespace.
func onEach(t *testing.T, test func(t *testing.T, s server, namespace string)) {
	onAll(t, func(t *testing.T, s server, namespace string) {
		if s.customOnly {
			t.Skip("the server has only custom resources")
		}
		test(t, s, namespace)
	})
}

// onAll runs a test on each server, in a new namespace.
func onAll(t *testing.T, test func(t *testing.T, s server, namespace string)) {
	if len(servers) == 0 {
		t.Skip("neither HOLDFAST_BINARY nor HOLDFAST_OTHER_SERVERS is set")
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			config := rest.CopyConfig(s.config)
			config.QPS = -1
			s.config = config
			namespace := "go-" + strings.ToLower(rand.Text()[:8])
			clients := kubernetes.NewForConfigOrDie(config)
			if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); apierrors.IsNotFound(err) {
				s.customOnly = true
			} else if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				clients.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
			})
			test(t, s, namespace)
		})
	}
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// eventually waits until a condition holds; what describes it if it does not.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: ", what)
		}
	}
}
