// Package optout lets Go clients of Kubernetes work without managedFields, or without other fields that they never read.
//
//	config, err = optout.Wrap(config)
//	clients, err := kubernetes.NewForConfig(config)
//
// Every client made from the returned config asks the server to leave the fields out, in each clause of its Accept header
// (drop=metadata.managedFields). What a server sends anyway is removed while the response is read: from objects, lists,
// watches, Tables and PartialObjectMetadata, in JSON, Protobuf and CBOR. Typed, dynamic, metadata and controller-runtime
// clients and their informers inherit this; clients made from the original config still see everything.
//
// A response is never held as a whole: memory is bounded by one token in JSON, a few bytes in Protobuf, and one object in
// CBOR. Where nothing has to be removed, the bytes are passed on without being copied or encoded again.
//
// YAML, which no client library asks for, is passed on as the server sends it.
package optout

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"holdfast.test/go/internal/support"
)

// ManagedFields is the field that is left out unless others are named.
const ManagedFields = "metadata.managedFields"

// Gate is the environment variable that turns this package off if it is false. It takes the values of strconv.ParseBool.
const Gate = "KUBE_FEATURE_ManagedFieldsOptOutClient"

// Options for New. The zero value leaves out managedFields.
type Options struct {
	// Fields to leave out, as dotted paths: metadata.managedFields if empty. Lists are transparent:
	// spec.template.spec.containers.env names the env of every container.
	Fields []string
	// Gate overrides the environment variable.
	Gate *bool
	// Prefix is the path of the server's URL, before /api and /apis.
	Prefix string
	// Scheme holds the Go types of kinds that are received in Protobuf, whose tags tell the number of each field. Only
	// needed for fields outside of metadata. client-go's scheme if nil.
	Scheme *runtime.Scheme
	// AllowUpdates allows PUT while fields other than managedFields are left out. A PUT of an object that was read without
	// some of its fields deletes them; by default such requests fail.
	AllowUpdates bool
}

// Wrap returns a copy of the config whose clients do not receive the fields; managedFields if none are named.
func Wrap(config *rest.Config, fields ...string) (*rest.Config, error) {
	wrapper, err := New(Options{Fields: fields, Prefix: support.Prefix(config)})
	if err != nil {
		return nil, err
	}
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(wrapper)
	return wrapped, nil
}

// New returns a wrapper for rest.Config.Wrap, or for the transport of any HTTP client.
func New(options Options) (func(http.RoundTripper) http.RoundTripper, error) {
	if len(options.Fields) == 0 {
		options.Fields = []string{ManagedFields}
	}
	for _, field := range options.Fields {
		if err := check(field); err != nil {
			return nil, err
		}
	}
	if !enabled(options.Gate) {
		return func(base http.RoundTripper) http.RoundTripper { return base }, nil
	}
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	shared := newShared(options)
	return func(base http.RoundTripper) http.RoundTripper {
		if base == nil {
			base = http.DefaultTransport
		}
		return &transport{base: base, shared: shared}
	}, nil
}

type keepKey struct{}

// Keep returns a context whose requests are sent and answered as if the transport were not there: one call can read
// ownership although its client opted out.
func Keep(ctx context.Context) context.Context { return context.WithValue(ctx, keepKey{}, true) }

var fieldSyntax = regexp.MustCompile(`^[A-Za-z0-9_$-]+(\.[A-Za-z0-9_$-]+)*$`)

// Without these, a client could not tell what it received.
var identity = map[string]bool{
	"apiVersion": true, "kind": true, "metadata": true, "items": true, "metadata.name": true, "metadata.namespace": true,
	"metadata.uid": true, "metadata.resourceVersion": true,
}

func check(field string) error {
	if !fieldSyntax.MatchString(field) {
		return fmt.Errorf("optout: %q is not a field: want names separated by dots, such as metadata.managedFields", field)
	}
	if identity[field] {
		return fmt.Errorf("optout: %s cannot be left out: it identifies the object", field)
	}
	return nil
}

func enabled(gate *bool) bool {
	if gate != nil {
		return *gate
	}
	text, given := os.LookupEnv(Gate)
	if !given {
		return true
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		slog.Warn("ignoring environment variable: must be true or false", "name", Gate, "value", text)
		return true
	}
	return on
}

// shared is the state of all transports made by one wrapper: client-go makes one transport for each group of a clientset.
type shared struct {
	options Options
	// Parameters to add to each clause, most wanted first. The last one always works (see ask).
	parameters []string
	partial    bool // More than managedFields is left out.
	plain      hosts
	types      *types
	object     [2]*node // By whether a Table was asked for.
	list       [2]*node
	watch      [2]*node
}

func newShared(options Options) *shared {
	s := &shared{options: options, types: newTypes(options.Scheme)}
	owned := false
	for _, field := range options.Fields {
		if field == ManagedFields {
			owned = true
		} else {
			s.partial = true
		}
	}
	s.parameters = append(s.parameters, ";drop="+strings.Join(options.Fields, "+"))
	if s.partial {
		// Kubernetes 1.38 matches no clause whose value it does not know, so each clause is given again with what it does
		// know.
		if owned {
			s.parameters = append(s.parameters, ";drop="+ManagedFields)
		} else {
			s.parameters = append(s.parameters, "")
		}
	}
	for table := range s.object {
		s.object[table] = objectNode(options.Fields, table == 1)
		s.list[table] = objectNode(nil, table == 1)
		s.list[table].children["items"] = objectNode(options.Fields, false)
		s.list[table].rows = s.object[table].rows
		s.watch[table] = &node{children: map[string]*node{"object": s.object[table]}}
	}
	return s
}

// ask adds the parameters to each clause of an Accept header.
func (s *shared) ask(accept string) string {
	if accept == "" {
		accept = "*/*"
	}
	if strings.Contains(accept, "drop=") {
		return accept // The caller asks for something else.
	}
	var clauses []string
	for _, parameter := range s.parameters {
		for _, clause := range strings.Split(accept, ",") {
			clauses = append(clauses, strings.TrimSpace(clause)+parameter)
		}
	}
	return strings.Join(clauses, ",")
}
