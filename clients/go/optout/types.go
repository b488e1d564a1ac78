package optout

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"google.golang.org/protobuf/encoding/protowire"
)

// types finds the Protobuf numbers of fields in the tags of Go types.
type types struct {
	scheme *runtime.Scheme
	known  sync.Map // typeKey to resolved.
}

type typeKey struct {
	apiVersion, kind string
	root             *node
}

type resolved struct {
	place *place
	err   error
}

func newTypes(scheme *runtime.Scheme) *types { return &types{scheme: scheme} }

// place returns where the fields are in messages of a kind; nil if it has none of them.
func (t *types) place(apiVersion, kind string, root *node) (*place, error) {
	key := typeKey{apiVersion, kind, root}
	if found, ok := t.known.Load(key); ok {
		return found.(resolved).place, found.(resolved).err
	}
	place, err := t.resolve(apiVersion, kind, root)
	t.known.Store(key, resolved{place, err})
	return place, err
}

func (t *types) resolve(apiVersion, kind string, root *node) (*place, error) {
	if isStatus(kind, apiVersion) {
		return nil, nil
	}
	// A copy without what depends on the kind.
	below := &node{children: root.children}
	r := resolver{apiVersion: apiVersion, kind: kind}
	if known := t.typeOf(apiVersion, kind); known != nil {
		return r.message(known, below, "")
	}
	// All kinds have their metadata, and all lists their items, at the same number.
	generic := reflect.TypeOf(metav1.PartialObjectMetadata{})
	if _, isList := root.children["items"]; isList {
		generic = reflect.TypeOf(metav1.PartialObjectMetadataList{})
	}
	r.metadataOnly = "the kind is not in Options.Scheme"
	return r.message(generic, below, "")
}

func (t *types) typeOf(apiVersion, kind string) reflect.Type {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	if gv.Group == "meta.k8s.io" {
		switch kind {
		case "PartialObjectMetadata":
			return reflect.TypeOf(metav1.PartialObjectMetadata{})
		case "PartialObjectMetadataList":
			return reflect.TypeOf(metav1.PartialObjectMetadataList{})
		}
	}
	object, err := t.scheme.New(gv.WithKind(kind))
	if err != nil {
		return nil
	}
	return reflect.TypeOf(object).Elem()
}

type resolver struct {
	apiVersion, kind string
	metadataOnly     string // If not empty, why only metadata is known.
}

// Types whose JSON is not that of their fields.
var ownJSON = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

func (r *resolver) message(t reflect.Type, n *node, path string) (*place, error) {
	found := &place{fields: map[protowire.Number]*place{}}
	for name, child := range n.children {
		at := strings.TrimPrefix(path+"."+name, ".")
		if err := r.field(t, name, child, at, found); err != nil {
			return nil, err
		}
	}
	if len(found.fields) == 0 {
		return nil, nil
	}
	return found, nil
}

// field adds the field of a name to the message, if its type has it.
func (r *resolver) field(t reflect.Type, name string, n *node, path string, into *place) error {
	for i := range t.NumField() {
		field := t.Field(i)
		jsonName, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		number := protobufNumber(field)
		if jsonName == "" && field.Anonymous || strings.Contains(field.Tag.Get("json"), ",inline") {
			// Its members are those of the parent in JSON, but not always in Protobuf.
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() != reflect.Struct {
				continue
			}
			if number == 0 {
				if err := r.field(inner, name, n, path, into); err != nil {
					return err
				}
				continue
			}
			nested := into.fields[number]
			if nested == nil {
				nested = &place{fields: map[protowire.Number]*place{}}
			}
			if err := r.field(inner, name, n, path, nested); err != nil {
				return err
			}
			if len(nested.fields) > 0 {
				into.fields[number] = nested
			}
			continue
		}
		if jsonName != name || number == 0 {
			continue
		}
		found, err := r.value(t, field, number, n, path)
		if err != nil {
			return err
		}
		if found != nil {
			into.fields[number] = found
		}
		return nil
	}
	if r.metadataOnly != "" && t.Field(0).Type == reflect.TypeOf(metav1.TypeMeta{}) {
		return unresolved(path, r.apiVersion, r.kind, r.metadataOnly)
	}
	return nil
}

func (r *resolver) value(t reflect.Type, field reflect.StructField, number protowire.Number, n *node, path string) (*place, error) {
	inner := field.Type
	for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
		if inner.Elem().Kind() == reflect.Uint8 {
			break // Bytes.
		}
		inner = inner.Elem()
	}
	unused := unusedNumber(t, number)
	if n.drop {
		switch inner.Kind() {
		case reflect.Struct, reflect.Map, reflect.String, reflect.Slice:
		default:
			if unused == 0 {
				return nil, unresolved(path, r.apiVersion, r.kind, "its message has no free number")
			}
		}
		return &place{drop: true, rename: unused}, nil
	}
	if inner.Kind() == reflect.Map {
		keys := map[string]*place{}
		for key, child := range n.children {
			if !child.drop {
				return nil, unresolved(path+"."+key, r.apiVersion, r.kind, "it is inside of a map")
			}
			keys[key] = &place{drop: true, rename: unused}
		}
		return &place{keys: keys}, nil
	}
	if inner.Kind() != reflect.Struct {
		return nil, nil
	}
	if inner.Implements(ownJSON) || reflect.PointerTo(inner).Implements(ownJSON) {
		return nil, unresolved(path, r.apiVersion, r.kind, "it is not a message of fields")
	}
	return r.message(inner, n, path)
}

// protobufNumber is 0 for fields that are not in messages.
func protobufNumber(field reflect.StructField) protowire.Number {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return protowire.Number(number)
}

// unusedNumber returns a number that no field of the type has and whose tag is not longer than that of `like`; 0 if there
// is none.
func unusedNumber(t reflect.Type, like protowire.Number) protowire.Number {
	if like > 15 {
		return hidden
	}
	used := map[protowire.Number]bool{}
	var collect func(t reflect.Type)
	collect = func(t reflect.Type) {
		for i := range t.NumField() {
			field := t.Field(i)
			number := protobufNumber(field)
			used[number] = true
			if number == 0 && field.Anonymous && field.Type.Kind() == reflect.Struct {
				collect(field.Type)
			}
		}
	}
	collect(t)
	for number := protowire.Number(15); number > 0; number-- {
		if !used[number] {
			return number
		}
	}
	return 0
}
