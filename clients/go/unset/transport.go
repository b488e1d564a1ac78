package unset

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"holdfast.test/go/internal/apipath"
	"holdfast.test/go/internal/support"
)

// Wrap returns a copy of the config whose clients refuse to apply markers to servers that would store them, with ErrUnsupported.
// The server of each group and version is asked once, and again after ten minutes.
func Wrap(config *rest.Config) *rest.Config {
	prefix := support.Prefix(config)
	known := &support.Cache{}
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(base http.RoundTripper) http.RoundTripper { return &guard{base, prefix, known} })
	return wrapped
}

type guard struct {
	base   http.RoundTripper
	prefix string
	known  *support.Cache
}

// WrappedRoundTripper is used by apimachinery to find dialers and TLS settings below.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.base }

func contains(body []byte) bool { return bytes.Contains(body, []byte(MarkerKey)) }

func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || request.Body == nil || !strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
		return g.base.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	request.Body.Close()
	if err != nil {
		return nil, err
	}
	if contains(body) {
		path, ok := apipath.Parse(request.URL.Path, g.prefix)
		if !ok {
			return nil, unsupported(request.URL.Path)
		}
		known, err := g.known.OfRequest(request, g.prefix, path, g.base)
		if err != nil {
			return nil, fmt.Errorf("unset: asking whether the server supports markers: %w", err)
		}
		if !known.Unset {
			return nil, unsupported(strings.TrimPrefix(path.Group+"/"+path.Version, "/"))
		}
	}
	sent := request.Clone(request.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return g.base.RoundTrip(sent)
}
