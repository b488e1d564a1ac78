// load sends requests to any Kubernetes API server and prints one line per measurement, with the CPU time and memory of
// the server's process. It uses only the standard library.
//
//	load -server URL -token T -pid PID [flags] apply|get|delete|list|watch
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	server = flag.String("server", "", "")
	token  = flag.String("token", "", "")
	certF  = flag.String("cert", "", "")
	keyF   = flag.String("key", "", "")
	pid    = flag.Int("pid", 0, "server process, for CPU seconds and RSS")
	n      = flag.Int("n", 2000, "operations")
	conc   = flag.Int("c", 32, "concurrency")
	w      = flag.Int("w", 200, "watchers")
	accept = flag.String("accept", "application/json", "")
	mix    = flag.String("mix", "", "second Accept, used by half of the watchers")
	file   = flag.String("object", "", "JSON object template for apply; NAME is replaced")
	path   = flag.String("path", "/api/v1/namespaces/default/configmaps", "")
	query  = flag.String("query", "", "")
	repeat = flag.Int("repeat", 3, "")
	http1  = flag.Bool("http1", false, "")
	ns     = flag.String("ns", "default", "")
)

func newClient() *http.Client {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 4096, ForceAttemptHTTP2: !*http1, DisableCompression: true}
	if *certF != "" {
		c, err := tls.LoadX509KeyPair(*certF, *keyF)
		if err != nil {
			panic(err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{c}
	}
	return &http.Client{Transport: t}
}

func req(m, p string, body []byte, ct string) *http.Request {
	r, err := http.NewRequest(m, *server+p, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	if *token != "" {
		r.Header.Set("Authorization", "Bearer "+*token)
	}
	r.Header.Set("User-Agent", "load")
	r.Header.Set("Accept", *accept)
	if ct != "" {
		r.Header.Set("Content-Type", ct)
	}
	return r
}

func cpu() float64 {
	if *pid == 0 {
		return 0
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", *pid))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	u, _ := strconv.ParseFloat(f[11], 64)
	s, _ := strconv.ParseFloat(f[12], 64)
	return (u + s) / 100
}

func rss() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", *pid))
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "VmRSS") {
			return strings.Join(strings.Fields(l)[1:], "")
		}
	}
	return "?"
}

func do(c *http.Client, r *http.Request) (int, []byte) {
	resp, err := c.Do(r)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	return resp.StatusCode, b
}

func pct(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[int(float64(len(d)-1)*p)]
}

// each runs f for n operations at the given concurrency and prints throughput and latency.
func each(what string, f func(c *http.Client, i int) int) {
	var lat []time.Duration
	var mu sync.Mutex
	var next int64 = -1
	bad := map[int]int{}
	c0, t0 := cpu(), time.Now()
	var wg sync.WaitGroup
	cl := newClient()
	for g := 0; g < *conc; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(atomic.AddInt64(&next, 1))
				if i >= *n {
					return
				}
				s := time.Now()
				code := f(cl, i)
				d := time.Since(s)
				mu.Lock()
				lat = append(lat, d)
				if code >= 300 {
					bad[code]++
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	el := time.Since(t0)
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	fmt.Printf("%s n=%d c=%d ops/s=%.0f p50=%v p99=%v cpu/op=%.0fus rss=%s bad=%v\n", what, *n, *conc, float64(*n)/el.Seconds(), pct(lat, .5).Round(10*time.Microsecond), pct(lat, .99).Round(10*time.Microsecond), (cpu()-c0)*1e6/float64(*n), rss(), bad)
}

func object(i int) []byte {
	if *file != "" {
		b, err := os.ReadFile(*file)
		if err != nil {
			panic(err)
		}
		return bytes.ReplaceAll(b, []byte("NAME"), []byte(fmt.Sprintf("load-%d", i)))
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"load-%d"},"data":{"a":"1","b":"2","c":"3"}}`, i))
}

func main() {
	flag.Parse()
	cmd := flag.Arg(0)
	switch cmd {
	case "apply": // create by apply, change by a second manager, re-apply as a no-op
		for _, st := range []struct{ what, mgr, old, new string }{{"apply-create", "m1", "", ""}, {"apply-noop", "m1", "", ""}, {"apply-change", "m1", `"1"`, `"9"`}} {
			st := st
			each(st.what, func(c *http.Client, i int) int {
				b := object(i)
				if st.old != "" {
					b = bytes.Replace(b, []byte(st.old), []byte(st.new), 1)
				}
				code, _ := do(c, req("PATCH", fmt.Sprintf("%s/load-%d?fieldManager=%s&force=true", *path, i, st.mgr), b, "application/apply-patch+yaml"))
				return code
			})
		}
	case "delete":
		each("delete", func(c *http.Client, i int) int {
			code, _ := do(c, req("DELETE", fmt.Sprintf("%s/load-%d", *path, i), nil, ""))
			return code
		})
	case "get":
		each("get", func(c *http.Client, i int) int {
			code, _ := do(c, req("GET", fmt.Sprintf("%s/load-%d", *path, i%100), nil, ""))
			return code
		})
	case "list":
		c := newClient()
		for r := 0; r < *repeat; r++ {
			c0, t0 := cpu(), time.Now()
			resp, err := c.Do(req("GET", *path+"?"+*query, nil, ""))
			if err != nil {
				panic(err)
			}
			nb, err := io.Copy(io.Discard, resp.Body)
			if err != nil {
				panic(err)
			}
			el := time.Since(t0)
			fmt.Printf("list %s %s code=%d bytes=%d time=%v MB/s=%.0f cpu=%.2fs rss=%s\n", *path, *accept, resp.StatusCode, nb, el.Round(time.Millisecond), float64(nb)/1e6/el.Seconds(), cpu()-c0, rss())
		}
	case "watch": // w watchers on path; n merge-patches on one object; every watcher must see all
		c := newClient()
		do(c, req("PATCH", *path+"/load-0?fieldManager=m1&force=true", object(0), "application/apply-patch+yaml"))
		code, lb := do(c, req("GET", *path+"?limit=1", nil, ""))
		var l struct{ Metadata struct{ ResourceVersion string } }
		if err := json.Unmarshal(lb, &l); err != nil || code != 200 {
			panic(fmt.Sprint(code, err))
		}
		var seen, total int64
		var wg sync.WaitGroup
		var ready sync.WaitGroup
		cls := []*http.Client{}
		for i := 0; i < (*w+99)/100; i++ {
			cls = append(cls, newClient())
		}
		for i := 0; i < *w; i++ {
			wg.Add(1)
			ready.Add(1)
			go func(i int) {
				defer wg.Done()
				r := req("GET", *path+"?watch=true&resourceVersion="+l.Metadata.ResourceVersion, nil, "")
				if *mix != "" && i%2 == 1 {
					r.Header.Set("Accept", *mix)
				}
				resp, err := cls[i/100].Do(r)
				ready.Done()
				if err != nil {
					panic(err)
				}
				defer resp.Body.Close()
				br := bufio.NewReaderSize(resp.Body, 1<<16)
				for k := 0; k < *n; k++ {
					line, err := br.ReadSlice('\n')
					for err == bufio.ErrBufferFull {
						atomic.AddInt64(&total, int64(len(line)))
						line, err = br.ReadSlice('\n')
					}
					if err != nil {
						fmt.Println("watcher", i, "ended after", k, err)
						return
					}
					atomic.AddInt64(&total, int64(len(line)))
					atomic.AddInt64(&seen, 1)
				}
			}(i)
		}
		ready.Wait()
		time.Sleep(500 * time.Millisecond)
		c0, t0 := cpu(), time.Now()
		for k := 0; k < *n; k++ {
			code, b := do(c, req("PATCH", *path+"/load-0", []byte(fmt.Sprintf(`{"metadata":{"annotations":{"k":"%d"}}}`, k)), "application/merge-patch+json"))
			if code != 200 {
				panic(string(b))
			}
		}
		tw := time.Since(t0)
		wg.Wait()
		el := time.Since(t0)
		fmt.Printf("watch w=%d n=%d write=%v all-seen=%v deliveries/s=%.0f bytes/event=%d cpu/delivery=%.2fus rss=%s\n", *w, *n, tw.Round(time.Millisecond), el.Round(time.Millisecond), float64(seen)/el.Seconds(), total/max(seen, 1), (cpu()-c0)*1e6/float64(max(seen, 1)), rss())
	default:
		fmt.Println("apply|get|delete|list|watch")
		os.Exit(2)
	}
}
