package optout

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const full = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","managedFields":[{"manager":"m"}]},"data":{"k":"v"}}`

// server records the Accept headers it gets and answers with a handler.
func server(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *[]string) {
	var accepts []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepts = append(accepts, r.Header.Get("Accept"))
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &accepts
}

func respond(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, full)
}

func client(t *testing.T, options Options) *http.Client {
	t.Helper()
	wrap, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: wrap(http.DefaultTransport)}
}

func call(t *testing.T, c *http.Client, method, url, accept, body string) (string, error) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	return send(c, request)
}

func send(c *http.Client, request *http.Request) (string, error) {
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return string(data), err
}

func TestEveryClauseAsks(t *testing.T) {
	for _, test := range []struct{ name, fields, accept, want string }{
		{"one clause", ManagedFields, "application/json", "application/json;drop=metadata.managedFields"},
		{"parameters and several clauses", ManagedFields, "application/vnd.kubernetes.protobuf;as=Table;v=v1, */*;q=0.5",
			"application/vnd.kubernetes.protobuf;as=Table;v=v1;drop=metadata.managedFields,*/*;q=0.5;drop=metadata.managedFields"},
		{"no header", ManagedFields, "", "*/*;drop=metadata.managedFields"},
		{"more fields: again with what Kubernetes 1.38 knows", ManagedFields + " data", "a/b,c/d",
			"a/b;drop=metadata.managedFields+data,c/d;drop=metadata.managedFields+data,a/b;drop=metadata.managedFields,c/d;drop=metadata.managedFields"},
		{"other fields: again without", "data", "a/b", "a/b;drop=data,a/b"},
		{"a caller that asks", ManagedFields, "a/b;drop=x", "a/b;drop=x"},
	} {
		if got := newShared(Options{Fields: strings.Fields(test.fields)}).ask(test.accept); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestAServerThatDoesNotDrop(t *testing.T) {
	s, accepts := server(t, respond)
	got, err := call(t, client(t, Options{}), "GET", s.URL+"/api/v1/namespaces/x/configmaps/a", "application/json", "")
	if err != nil || strings.Contains(got, "managedFields") || !strings.Contains(got, `"k":"v"`) {
		t.Fatal(got, err)
	}
	if (*accepts)[0] != "application/json;drop=metadata.managedFields" {
		t.Fatal(*accepts)
	}
}

func TestWhatIsLeftAlone(t *testing.T) {
	s, accepts := server(t, respond)
	c := client(t, Options{})
	for _, path := range []string{"/version", "/api", "/apis/apps/v1", "/api/v1/namespaces/x/services/a/proxy/api/v1/configmaps/a", "/api/v1/namespaces/x/pods/a/log"} {
		if got, err := call(t, c, "GET", s.URL+path, "application/json", ""); err != nil || got != full {
			t.Errorf("%s: %s %v", path, got, err)
		}
	}
	request, _ := http.NewRequestWithContext(Keep(context.Background()), "GET", s.URL+"/api/v1/namespaces/x/configmaps/a", nil)
	if got, err := send(c, request); err != nil || got != full {
		t.Error("a context that keeps ownership: ", got, err)
	}
	for _, accept := range *accepts {
		if strings.Contains(accept, "drop") {
			t.Error("asked: ", accept)
		}
	}
}

func TestErrorsAreLeftAlone(t *testing.T) {
	status := `{"kind":"Failure","apiVersion":"x/v1","status":"Failure","code":409}`
	s, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(409)
		io.WriteString(w, status)
	})
	if got, _ := call(t, client(t, Options{Fields: []string{"status"}}), "GET", s.URL+"/api/v1/pods", "", ""); got != status {
		t.Error(got)
	}
}

func TestAServerThatRejectsTheParameter(t *testing.T) {
	var bodies []string
	s, accepts := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if strings.Contains(r.Header.Get("Accept"), "drop=") {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		respond(w, r)
	})
	c := client(t, Options{})
	for range 2 {
		got, err := call(t, c, "POST", s.URL+"/api/v1/namespaces/x/configmaps", "application/json", "body")
		if err != nil || got == "" || strings.Contains(got, "managedFields") {
			t.Fatal(got, err)
		}
	}
	// Asked once, then remembered.
	if got := strings.Join(*accepts, " "); got != "application/json;drop=metadata.managedFields application/json application/json" {
		t.Error(got)
	}
	if got := strings.Join(bodies, " "); got != "body body body" {
		t.Error(got)
	}
}

// Kubernetes 1.38 with its gate on: a clause with any value but one does not match.
func TestAServerThatKnowsOneValue(t *testing.T) {
	s, accepts := server(t, func(w http.ResponseWriter, r *http.Request) {
		for _, clause := range strings.Split(r.Header.Get("Accept"), ",") {
			_, value, given := strings.Cut(clause, "drop=")
			if given && value != ManagedFields {
				continue
			}
			if given {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`)
				return
			}
			respond(w, r)
			return
		}
		w.WriteHeader(http.StatusNotAcceptable)
	})
	for _, fields := range [][]string{{ManagedFields}, {ManagedFields, "data"}, {"data"}, {"data", "status", ManagedFields}} {
		got, err := call(t, client(t, Options{Fields: fields}), "GET", s.URL+"/api/v1/namespaces/x/configmaps/a", "application/json", "")
		want := full
		for _, field := range fields {
			want = strings.Replace(want, map[string]string{ManagedFields: `,"managedFields":[{"manager":"m"}]`, "data": `,"data":{"k":"v"}`}[field], "", 1)
		}
		if err != nil || got != want {
			t.Errorf("%v: %s %v", fields, got, err)
		}
	}
	if len(*accepts) != 4 {
		t.Error("requests were sent twice: ", *accepts)
	}
}

func TestATypeThatIsNotServed(t *testing.T) {
	s, accepts := server(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotAcceptable) })
	c := client(t, Options{})
	for range 2 {
		request, _ := http.NewRequest("GET", s.URL+"/api/v1/pods", nil)
		response, err := c.Do(request)
		if err != nil || response.StatusCode != http.StatusNotAcceptable {
			t.Fatal(response, err)
		}
		response.Body.Close()
	}
	if len(*accepts) != 4 || !strings.Contains((*accepts)[2], "drop=") {
		t.Error("the server counts as one that rejects the parameter: ", *accepts)
	}
}

func TestUpdatesOfPartialObjectsAreRefused(t *testing.T) {
	s, accepts := server(t, respond)
	path := s.URL + "/api/v1/namespaces/x/configmaps/a"
	if _, err := call(t, client(t, Options{Fields: []string{ManagedFields, "data"}}), "PUT", path, "", full); err == nil || !strings.Contains(err.Error(), "data") {
		t.Error(err)
	}
	if len(*accepts) != 0 {
		t.Error("the request was sent")
	}
	for _, options := range []Options{{}, {Fields: []string{"data"}, AllowUpdates: true}} {
		if _, err := call(t, client(t, options), "PUT", path, "", full); err != nil {
			t.Error(err)
		}
	}
	if _, err := call(t, client(t, Options{Fields: []string{"data"}}), "PATCH", path, "", "{}"); err != nil {
		t.Error(err)
	}
}

func TestGate(t *testing.T) {
	on, off := true, false
	for _, test := range []struct {
		environment string
		given       *bool
		want        bool
	}{{"", nil, true}, {"false", nil, false}, {"0", nil, false}, {"F", nil, false}, {"1", nil, true}, {"maybe", nil, true}, {"false", &on, true}, {"true", &off, false}} {
		if test.environment != "" {
			t.Setenv(Gate, test.environment)
		}
		wrap, err := New(Options{Gate: test.given})
		if err != nil {
			t.Fatal(err)
		}
		if _, wrapped := wrap(http.DefaultTransport).(*transport); wrapped != test.want {
			t.Errorf("%+v", test)
		}
	}
}

func TestFieldsAreChecked(t *testing.T) {
	for _, field := range []string{"", ".", "a..b", "a,b", "a;b", "a+b", "a b", "metadata", "metadata.name", "kind", "items"} {
		if _, err := Wrap(&rest.Config{}, field); err == nil {
			t.Errorf("%q is accepted", field)
		}
	}
}

func TestWrapLeavesTheOriginalAlone(t *testing.T) {
	for host, prefix := range map[string]string{"https://server/clusters/a": "/clusters/a", "http://server:6443/clusters/a/": "/clusters/a/", "server": "/", "127.0.0.1:6443": "/"} {
		config := &rest.Config{Host: host}
		wrapped, err := Wrap(config)
		if err != nil || config.WrapTransport != nil || wrapped.WrapTransport == nil {
			t.Fatal(err)
		}
		inner := wrapped.WrapTransport(http.DefaultTransport).(*transport)
		if strings.TrimSuffix(inner.shared.options.Prefix, "/") != strings.TrimSuffix(prefix, "/") {
			t.Errorf("%s: %q", host, inner.shared.options.Prefix)
		}
	}
}

// A watch whose caller asked for gzip: each event is a member of its own and must arrive before the next one is sent.
func TestCompressedEventsArriveOneByOne(t *testing.T) {
	event := `{"type":"ADDED","object":` + full + "}\n"
	next := make(chan bool)
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		for range 3 {
			zip := gzip.NewWriter(w)
			io.WriteString(zip, event)
			zip.Close()
			w.(http.Flusher).Flush()
			<-next
		}
	})
	request, _ := http.NewRequest("GET", s.URL+"/api/v1/configmaps?watch=1", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client(t, Options{}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for range 3 {
		var got bytes.Buffer
		for !strings.HasSuffix(got.String(), "\n") {
			piece := make([]byte, 4096)
			n, err := response.Body.Read(piece)
			got.Write(piece[:n])
			if err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}}`+"\n" {
			t.Fatal(got.String())
		}
		next <- true
	}
}

// An event must be passed on when its last byte has arrived, in each format.
func TestEventsAreNotHeldBack(t *testing.T) {
	s := newShared(Options{Fields: []string{ManagedFields, "data"}, Scheme: testScheme})
	for _, v := range vectors(t) {
		if !strings.HasPrefix(v.name, "watch-") {
			continue
		}
		var filter scanner
		switch v.format {
		case "json":
			filter = newJSON(s.watch[0])
		case "cbor":
			filter = newCBOR(s.watch[0])
		default:
			filter = newProtobufScanner(s.types, s.object[0], true)
		}
		data := bytes.Clone(v.data)
		if _, hold, _ := filter.scan(data, 0); hold != len(data) {
			t.Errorf("%s %s: %d bytes are held back", v.name, v.format, len(data)-hold)
		}
	}
}

// A list is passed on while it arrives, whatever its length.
func TestMemoryOfLists(t *testing.T) {
	s := newShared(Options{Fields: []string{ManagedFields}, Scheme: testScheme})
	for _, v := range vectors(t) {
		if what, _ := v.shape(); what != list || v.format == "json" && strings.HasPrefix(v.name, "table") {
			continue
		}
		var filter scanner
		switch v.format {
		case "json":
			filter = newJSON(s.list[0])
		case "cbor":
			filter = newCBOR(s.list[0])
		case "pb":
			filter = newProtobufScanner(s.types, s.list[0], false)
		default:
			continue
		}
		b := &body{source: pieces{bytes.NewReader(v.data), 100}, closer: io.NopCloser(nil), scanner: filter}
		most := 0
		for piece := make([]byte, 64<<10); ; {
			_, err := b.Read(piece)
			most = max(most, cap(b.held))
			if err != nil {
				break
			}
		}
		if most > 4<<10 {
			t.Errorf("%s %s: %d bytes of %d were held back", v.name, v.format, most, len(v.data))
		}
	}
}

// Nothing is allocated, and nothing moved, for bytes from which nothing is removed.
func TestNoCopyOfWhatTheServerDropped(t *testing.T) {
	item := `{"metadata":{"name":"a","namespace":"b","labels":{"x":"y"}},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"\"b\""}]}]}},`
	data := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Repeat(item, 1000) + `{}]}`)
	s := newShared(Options{Fields: []string{ManagedFields}})
	root := s.list[0]
	if allocations := testing.AllocsPerRun(10, func() {
		filter := jsonScanner{root: root, next: root}
		if out, hold, _ := filter.scan(data, 0); out != len(data) || hold != len(data) {
			t.Fatal(out, hold)
		}
	}); allocations > 5 {
		t.Errorf("%.0f allocations", allocations)
	}
}

func BenchmarkJSON(b *testing.B) {
	item := `{"metadata":{"name":"a","namespace":"b","labels":{"x":"y"},"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"f:containers":{}}}}]},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"\"b\""}]}]}},`
	original := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Repeat(item, 1000) + `{}]}`)
	root := newShared(Options{Fields: []string{ManagedFields}}).list[0]
	data := make([]byte, len(original))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		copy(data, original)
		filter := jsonScanner{root: root, next: root}
		filter.scan(data, 0)
	}
}
