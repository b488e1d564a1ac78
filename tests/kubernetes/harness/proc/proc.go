// Package proc runs an API server as a separate process, for tests that were written to run one in their own process.
//
//	HOLDFAST_INTEG_SERVER   the program: any kube-apiserver, or Holdfast under that name
//	HOLDFAST_INTEG_KIND     holdfast (default) or kube: selects additional flags
//	HOLDFAST_INTEG_STORE    embedded (default) or etcd: where Holdfast keeps its data
//	HOLDFAST_INTEG_LOGS     directory for the servers' logs
package proc

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// Token authenticates the administrator, like the loopback client of an in-process server.
const Token = "holdfast-integ-loopback-token"

type Options struct {
	Name       string // Name of the test, used for the log file.
	Logf       func(format string, args ...interface{})
	TmpDir     string
	Port       int
	CertFile   string
	KeyFile    string
	EtcdURL    []string
	EtcdPrefix string
	Flags      []string // Additional flags of kube-apiserver.
	Tokens     []string // Lines for the token file.
	SkipHealth bool
}

type Server struct {
	Config *rest.Config
	Stop   func()
}

var count atomic.Int64
var odd = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// Flags that Start sets, or that have no meaning for a separate process.
var own = map[string]bool{"etcd-servers": true, "etcd-prefix": true, "secure-port": true, "bind-address": true, "cert-dir": true, "tls-cert-file": true,
	"tls-private-key-file": true, "feature-gates": true, "emulated-version": true, "min-compatibility-version": true, "token-auth-file": true,
	"external-hostname": true, "etcd-cafile": true, "etcd-certfile": true, "etcd-keyfile": true, "permit-port-sharing": true,
	// Only known to a standalone apiextensions-apiserver.
	"authentication-kubeconfig": true, "authorization-kubeconfig": true, "authentication-skip-lookup": true, "kubeconfig": true,
	"authentication-tolerate-lookup-failure": true, "authorization-always-allow-paths": true, "authorization-webhook-cache-authorized-ttl": true,
	"authorization-webhook-cache-unauthorized-ttl": true, "authentication-token-webhook-cache-ttl": true, "standalone-debugging-mode": true}

// Flags returns the flags in `now` that differ from their defaults.
func Flags(now, defaults *pflag.FlagSet) (flags []string, tokenFile string) {
	now.VisitAll(func(f *pflag.Flag) {
		d := defaults.Lookup(f.Name)
		if d != nil && d.Value.String() == f.Value.String() {
			return
		}
		if f.Name == "token-auth-file" {
			tokenFile = f.Value.String()
		}
		if own[f.Name] {
			return
		}
		if slice, ok := f.Value.(pflag.SliceValue); ok {
			if f.Value.Type() == "stringArray" {
				for _, v := range slice.GetSlice() {
					flags = append(flags, "--"+f.Name+"="+v)
				}
			} else {
				flags = append(flags, "--"+f.Name+"="+strings.Join(slice.GetSlice(), ","))
			}
			return
		}
		flags = append(flags, "--"+f.Name+"="+f.Value.String())
	})
	return flags, tokenFile
}

// Gates returns flags for the feature gates of this process that differ from their defaults.
func Gates() []string {
	var gates, flags []string
	gate := utilfeature.DefaultMutableFeatureGate
	for name, spec := range gate.GetAll() {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		if gate.Enabled(name) != spec.Default {
			gates = append(gates, fmt.Sprintf("%s=%v", name, gate.Enabled(name)))
		}
	}
	sort.Strings(gates)
	if len(gates) > 0 {
		flags = append(flags, "--feature-gates="+strings.Join(gates, ","))
	}
	return append(flags, emulated(gate)...)
}

func emulated(gate featuregate.MutableVersionedFeatureGate) []string {
	binary := basecompatibility.NewEffectiveVersionFromString(os.Getenv("HOLDFAST_INTEG_VERSION"), "", "")
	if os.Getenv("HOLDFAST_INTEG_VERSION") == "" || gate.EmulationVersion() == nil {
		return nil
	}
	e := gate.EmulationVersion()
	if e.Major() == binary.BinaryVersion().Major() && e.Minor() == binary.BinaryVersion().Minor() {
		return nil
	}
	return []string{fmt.Sprintf("--emulated-version=kube=%d.%d", e.Major(), e.Minor())}
}

// Start runs the server until Stop, and returns when it is ready.
func Start(o Options) (*Server, error) {
	for i := 0; ; i++ {
		server, err := start(o)
		if err == nil || i == 10 || !strings.Contains(err.Error(), "ddress already in use") {
			return server, err
		}
		time.Sleep(time.Second) // The port was free when the test chose it, but an outgoing connection uses it now.
	}
}

func start(o Options) (*Server, error) {
	program := os.Getenv("HOLDFAST_INTEG_SERVER")
	if program == "" {
		return nil, fmt.Errorf("HOLDFAST_INTEG_SERVER names no program")
	}
	holdfast := os.Getenv("HOLDFAST_INTEG_KIND") != "kube"
	tokens := filepath.Join(o.TmpDir, "tokens.csv")
	lines := append([]string{Token + `,system:apiserver,` + "7e0c4a70-0000-4000-8000-000000000001" + `,"system:masters"`}, o.Tokens...)
	if err := os.WriteFile(tokens, []byte(strings.Join(lines, "\n")+"\n"), 0600); err != nil {
		return nil, err
	}
	args := []string{"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", o.Port), "--cert-dir=" + o.TmpDir, "--token-auth-file=" + tokens}
	if o.CertFile != "" {
		args = append(args, "--tls-cert-file="+o.CertFile, "--tls-private-key-file="+o.KeyFile)
	}
	if holdfast && os.Getenv("HOLDFAST_INTEG_STORE") != "etcd" {
		// Servers with the same etcd and prefix share their data.
		sum := sha256.Sum256([]byte(strings.Join(o.EtcdURL, ",") + "|" + o.EtcdPrefix))
		args = append(args, fmt.Sprintf("--data-dir=%s/holdfast-integ-%d/%x", os.TempDir(), os.Getpid(), sum[:8]), "--unsafe-no-fsync=true")
	} else {
		args = append(args, "--etcd-servers="+strings.Join(o.EtcdURL, ","), "--etcd-prefix=/"+strings.Trim(o.EtcdPrefix, "/")) // kube-apiserver adds the slash itself; Holdfast requires it.
	}
	if holdfast {
		args = append(args, "--shutdown-grace-seconds=2", "--threads=2")
	} else {
		args = append(args, "--v=2")
	}
	if !strings.Contains(strings.Join(o.Flags, " "), "--authorization-") {
		args = append(args, "--authorization-mode=AlwaysAllow") // kube-apiserver's default.
	}
	args = append(args, o.Flags...)
	args = append(args, Gates()...)

	logs := os.Getenv("HOLDFAST_INTEG_LOGS")
	if logs == "" {
		logs = o.TmpDir
	}
	logName := filepath.Join(logs, fmt.Sprintf("%s.%d.log", odd.ReplaceAllString(o.Name, "_"), count.Add(1)))
	log, err := os.Create(logName)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "%s %s\n", program, strings.Join(args, " "))
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: 0}
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		log.Close()
		close(ended)
	}()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
			case <-time.After(4 * time.Second):
				cmd.Process.Kill()
				<-ended
			}
		})
	}
	o.Logf("integ: %s (pid %d): %s", program, cmd.Process.Pid, strings.Join(args, " "))

	url := fmt.Sprintf("https://127.0.0.1:%d", o.Port)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ok := func(path string) bool {
		req, _ := http.NewRequestWithContext(context.Background(), "GET", url+path, nil)
		req.Header.Set("Authorization", "Bearer "+Token)
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	}
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		select {
		case <-ended:
			text, _ := os.ReadFile(logName)
			if len(text) > 3000 {
				text = text[len(text)-3000:]
			}
			return nil, fmt.Errorf("integ: the server ended: %s", text)
		default:
		}
		if (o.SkipHealth || ok("/healthz")) && ok("/api/v1/namespaces/default") && (o.SkipHealth || ok("/api/v1/namespaces/kube-system")) {
			break
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("integ: the server is not ready; see %s", logName)
		}
	}
	config := &rest.Config{Host: url, BearerToken: Token, QPS: 1000, Burst: 10000, DisableCompression: true}
	config.ContentConfig.ContentType = "application/vnd.kubernetes.protobuf"
	if o.CertFile != "" {
		ca, err := os.ReadFile(o.CertFile)
		if err != nil {
			stop()
			return nil, err
		}
		config.TLSClientConfig.CAData = ca
		if block, _ := pem.Decode(ca); block != nil { // The certificate may be valid for the advertised address only.
			if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.VerifyHostname("127.0.0.1") != nil {
				config.TLSClientConfig.ServerName = "kubernetes.default.svc"
			}
		}
	} else {
		config.TLSClientConfig.Insecure = true
	}
	return &Server{Config: config, Stop: stop}, nil
}
