// The same as informer_bench and calls_bench, with client-go: `main informer ENCODING HOW`, `main calls CALLS AT_ONCE`.
//
// HOW: keep managedFields; transform: remove them from each decoded object, as programs do today; optout: clients/go/optout.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"holdfast.test/go/optout"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func residentMB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	must(err)
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	must(err)
	return pages * float64(os.Getpagesize()) / 1e6
}

func config() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.QPS = -1
	return config
}

// The most memory that the process had at any time.
func peakMB() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Maxrss) * 1024 / 1e6
}

func informer(encoding, how string) {
	config := config()
	media := map[string]string{"json": "application/json", "cbor": "application/cbor", "protobuf": "application/vnd.kubernetes.protobuf"}[encoding]
	config.ContentType = media
	config.AcceptContentTypes = media
	if how == "optout" {
		var err error
		config, err = optout.Wrap(config)
		must(err)
	}
	client, err := kubernetes.NewForConfig(config)
	must(err)
	start, before := time.Now(), cpuSeconds()
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	if how == "transform" {
		must(pods.SetTransform(func(object any) (any, error) {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			return object, nil
		}))
	}
	stop := make(chan struct{})
	factory.Start(stop)
	if !cache.WaitForCacheSync(stop, pods.HasSynced) {
		must(fmt.Errorf("not synced"))
	}
	took, cpu := time.Since(start).Seconds(), cpuSeconds()-before
	runtime.GC()
	debug.FreeOSMemory()
	fmt.Printf("%d %.2f %.2f %.0f %.0f\n", len(pods.GetStore().ListKeys()), took, cpu, residentMB(), peakMB())
}

func calls(count, atOnce int) {
	config := config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	must(err)
	maps := client.CoreV1().ConfigMaps("default")
	for _, verb := range []string{"applies", "gets"} {
		var next, failed atomic.Int64
		start, before := time.Now(), cpuSeconds()
		var done sync.WaitGroup
		for number := range atOnce {
			done.Add(1)
			go func() {
				defer done.Done()
				name := fmt.Sprintf("bench-%d", number)
				for i := next.Add(1); i <= int64(count); i = next.Add(1) {
					var err error
					if verb == "gets" {
						_, err = maps.Get(context.Background(), name, metav1.GetOptions{})
					} else {
						configuration := applycore.ConfigMap(name, "default").WithData(map[string]string{"x": strconv.FormatInt(i, 10)})
						_, err = maps.Apply(context.Background(), configuration, metav1.ApplyOptions{FieldManager: "bench", Force: true})
					}
					if err != nil {
						failed.Add(1)
					}
				}
			}()
		}
		done.Wait()
		fmt.Printf("%s %.0f %.1f %d\n", verb, float64(count)/time.Since(start).Seconds(), (cpuSeconds()-before)/float64(count)*1e6, failed.Load())
	}
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "informer":
		informer(os.Args[2], os.Args[3])
	case len(os.Args) == 4 && os.Args[1] == "calls":
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		atOnce, err := strconv.Atoi(os.Args[3])
		must(err)
		calls(count, atOnce)
	default:
		must(fmt.Errorf("main informer ENCODING HOW | main calls CALLS AT_ONCE"))
	}
}
