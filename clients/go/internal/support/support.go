// Package support finds out which additions to the API a server knows, from its OpenAPI documents.
package support

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"holdfast.test/go/internal/apipath"
)

// Known is what the server of a group and version knows.
type Known struct {
	Unset   bool // Unset markers in apply configurations.
	Options bool // metadata.options.
}

// A server may be replaced by another version, so it is asked again after this time.
const maxAge = 10 * time.Minute

// Prefix is the path of a server's URL, before /api and /apis.
func Prefix(config *rest.Config) string {
	server, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, true)
	if err != nil {
		return "" // Clients cannot be made from this config either.
	}
	return server.Path
}

// Cache remembers answers. Its zero value is ready to use, by any number of goroutines.
type Cache struct {
	mutex   sync.Mutex
	answers map[string]answer
	now     func() time.Time
}

type answer struct {
	known Known
	at    time.Time
}

// Fetch reads a document; found is false if the server does not have it.
type Fetch func(ctx context.Context) (document []byte, found bool, err error)

// Of returns what the server of a document knows. A server without the document knows nothing.
func (c *Cache) Of(ctx context.Context, key string, fetch Fetch) (Known, error) {
	now := time.Now
	if c.now != nil {
		now = c.now
	}
	c.mutex.Lock()
	old, ok := c.answers[key]
	c.mutex.Unlock()
	if ok && now().Sub(old.at) < maxAge {
		return old.known, nil
	}
	document, found, err := fetch(ctx)
	if err != nil {
		return Known{}, err
	}
	var known Known
	if found {
		if known, err = read(document); err != nil {
			return Known{}, err
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.answers == nil {
		c.answers = map[string]answer{}
	}
	c.answers[key] = answer{known, now()}
	return known, nil
}

func read(document []byte) (Known, error) {
	var parsed struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return Known{}, err
	}
	known := Known{Unset: bytes.Contains(document, []byte(`"x-kubernetes-unset-marker"`))}
	for name, schema := range parsed.Components.Schemas {
		if strings.HasSuffix(name, ".meta.v1.ObjectMeta") {
			_, known.Options = schema.Properties["options"]
		}
	}
	return known, nil
}

// OfRequest asks the server that a request goes to, with the request's own credentials.
func (c *Cache) OfRequest(request *http.Request, prefix string, path apipath.Path, base http.RoundTripper) (Known, error) {
	document := *request.URL
	document.Path, document.RawPath, document.RawQuery = strings.TrimSuffix(prefix, "/")+path.Document(), "", ""
	return c.Of(request.Context(), document.String(), func(ctx context.Context) ([]byte, bool, error) {
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, document.String(), nil)
		if err != nil {
			return nil, false, err
		}
		ask.Header = request.Header.Clone()
		for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "Accept-Encoding"} {
			ask.Header.Del(name)
		}
		ask.Header.Set("Accept", "application/json")
		response, err := base.RoundTrip(ask)
		if err != nil {
			return nil, false, err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusNotFound {
			return nil, false, nil
		}
		if response.StatusCode != http.StatusOK {
			return nil, false, fmt.Errorf("GET %s: %s", document.Path, response.Status)
		}
		data, err := io.ReadAll(response.Body)
		return data, true, err
	})
}

// OfClient asks the server of a client for one group and version.
func (c *Cache) OfClient(ctx context.Context, client rest.Interface, gv schema.GroupVersion) (Known, error) {
	path := apipath.Document(gv.Group, gv.Version)
	request := client.Get().AbsPath(path).SetHeader("Accept", "application/json")
	return c.Of(ctx, request.URL().String(), func(ctx context.Context) ([]byte, bool, error) {
		data, err := request.Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return data, err == nil, err
	})
}
