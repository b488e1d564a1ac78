package optout

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pieces reads at most n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// strip returns what remains of a response that arrives in pieces and is read in others.
func strip(t testing.TB, s scanner, data []byte, arriving, reading int) ([]byte, error) {
	t.Helper()
	b := &body{source: pieces{bytes.NewReader(data), arriving}, closer: io.NopCloser(nil), scanner: s}
	var out bytes.Buffer
	_, err := io.Copy(&out, pieces{b, reading})
	return out.Bytes(), err
}

// without is the simple way: in a decoded value.
func without(value any, path []string) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = without(value[i], path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
		} else if child, ok := value[path[0]]; ok {
			value[path[0]] = without(child, path[1:])
		}
	}
	return value
}

// withoutAll removes the fields from an object, or whatever a response of this shape contains.
func withoutAll(value any, fields []string, what shape, table bool) any {
	if items, ok := value.([]any); ok {
		return each(items, func(v any) any { return withoutAll(v, fields, what, table) })
	}
	root, ok := value.(map[string]any)
	if !ok {
		return value
	}
	if what == watch {
		if child, ok := root["object"]; ok {
			root["object"] = each(child, func(v any) any { return withoutAll(v, fields, object, table) })
		}
		return value
	}
	kind, _ := root["kind"].(string)
	apiVersion, _ := root["apiVersion"].(string)
	switch {
	case isStatus(kind, apiVersion):
	case table && isTable(kind, apiVersion):
		if rows, ok := root["rows"]; ok {
			root["rows"] = each(rows, func(row any) any {
				if row, ok := row.(map[string]any); ok {
					if child, ok := row["object"]; ok {
						row["object"] = each(child, func(v any) any { return withoutAll(v, fields, object, false) })
					}
				}
				return row
			})
		}
	case what == list:
		if items, ok := root["items"]; ok {
			root["items"] = each(items, func(v any) any { return withoutAll(v, fields, object, false) })
		}
	default:
		for _, field := range fields {
			without(value, strings.Split(field, "."))
		}
	}
	return value
}

func each(value any, do func(any) any) any {
	if items, ok := value.([]any); ok {
		for i := range items {
			items[i] = each(items[i], do)
		}
		return items
	}
	return do(value)
}

func decodeJSON(t testing.TB, data []byte) []any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var all []any
	for {
		var value any
		if err := decoder.Decode(&value); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v in %.2000s", err, data)
		}
		all = append(all, value)
	}
}

func roots(fields []string, table bool) *shared {
	return newShared(Options{Fields: fields, Scheme: scheme.Scheme})
}

func (s *shared) root(what shape, table bool) *node {
	i := 0
	if table {
		i = 1
	}
	return [...]*node{nil, s.object[i], s.list[i], s.watch[i]}[what]
}

func newJSON(root *node) scanner { return &jsonScanner{root: root, next: root} }
func newCBOR(root *node) scanner { return &cborScanner{root: root} }

var sizes = []int{1, 2, 3, 7, 64, 1 << 20}

func TestJSON(t *testing.T) {
	owned := []string{ManagedFields}
	for _, test := range []struct {
		name   string
		what   shape
		table  bool
		fields []string
		in     string
		want   string
	}{
		{"the only member", object, false, owned, `{"metadata":{"managedFields":[]}}`, `{"metadata":{}}`},
		{"the first member, and the comma after it", object, false, owned, `{"metadata":{"managedFields":[{"a":"}"}],"name":"x"}}`, `{"metadata":{"name":"x"}}`},
		{"the last member, and the comma before it", object, false, owned, `{"metadata":{"name":"x","managedFields":[1,{"a":[]}]},"data":{}}`, `{"metadata":{"name":"x"},"data":{}}`},
		{"a member in the middle", object, false, owned, `{"metadata":{"a":1,"managedFields":null,"b":2}}`, `{"metadata":{"a":1,"b":2}}`},
		{"a scalar", object, false, owned, `{"metadata":{"managedFields":12,"b":2}}`, `{"metadata":{"b":2}}`},
		{"the same member twice", object, false, owned, `{"metadata":{"managedFields":[],"managedFields":{}},"metadata":{"managedFields":1}}`, `{"metadata":{},"metadata":{}}`},
		{"white space stays", object, false, owned, "{\n  \"metadata\": {\n    \"managedFields\": [ ],\n    \"name\": \"x\"\n  }\n}\n", "{\n  \"metadata\": {\n    \n    \"name\": \"x\"\n  }\n}\n"},
		{"an escaped name", object, false, owned, `{"metadata":{"m\u0061nagedFields":[],"n\"":1}}`, `{"metadata":{"n\"":1}}`},
		{"the same name elsewhere", object, false, owned, `{"managedFields":1,"spec":{"metadata":{"managedFields":2}},"metadata":{"x":{"managedFields":3}}}`,
			`{"managedFields":1,"spec":{"metadata":{"managedFields":2}},"metadata":{"x":{"managedFields":3}}}`},
		{"the text in a value", object, false, owned, `{"metadata":{"annotations":{"a":"\"managedFields\":[{\\"}}}`, `{"metadata":{"annotations":{"a":"\"managedFields\":[{\\"}}}`},
		{"metadata that is a list or text", object, false, owned, `{"metadata":["managedFields",{"managedFields":1,"a":2}]}{"metadata":"managedFields"}`, `{"metadata":["managedFields",{"a":2}]}{"metadata":"managedFields"}`},
		{"items of a list, not its metadata", list, false, owned, `{"metadata":{"managedFields":1},"items":[{"metadata":{"managedFields":[]}},{},{"metadata":{"a":1,"managedFields":[]}}]}`,
			`{"metadata":{"managedFields":1},"items":[{"metadata":{}},{},{"metadata":{"a":1}}]}`},
		{"items of an object", object, false, owned, `{"items":[{"metadata":{"managedFields":[]}}]}`, `{"items":[{"metadata":{"managedFields":[]}}]}`},
		{"events", watch, false, owned, `{"type":"ADDED","object":{"metadata":{"managedFields":[]}}}` + "\n" + `{"type":"BOOKMARK","object":{}}` + "\n", `{"type":"ADDED","object":{"metadata":{}}}` + "\n" + `{"type":"BOOKMARK","object":{}}` + "\n"},
		{"rows of a Table", list, true, owned, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["managedFields"],"object":{"metadata":{"managedFields":[]}}}]}`,
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["managedFields"],"object":{"metadata":{}}}]}`},
		{"events with Tables", watch, true, owned, `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"metadata":{"managedFields":[],"name":"x"}}}]}}`,
			`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"metadata":{"name":"x"}}}]}}`},
		{"rows of an object, though a Table was asked for", object, true, owned, `{"apiVersion":"example.com/v1","kind":"Sheet","metadata":{"managedFields":[]},"rows":[{"object":{"metadata":{"managedFields":[]}}}]}`,
			`{"apiVersion":"example.com/v1","kind":"Sheet","metadata":{},"rows":[{"object":{"metadata":{"managedFields":[]}}}]}`},
		{"rows of an object", object, false, owned, `{"kind":"Table","rows":[{"object":{"metadata":{"managedFields":[]}}}]}`, `{"kind":"Table","rows":[{"object":{"metadata":{"managedFields":[]}}}]}`},
		{"several fields, through lists", object, false, []string{"spec.containers.env", "data"}, `{"data":{},"spec":{"containers":[{"env":[1],"name":"a"},{"name":"b","env":2}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`},
		{"fields of Status", object, false, []string{"status", "code"}, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}`, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}`},
		{"fields of a custom Status", object, false, []string{"status"}, `{"kind":"Status","apiVersion":"example.com/v1","status":"Success"}`, `{"kind":"Status","apiVersion":"example.com/v1"}`},
		{"an error in a watch", watch, false, []string{"status"}, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure"}}`, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure"}}`},
		{"a long name", object, false, owned, `{"metadata":{"managedFields":1,"` + strings.Repeat("x", 9000) + `":1,"managedFields":2}}`, `{"metadata":{"` + strings.Repeat("x", 9000) + `":1}}`},
		{"much white space before a name", object, false, owned, `{"metadata":{"a":1,` + strings.Repeat(" ", 9000) + `"managedFields":2,"b":3}}`, ``},
		{"text that is not JSON", object, false, owned, `404 page not found`, `404 page not found`},
		{"a truncated object", object, false, owned, `{"metadata":{"a":1,"managedFi`, `{"metadata":{"a":1,"managedFi`},
		{"a comma too many", object, false, owned, `{"metadata":{"a":1,,"managedFields":1}}`, `{"metadata":{"a":1,,"managedFields":1}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, arriving := range sizes {
				for _, reading := range sizes {
					out, err := strip(t, newJSON(roots(test.fields, test.table).root(test.what, test.table)), []byte(test.in), arriving, reading)
					if err != nil {
						t.Fatal(err)
					}
					if test.want == "" {
						if got := fmt.Sprint(decodeJSON(t, out)); got != "[map[metadata:map[a:1 b:3]]]" {
							t.Fatalf("in pieces of %d: %s", arriving, out)
						}
					} else if string(out) != test.want {
						t.Fatalf("in pieces of %d read in pieces of %d:\n got %s\nwant %s", arriving, reading, out, test.want)
					}
				}
			}
		})
	}
}

// vectors are recorded responses of Kubernetes, the same object in each format.
type vector struct {
	name   string
	format string
	data   []byte
}

func vectors(t testing.TB) []vector {
	t.Helper()
	folder := filepath.Join("..", "..", "..", "tests", "vectors")
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		t.Skip("the recorded responses are not here: ", err)
	}
	var index map[string]struct {
		Files map[string]string
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	var all []vector
	for name, entry := range index {
		for format, file := range entry.Files {
			data, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, ".b64") {
				if data, err = base64.StdEncoding.DecodeString(strings.Map(func(r rune) rune {
					if r == '\n' {
						return -1
					}
					return r
				}, string(data))); err != nil {
					t.Fatal(err)
				}
			}
			all = append(all, vector{name, format, data})
		}
	}
	return all
}

func (v vector) shape() (shape, bool) {
	switch {
	case strings.HasPrefix(v.name, "watch-"):
		return watch, false
	case strings.HasPrefix(v.name, "table-"):
		return list, true
	case strings.HasSuffix(v.name, "list") || strings.HasPrefix(v.name, "list-"):
		return list, false
	}
	return object, false
}

var fieldSets = [][]string{
	{ManagedFields},
	{ManagedFields, "metadata.annotations", "data", "status"},
	{"spec.template.spec", "spec.containers.env", "metadata.labels.app", "spec.replicas", "metadata.managedFields.time", "rules"},
}

func decodeCBOR(data []byte) (all []any, err error) {
	for len(data) > 0 {
		end := (&cborCut{b: data}).skip(0)
		if end > len(data) {
			return nil, io.ErrUnexpectedEOF
		}
		var value any
		if err := direct.Unmarshal(data[:end], &value); err != nil {
			return nil, err
		}
		all, data = append(all, value), data[end:]
	}
	return all, nil
}

var decoders = protobuf.NewSerializer(testScheme, testScheme)

var testScheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	if err := scheme.AddToScheme(all); err != nil {
		panic(err)
	}
	all.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, &metav1.Table{})
	metav1.AddToGroupVersion(all, metav1.SchemeGroupVersion)
	return all
}()

// decodeProtobuf decodes an object, or a stream of events.
func decodeProtobuf(data []byte, what shape) ([]any, error) {
	if what == watch {
		var all []any
		for len(data) > 4 {
			size := int(data[0])<<24 | int(data[1])<<16 | int(data[2])<<8 | int(data[3])
			if size < 0 || size > len(data)-4 {
				return nil, io.ErrUnexpectedEOF
			}
			var event metav1.WatchEvent
			if err := event.Unmarshal(data[4 : 4+size]); err != nil {
				return nil, err
			}
			objects, err := decodeProtobuf(event.Object.Raw, object)
			if err != nil {
				return nil, err
			}
			all = append(all, map[string]any{"type": event.Type, "object": objects[0]})
			data = data[4+size:]
		}
		return all, nil
	}
	decoded, _, err := decoders.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return nil, err
	}
	var value any
	err = json.Unmarshal(text, &value)
	return []any{value}, err
}

func TestRecordedResponses(t *testing.T) {
	for _, v := range vectors(t) {
		what, table := v.shape()
		for _, fields := range fieldSets {
			t.Run(fmt.Sprintf("%s %s %s", v.name, v.format, fields[0]), func(t *testing.T) {
				root := roots(fields, table).root(what, table)
				var before, after []any
				for _, size := range sizes {
					var err error
					var out []byte
					switch v.format {
					case "json":
						before = decodeJSON(t, v.data)
						out, err = strip(t, newJSON(root), v.data, size, size)
						after = decodeJSON(t, out)
					case "cbor":
						before, _ = decodeCBOR(v.data)
						if out, err = strip(t, newCBOR(root), v.data, size, size); err == nil {
							after, err = decodeCBOR(out)
						}
					case "pb":
						if before, err = decodeProtobuf(v.data, what); err != nil {
							t.Skip("no Go type: ", err)
						}
						inner := root
						if what == watch {
							inner = root.children["object"]
						}
						if out, err = strip(t, newProtobufScanner(newTypes(scheme.Scheme), inner, what == watch), v.data, size, size); err == nil {
							after, err = decodeProtobuf(out, what)
						}
						if len(out) != len(v.data) {
							t.Fatal("the length of Protobuf has changed")
						}
					default:
						t.Skip("not stripped")
					}
					if err != nil {
						t.Fatal(err)
					}
					for i := range before {
						before[i] = withoutAll(before[i], fields, what, table)
					}
					if v.format == "pb" {
						typed(t, before, what)
						typed(t, after, what)
					}
					if !reflect.DeepEqual(before, after) {
						t.Fatalf("in pieces of %d:\n got %v\nwant %v", size, after, before)
					}
				}
			})
		}
	}
}

// typed decodes objects again, so that what is absent looks the same as what was removed.
func typed(t testing.TB, all []any, what shape) {
	for i := range all {
		root, ok := all[i].(map[string]any)
		if !ok {
			continue
		}
		if what == watch {
			inner := []any{root["object"]}
			typed(t, inner, object)
			root["object"] = inner[0]
			continue
		}
		apiVersion, _ := root["apiVersion"].(string)
		kind, _ := root["kind"].(string)
		into, err := testScheme.New(schema.FromAPIVersionAndKind(apiVersion, kind))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(root)
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
		text, _ = json.Marshal(into)
		all[i] = decodeJSON(t, text)[0]
	}
}

func FuzzJSON(f *testing.F) {
	for _, v := range vectors(f) {
		if v.format == "json" && len(v.data) < 4000 {
			f.Add(v.data, uint8(5))
		}
	}
	f.Add([]byte(`{"metadata":{"managedFields":[{"a":[1,2,"}\""]}],"m\u0061nagedFields":1 , "a" : -1e5}} true`), uint8(1))
	fields := fieldSets[1]
	s := roots(fields, false)
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		for _, what := range []shape{object, list, watch} {
			out, _ := strip(t, newJSON(s.root(what, false)), data, 1<<20, 1<<20)
			pieced, _ := strip(t, newJSON(s.root(what, false)), data, int(piece)+1, int(piece)/3+1)
			// White space may be left out, depending on what arrives together.
			if !bytes.Equal(out, pieced) {
				t.Fatalf("in pieces:\n got %q\nwant %q", pieced, out)
			}
			if !json.Valid(data) || duplicates(data) {
				continue
			}
			want, got := decodeJSON(t, data), decodeJSON(t, out)
			want[0] = withoutAll(want[0], fields, what, false)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("got %q from %q", out, data)
			}
		}
	})
}

// duplicates says whether a name occurs twice in a map: what remains of such a map depends on the decoder.
func duplicates(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	type level struct {
		names map[string]bool
		key   bool
	}
	var stack []*level
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, &level{names: map[string]bool{}, key: true})
			continue
		case json.Delim('['):
			stack = append(stack, &level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		default:
			if len(stack) > 0 && stack[len(stack)-1].key {
				top, name := stack[len(stack)-1], token.(string)
				if top.names[name] {
					return true
				}
				top.names[name], top.key = true, false
				continue
			}
		}
		if len(stack) > 0 && stack[len(stack)-1].names != nil {
			stack[len(stack)-1].key = true
		}
	}
}

func FuzzCBOR(f *testing.F) {
	for _, v := range vectors(f) {
		if v.format == "cbor" && len(v.data) < 4000 {
			f.Add(v.data, uint8(5))
		}
	}
	f.Add([]byte("\xbf\x68metadata\xbf\x6dmanagedFields\x9f\x01\xff\x61a\x5f\x41b\xff\xff\xff"), uint8(0))
	fields := fieldSets[1]
	s := roots(fields, false)
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		for _, what := range []shape{object, list, watch} {
			out, _ := strip(t, newCBOR(s.root(what, false)), data, 1<<20, 1<<20)
			pieced, _ := strip(t, newCBOR(s.root(what, false)), data, int(piece)+1, int(piece)/3+1)
			if !bytes.Equal(out, pieced) {
				t.Fatalf("in pieces:\n got %x\nwant %x", pieced, out)
			}
			want, err := decodeCBOR(data)
			if err != nil {
				continue
			}
			got, err := decodeCBOR(out)
			if err != nil {
				t.Fatalf("%v in %x from %x", err, out, data)
			}
			for i := range want {
				want[i] = withoutAll(want[i], fields, what, false)
			}
			if !reflect.DeepEqual(want, got) && fmt.Sprint(want) != fmt.Sprint(got) {
				t.Fatalf("got %x from %x:\n%v\n%v", out, data, got, want)
			}
		}
	})
}

func FuzzProtobuf(f *testing.F) {
	for _, v := range vectors(f) {
		if v.format == "pb" && len(v.data) < 4000 {
			what, _ := v.shape()
			f.Add(v.data, uint8(5), what == watch)
		}
	}
	fields := fieldSets[1]
	f.Fuzz(func(t *testing.T, data []byte, piece uint8, frames bool) {
		for _, what := range []shape{object, list} {
			s := roots(fields, false)
			root := s.root(what, false)
			out, err := strip(t, newProtobufScanner(s.types, root, frames), data, 1<<20, 1<<20)
			pieced, piecedErr := strip(t, newProtobufScanner(s.types, root, frames), data, int(piece)+1, int(piece)/3+1)
			if (err == nil) != (piecedErr == nil) || err == nil && !bytes.Equal(out, pieced) {
				t.Fatalf("in pieces:\n got %x %v\nwant %x %v", pieced, piecedErr, out, err)
			}
			if err != nil {
				continue
			}
			decode := what
			if frames {
				decode = watch
			}
			want, err := decodeProtobuf(data, decode)
			if err != nil {
				continue
			}
			got, err := decodeProtobuf(out, decode)
			if err != nil {
				t.Fatalf("%v in %x from %x", err, out, data)
			}
			if frames && what == list {
				continue
			}
			for i := range want {
				want[i] = withoutAll(want[i], fields, decode, false)
			}
			typed(t, want, decode)
			typed(t, got, decode)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("got %x from %x:\n%v\n%v", out, data, got, want)
			}
		}
	})
}
