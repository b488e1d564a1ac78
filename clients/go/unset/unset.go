// Package unset removes fields with server-side apply: a marker in place of a field's value requires that the field is absent,
// and makes the applier the owner of its absence.
//
//	config := applycore.ConfigMap("settings", "default").WithData(map[string]string{"color": "red"})
//	marked, err := unset.In(config, unset.Field("data", "legacy"))
//	err = unset.Apply(ctx, clients.CoreV1().RESTClient(), "configmaps", marked, options, &result)
//
// The result of In is an apply configuration as well: controller-runtime's client.Apply takes it, and its Unstructured() the
// dynamic client. A server that does not know markers would store them as data. Apply refuses to send them there; other clients
// refuse it if they are made from a config returned by Wrap.
package unset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"holdfast.test/go/internal/support"
)

// A marker is a map with only this key and value. In a list, the keys of the item are next to it, and the element of a set is
// its ElementKey. Data that has the key itself doubles it.
const (
	MarkerKey   = "k8s_io__value"
	MarkerValue = "unset"
	ElementKey  = "value"
)

// ErrUnsupported is returned instead of sending markers to a server that would store them.
var ErrUnsupported = errors.New("the server does not support unset markers")

// Path names a field, the key of a map, or an item of a keyed list.
type Path struct{ steps []step }

type step struct {
	name    string
	item    []any // Names and values of the item's keys, alternating; nil for a field.
	element any   // Of a set.
}

func (s step) inList() bool { return s.item != nil || s.element != nil }

// Field names a field by the names that lead to it. Keys of maps are named in the same way.
func Field(names ...string) Path { return Path{}.Field(names...) }

// Field goes on to a field, or to the key of a map.
func (p Path) Field(names ...string) Path {
	steps := append([]step(nil), p.steps...)
	for _, name := range names {
		steps = append(steps, step{name: name})
	}
	return Path{steps}
}

// Item goes on to an item of a list, by the names and values of its keys: Item("containerPort", 80, "protocol", "TCP").
func (p Path) Item(keys ...any) Path {
	if keys == nil {
		keys = []any{}
	}
	return Path{append(append([]step(nil), p.steps...), step{item: keys})}
}

// Element ends at an element of a set: Field("metadata", "finalizers").Element("example.com/obsolete").
func (p Path) Element(value any) Path {
	return Path{append(append([]step(nil), p.steps...), step{element: value})}
}

// String is for messages: .spec.template.spec.containers[name="web"].env[name="DEBUG"]
func (p Path) String() string {
	var text strings.Builder
	for _, s := range p.steps {
		if s.element != nil {
			value, _ := json.Marshal(s.element)
			fmt.Fprintf(&text, "[=%s]", value)
			continue
		}
		if s.item == nil {
			fmt.Fprintf(&text, ".%s", s.name)
			continue
		}
		text.WriteString("[")
		for i := 0; i < len(s.item); i += 2 {
			if i > 0 {
				text.WriteString(",")
			}
			fmt.Fprintf(&text, "%v", s.item[i])
			if i+1 < len(s.item) {
				value, _ := json.Marshal(s.item[i+1])
				fmt.Fprintf(&text, "=%s", value)
			}
		}
		text.WriteString("]")
	}
	return text.String()
}

// Configuration is an apply configuration with markers.
type Configuration map[string]any

var _ runtime.ApplyConfiguration = (*Configuration)(nil)

// IsApplyConfiguration makes it one.
func (c *Configuration) IsApplyConfiguration() {}

// GetKind, GetAPIVersion, GetName and GetNamespace are what controller-runtime needs to send it.
func (c *Configuration) GetKind() *string       { return c.text("kind") }
func (c *Configuration) GetAPIVersion() *string { return c.text("apiVersion") }
func (c *Configuration) GetName() *string       { return c.text("metadata", "name") }
func (c *Configuration) GetNamespace() *string  { return c.text("metadata", "namespace") }

func (c *Configuration) text(path ...string) *string {
	if value, found, err := unstructured.NestedString(*c, path...); found && err == nil {
		return &value
	}
	return nil
}

// Unstructured is for the dynamic client. It shares its content with the configuration.
func (c *Configuration) Unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: *c}
}

// In returns a copy of an apply configuration with a marker at each path, in place of what the configuration has there. It takes
// the typed configurations of client-go and of controller-gen, unstructured objects, and results of In. Typed configurations
// contain no markers: data in them that has the key of markers is doubled. Other configurations are taken as they are.
func In(config any, paths ...Path) (*Configuration, error) {
	if object, ok := config.(runtime.Object); ok {
		if _, ok := object.(runtime.Unstructured); !ok {
			return nil, fmt.Errorf("unset: %T is not an apply configuration: all fields that it does not set would be applied with their zero values", config)
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("unset: %w", err)
	}
	var marked Configuration
	if err := utiljson.Unmarshal(text, (*map[string]any)(&marked)); err != nil || marked == nil {
		return nil, fmt.Errorf("unset: %T is not an apply configuration", config)
	}
	switch config.(type) {
	case *Configuration, Configuration, runtime.Unstructured, map[string]any:
	default:
		double(map[string]any(marked))
	}
	for _, path := range paths {
		if err := mark(marked, path); err != nil {
			return nil, fmt.Errorf("unset: %s: %w", path, err)
		}
	}
	return &marked, nil
}

func isMarker(value map[string]any) bool { return value[MarkerKey] == MarkerValue }

// double turns MarkerKey into data, everywhere in a value without markers.
func double(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			double(member)
			if name == MarkerKey {
				value[name] = map[string]any{MarkerKey: member}
			}
		}
	case []any:
		for _, item := range value {
			double(item)
		}
	}
}

// markElement unsets an element of a set.
func markElement(in map[string]any, name string, element any) error {
	items, ok := in[name].([]any)
	if !ok && in[name] != nil {
		return fmt.Errorf("%s is not a list", name)
	}
	element, err := asConfigured(element)
	if err != nil {
		return err
	}
	kept := make([]any, 0, len(items)+1)
	for _, item := range items {
		is := item
		if fields, ok := item.(map[string]any); ok {
			if !isMarker(fields) {
				return errors.New("the list has items with keys")
			}
			is = fields[ElementKey]
		}
		if !reflect.DeepEqual(is, element) {
			kept = append(kept, item)
		}
	}
	in[name] = append(kept, map[string]any{MarkerKey: MarkerValue, ElementKey: element})
	return nil
}

func mark(root map[string]any, path Path) error {
	if len(path.steps) == 0 || path.steps[0].inList() {
		return errors.New("a path starts with a field")
	}
	at := root
	for i := 0; i < len(path.steps); i++ {
		name := path.steps[i].name
		if path.steps[i].inList() {
			return errors.New("an item follows the name of its list")
		}
		if name == MarkerKey { // Of data, and hence doubled.
			inner, ok := at[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[name] = inner
			}
			at = inner
		}
		if i+1 == len(path.steps) {
			at[name] = map[string]any{MarkerKey: MarkerValue}
			return nil
		}
		if path.steps[i+1].element != nil {
			if i+2 != len(path.steps) {
				return errors.New("nothing is below an element of a set")
			}
			return markElement(at, name, path.steps[i+1].element)
		}
		if path.steps[i+1].item == nil {
			switch value := at[name].(type) {
			case nil:
				next := map[string]any{}
				at[name], at = next, next
			case map[string]any:
				at = value
			default:
				return fmt.Errorf("%s is not a struct or map", name)
			}
		} else {
			i++
			items, ok := at[name].([]any)
			if !ok && at[name] != nil {
				return fmt.Errorf("%s is not a list", name)
			}
			keys, err := itemKeys(path.steps[i].item)
			if err != nil {
				return err
			}
			index, err := find(items, keys)
			if err != nil {
				return err
			}
			if index < 0 {
				index, items = len(items), append(items, keys)
				at[name] = items
			}
			if i+1 == len(path.steps) {
				keys[MarkerKey] = MarkerValue
				items[index] = keys
				return nil
			}
			at = items[index].(map[string]any)
		}
		if isMarker(at) {
			return errors.New("something above it is unset already")
		}
	}
	return nil
}

func itemKeys(alternating []any) (map[string]any, error) {
	if len(alternating) == 0 || len(alternating)%2 != 0 {
		return nil, errors.New("an item has pairs of a key and its value")
	}
	keys := map[string]any{}
	for i := 0; i < len(alternating); i += 2 {
		name, ok := alternating[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is not the name of a key", alternating[i])
		}
		value, err := asConfigured(alternating[i+1])
		if err != nil {
			return nil, err
		}
		keys[name] = value
	}
	return keys, nil
}

// asConfigured returns a value as it is in a configuration: a string, int64, boolean...
func asConfigured(given any) (value any, err error) {
	text, err := json.Marshal(given)
	if err == nil {
		err = utiljson.Unmarshal(text, &value)
	}
	return value, err
}

func find(items []any, keys map[string]any) (int, error) {
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return 0, errors.New("the list has items without keys")
		}
		same := true
		for name, value := range keys {
			same = same && reflect.DeepEqual(fields[name], value)
		}
		if same {
			return i, nil
		}
	}
	return -1, nil
}

// Known answers for clients that were given to Apply.
var known support.Cache

// Apply sends a configuration with a typed client's REST client (clients.AppsV1().RESTClient()) and decodes the response. If it
// contains a marker and the server does not know markers, it fails with ErrUnsupported and sends nothing.
func Apply(ctx context.Context, client rest.Interface, resource string, config *Configuration, options metav1.ApplyOptions, into runtime.Object, subresources ...string) error {
	body, err := json.Marshal(config)
	if err != nil {
		return err
	}
	name := config.GetName()
	if name == nil || *name == "" {
		return errors.New("unset: the configuration has no name")
	}
	if contains(body) {
		what, err := known.OfClient(ctx, client, client.APIVersion())
		if err != nil {
			return fmt.Errorf("unset: asking whether the server supports markers: %w", err)
		}
		if !what.Unset {
			return unsupported(client.APIVersion().String())
		}
	}
	patch := options.ToPatchOptions()
	request := client.Patch(types.ApplyPatchType).Resource(resource).Name(*name).VersionedParams(&patch, scheme.ParameterCodec).Body(body)
	if space := config.GetNamespace(); space != nil {
		request = request.Namespace(*space)
	}
	if len(subresources) > 0 {
		request = request.SubResource(subresources...)
	}
	return request.Do(ctx).Into(into)
}

func unsupported(where string) error {
	return fmt.Errorf("unset: %w for %s: it would store them as data", ErrUnsupported, where)
}
