// Package declared sends objects that name their own field manager, in metadata.options.fieldManager, to any server.
//
// Objects from manifests may have the option already; In adds it to any object. Clients made from a config returned by Wrap send
// it to servers that know it. For others they take it out of the object and send it as the parameter fieldManager, which has the
// same effect, instead of an unknown field.
package declared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"holdfast.test/go/internal/apipath"
	"holdfast.test/go/internal/support"
)

// In returns an object or apply configuration that declares its field manager. Types of Go have no such field, so the result is
// unstructured; the dynamic client and controller-runtime's client take it.
func In(object any, manager string) (*unstructured.Unstructured, error) {
	if manager == "" {
		return nil, fmt.Errorf("declared: a field manager has a name")
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("declared: %w", err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil || content == nil {
		return nil, fmt.Errorf("declared: %T is not an object", object)
	}
	if err := unstructured.SetNestedField(content, manager, "metadata", "options", "fieldManager"); err != nil {
		return nil, fmt.Errorf("declared: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// Of returns the field manager that an object declares, or an empty string.
func Of(object *unstructured.Unstructured) string {
	manager, _, _ := unstructured.NestedString(object.Object, "metadata", "options", "fieldManager")
	return manager
}

// Wrap returns a copy of the config whose clients send declared field managers in the way that the server knows. The server of
// each group and version is asked once, and again after ten minutes.
func Wrap(config *rest.Config) *rest.Config {
	prefix := support.Prefix(config)
	known := &support.Cache{}
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(base http.RoundTripper) http.RoundTripper { return &transport{base, prefix, known} })
	return wrapped
}

type transport struct {
	base   http.RoundTripper
	prefix string
	known  *support.Cache
}

// WrappedRoundTripper is used by apimachinery to find dialers and TLS settings below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return t.base.RoundTrip(request)
	}
	media, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	codec, known := codecs[media]
	path, ok := apipath.Parse(request.URL.Path, t.prefix)
	if err != nil || !known || !ok || request.Body == nil {
		return t.base.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	request.Body.Close()
	if err != nil {
		return nil, err
	}
	sent := request.Clone(request.Context())
	if bytes.Contains(body, []byte("options")) && bytes.Contains(body, []byte("fieldManager")) {
		if body, err = t.rewrite(sent, path, body, codec); err != nil {
			return nil, fmt.Errorf("declared: %w", err)
		}
	}
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	sent.ContentLength = int64(len(body))
	if sent.Header.Get("Content-Length") != "" {
		sent.Header.Del("Content-Length")
	}
	return t.base.RoundTrip(sent)
}

// rewrite moves the option of the body to the query if the server does not know it.
func (t *transport) rewrite(request *http.Request, path apipath.Path, body []byte, codec codec) ([]byte, error) {
	var object map[string]any
	if codec.decode(body, &object) != nil {
		return body, nil // The server says what is wrong with it.
	}
	metadata, _ := object["metadata"].(map[string]any)
	options, _ := metadata["options"].(map[string]any)
	manager, _ := options["fieldManager"].(string)
	if manager == "" {
		return body, nil
	}
	known, err := t.known.OfRequest(request, t.prefix, path, t.base)
	if err != nil {
		return nil, fmt.Errorf("asking whether the server knows metadata.options: %w", err)
	}
	if known.Options {
		return body, nil
	}
	if len(options) > 1 {
		return nil, fmt.Errorf("metadata.options has other keys than fieldManager, which this server does not know")
	}
	query := request.URL.Query()
	if given := query.Get("fieldManager"); given != "" && given != manager {
		return nil, fmt.Errorf("the object declares the field manager %q, but the request has %q", manager, given)
	}
	delete(metadata, "options")
	query.Set("fieldManager", manager)
	address := *request.URL
	address.RawQuery = query.Encode()
	request.URL = &address
	return codec.encode(object)
}

type codec struct {
	decode func(data []byte, into *map[string]any) error
	encode func(value any) ([]byte, error)
}

var (
	jsonCodec = codec{func(data []byte, into *map[string]any) error {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // Numbers are sent on as they are.
		return decoder.Decode(into)
	}, json.Marshal}
	yamlCodec = codec{func(data []byte, into *map[string]any) error {
		if jsonCodec.decode(data, into) == nil {
			return nil // As client libraries send it.
		}
		data, err := yaml.ToJSON(data)
		if err != nil {
			return err
		}
		return jsonCodec.decode(data, into)
	}, json.Marshal}
	cborCodec = codec{func(data []byte, into *map[string]any) error { return direct.Unmarshal(data, into) }, direct.Marshal}

	codecs = map[string]codec{
		"application/json":                       jsonCodec,
		"application/merge-patch+json":           jsonCodec,
		"application/strategic-merge-patch+json": jsonCodec,
		"application/yaml":                       yamlCodec,
		"application/apply-patch+yaml":           yamlCodec,
		"application/cbor":                       cborCodec,
		"application/apply-patch+cbor":           cborCodec,
	}
)
