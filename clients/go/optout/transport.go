package optout

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"holdfast.test/go/internal/apipath"
)

type transport struct {
	base   http.RoundTripper
	shared *shared
}

// WrappedRoundTripper is used by apimachinery to find dialers and TLS settings below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Context().Value(keepKey{}) != nil || request.Header.Get("Upgrade") != "" {
		return t.base.RoundTrip(request)
	}
	what := shapeOf(request.Method, request.URL, t.shared.options.Prefix)
	if what == nothing {
		return t.base.RoundTrip(request)
	}
	if request.Method == http.MethodPut && t.shared.partial && !t.shared.options.AllowUpdates {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, fmt.Errorf("optout: refusing PUT %s: this client reads objects without %s, and an update without them deletes them; "+
			"apply or patch, update with a client that keeps them (optout.Keep), or set Options.AllowUpdates",
			request.URL.Path, strings.Join(t.shared.options.Fields, ", "))
	}
	accept := request.Header.Get("Accept")
	response, err := t.send(request, accept)
	if err != nil {
		return nil, err
	}
	if err := t.shared.strip(response, what, strings.Contains(accept, "as=Table")); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// send asks for the fields to be dropped, unless the server is known to reject that.
func (t *transport) send(request *http.Request, accept string) (*http.Response, error) {
	asked := t.shared.ask(accept)
	if asked == accept || t.shared.plain.has(request.URL.Host) {
		return t.base.RoundTrip(request)
	}
	first := request.Clone(request.Context())
	first.Header.Set("Accept", asked)
	response, err := t.base.RoundTrip(first)
	if err != nil || response.StatusCode != http.StatusNotAcceptable {
		return response, err
	}
	// Either what the caller accepts is not served, or the parameter is rejected: the same request without it tells. Nothing
	// was read or written yet.
	again := request.Clone(request.Context())
	if request.Body != nil && request.Body != http.NoBody {
		if request.GetBody == nil {
			return response, nil
		}
		if again.Body, err = request.GetBody(); err != nil {
			return response, nil
		}
	}
	second, err := t.base.RoundTrip(again)
	if err != nil {
		return response, nil
	}
	io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	response.Body.Close()
	if second.StatusCode != http.StatusNotAcceptable {
		t.shared.plain.add(request.URL.Host)
	}
	return second, nil
}

// hosts is a set of servers.
type hosts struct{ names sync.Map }

func (h *hosts) has(name string) bool { _, ok := h.names.Load(name); return ok }
func (h *hosts) add(name string)      { h.names.Store(name, true) }

// shape is what the response to a request contains.
type shape int

const (
	nothing shape = iota // Not an object of the API.
	object
	list
	watch
)

func shapeOf(method string, url *url.URL, prefix string) shape {
	path, ok := apipath.Parse(url.Path, prefix)
	if !ok {
		return nothing
	}
	switch method {
	case http.MethodGet:
		if path.Watch {
			return watch
		}
		if path.Name != "" {
			return object
		}
		if values, given := url.Query()["watch"]; given && values[0] != "false" && values[0] != "0" {
			return watch
		}
		return list
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return object
	case http.MethodDelete:
		if path.Name == "" {
			return list
		}
		return object
	}
	return nothing
}

// strip replaces the body of a response by one without the dropped fields.
func (s *shared) strip(response *http.Response, what shape, tableAsked bool) error {
	if response.StatusCode < 200 || response.StatusCode > 299 || response.Body == nil || response.Body == http.NoBody {
		return nil
	}
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return nil
	}
	table := 0
	if tableAsked {
		table = 1
	}
	root := map[shape]*node{object: s.object[table], list: s.list[table], watch: s.watch[table]}[what]
	var filter scanner
	switch media {
	case "application/json":
		filter = &jsonScanner{root: root, next: root}
	case "application/cbor", "application/cbor-seq":
		filter = &cborScanner{root: root}
	case "application/vnd.kubernetes.protobuf":
		if what == watch {
			root = s.object[table]
		}
		filter = newProtobufScanner(s.types, root, what == watch)
	default:
		return nil
	}
	var source io.Reader = response.Body
	switch encoding := response.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		// The caller asked for it, or the HTTP client would have decompressed it.
		source = newGunzip(response.Body)
		response.Header.Del("Content-Encoding")
		response.Uncompressed = true
	default:
		return fmt.Errorf("optout: cannot leave fields out of a response with Content-Encoding %q", encoding)
	}
	response.Body = &body{source: source, closer: response.Body, scanner: filter}
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	return nil
}
