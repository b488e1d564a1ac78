// Generates random schemas, objects and sequences of applies and updates, runs them through the Go merge engine, and
// prints one JSON line per case, with input and output. See engine_vectors_test.cc.
//
//	go run . -seed 1 -cases 1000 > engine.jsonl       (in a module that requires sigs.k8s.io/structured-merge-diff/v6)
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

type m = map[string]interface{}
type l = []interface{}

var rnd *rand.Rand

func pick(s ...string) string { return s[rnd.Intn(len(s))] }
func chance(p float64) bool  { return rnd.Float64() < p }

// --- Schemas, in the format of the engine.

type gen struct {
	types l
	n     int
}

func (g *gen) scalar() m { return m{"scalar": pick("string", "numeric", "boolean", "untyped", "string")} }

func (g *gen) ref(depth int) m {
	if depth <= 0 {
		return g.scalar()
	}
	switch rnd.Intn(12) {
	case 0, 1, 2:
		return g.scalar()
	case 3, 4:
		r := g.named(g.structAtom(depth - 1))
		if chance(0.2) {
			r["elementRelationship"] = pick("atomic", "separable")
		}
		return r
	case 5:
		return g.structAtom(depth - 1)
	case 6:
		a := m{"map": m{"elementType": g.ref(depth - 1)}}
		if chance(0.25) {
			a["map"].(m)["elementRelationship"] = "atomic"
		}
		return a
	case 7:
		return m{"list": m{"elementType": g.ref(depth - 1), "elementRelationship": "atomic"}}
	case 8:
		return m{"list": m{"elementType": m{"scalar": pick("string", "numeric", "untyped")}, "elementRelationship": "associative"}}
	case 9, 10:
		return g.keyed(depth - 1)
	default:
		return m{"namedType": pick("__untyped_deduced_", "__untyped_atomic_", "__untyped_deduced_")}
	}
}

func (g *gen) named(atom m) m {
	g.n++
	name := fmt.Sprintf("t%d", g.n)
	atom["name"] = name
	g.types = append(g.types, atom)
	return m{"namedType": name}
}

func (g *gen) structAtom(depth int) m {
	var fields l
	for _, name := range []string{"a", "b", "c", "d"} {
		if chance(0.7) {
			fields = append(fields, m{"name": name, "type": g.ref(depth)})
		}
	}
	if fields == nil {
		fields = l{m{"name": "a", "type": g.scalar()}}
	}
	atom := m{"fields": fields}
	if chance(0.15) {
		atom["elementType"] = m{"namedType": "__untyped_deduced_"}
	}
	if chance(0.15) {
		atom["elementRelationship"] = "atomic"
	}
	return m{"map": atom}
}

func (g *gen) keyed(depth int) m {
	keys := l{"k"}
	if chance(0.4) {
		keys = l{"k", "j"}
	}
	fields := l{}
	for _, k := range keys {
		f := m{"name": k, "type": m{"scalar": pick("string", "numeric")}}
		if chance(0.4) {
			if f["type"].(m)["scalar"] == "string" {
				f["default"] = "a"
			} else {
				f["default"] = 1
			}
		}
		fields = append(fields, f)
	}
	for _, name := range []string{"v", "w"} {
		fields = append(fields, m{"name": name, "type": g.ref(depth)})
	}
	item := m{"fields": fields}
	if chance(0.15) {
		item["elementRelationship"] = "atomic"
	}
	return m{"list": m{"elementType": g.named(m{"map": item}), "elementRelationship": "associative", "keys": keys}}
}

func schemaOf() m {
	g := &gen{}
	var fields l
	for _, name := range []string{"p", "q", "r", "s"} {
		fields = append(fields, m{"name": name, "type": g.ref(3)})
	}
	g.types = append(g.types, m{"name": "root", "map": m{"fields": fields}})
	g.types = append(g.types,
		m{"name": "__untyped_atomic_", "scalar": "untyped",
			"list": m{"elementType": m{"namedType": "__untyped_atomic_"}, "elementRelationship": "atomic"},
			"map":  m{"elementType": m{"namedType": "__untyped_atomic_"}, "elementRelationship": "atomic"}},
		m{"name": "__untyped_deduced_", "scalar": "untyped",
			"list": m{"elementType": m{"namedType": "__untyped_atomic_"}, "elementRelationship": "atomic"},
			"map":  m{"elementType": m{"namedType": "__untyped_deduced_"}, "elementRelationship": "separable"}})
	return m{"types": g.types}
}

// --- Values.

type maker struct {
	named      map[string]m
	duplicates bool
	wrong      float64 // How often a value has the wrong type.
}

func scalarOf(kind string) interface{} {
	switch kind {
	case "string":
		return pick("a", "b", "c")
	case "numeric":
		switch rnd.Intn(4) {
		case 0:
			return int64(1)
		case 1:
			return int64(2)
		case 2:
			return 1.5
		default:
			return 1.0
		}
	case "boolean":
		return chance(0.5)
	}
	return scalarOf(pick("string", "numeric", "boolean"))
}

func (k *maker) untyped(depth int) interface{} {
	if depth <= 0 {
		return scalarOf("untyped")
	}
	switch rnd.Intn(5) {
	case 0:
		out := m{}
		for _, name := range []string{"a", "b"} {
			if chance(0.6) {
				out[name] = k.untyped(depth - 1)
			}
		}
		return out
	case 1:
		out := l{}
		for i := rnd.Intn(3); i > 0; i-- {
			out = append(out, k.untyped(depth-1))
		}
		return out
	case 2:
		return nil
	default:
		return scalarOf("untyped")
	}
}

func (k *maker) make(ref m) interface{} {
	if chance(0.06) {
		return nil
	}
	if chance(k.wrong) {
		return k.untyped(2)
	}
	if name, ok := ref["namedType"].(string); ok {
		if strings.HasPrefix(name, "__") {
			return k.untyped(3)
		}
		ref = k.named[name]
	}
	if s, ok := ref["scalar"].(string); ok {
		return scalarOf(s)
	}
	if mm, ok := ref["map"].(m); ok {
		out := m{}
		if fields, ok := mm["fields"].(l); ok {
			for _, f := range fields {
				if chance(0.6) {
					out[f.(m)["name"].(string)] = k.make(f.(m)["type"].(m))
				}
			}
		}
		if e, ok := mm["elementType"].(m); ok {
			for _, name := range []string{"x", "y"} {
				if chance(0.4) {
					out[name] = k.make(e)
				}
			}
		}
		return out
	}
	ll := ref["list"].(m)
	out := l{}
	keys, keyed := ll["keys"].(l)
	seen := map[string]bool{}
	for i := rnd.Intn(4); i > 0; i-- {
		v := k.make(ll["elementType"].(m))
		if ll["elementRelationship"] == "associative" {
			if v == nil {
				continue
			}
			id := ""
			if keyed {
				item, ok := v.(m)
				if !ok {
					if k.wrong > 0 {
						out = append(out, v)
					}
					continue
				}
				for _, key := range keys {
					if k.wrong > 0 && chance(0.3) {
						// Go prints a map inside a key in random order.
						switch item[key.(string)].(type) {
						case m, l:
							delete(item, key.(string))
						}
						continue
					}
					switch item[key.(string)].(type) {
					case m, l:
						delete(item, key.(string))
					}
					// Usually present, never null: a null key is legal but of little interest.
					if _, ok := item[key.(string)]; !ok && chance(0.8) || item[key.(string)] == nil {
						item[key.(string)] = k.keyValue(ll, key.(string))
					}
				}
				for _, key := range keys {
					id += fmt.Sprint(item[key.(string)], "/")
				}
			} else {
				id = fmt.Sprintf("%T%v", v, v)
				if f, ok := v.(float64); ok && f == 1.0 {
					id = "int641"
				}
			}
			if seen[id] && !(k.duplicates && chance(0.5)) {
				continue
			}
			seen[id] = true
		}
		out = append(out, v)
	}
	return out
}

func (k *maker) keyValue(list m, key string) interface{} {
	item := k.named[list["elementType"].(m)["namedType"].(string)]
	for _, f := range item["map"].(m)["fields"].(l) {
		if f.(m)["name"] == key {
			return scalarOf(f.(m)["type"].(m)["scalar"].(string))
		}
	}
	return "a"
}

// Changes a part of a value, keeping the rest.
func (k *maker) change(ref m, v interface{}) interface{} {
	if chance(0.15) {
		return k.make(ref)
	}
	if name, ok := ref["namedType"].(string); ok {
		if strings.HasPrefix(name, "__") {
			return v
		}
		ref = k.named[name]
	}
	if mm, ok := ref["map"].(m); ok {
		old, ok := v.(m)
		if !ok {
			return v
		}
		out := m{}
		types := map[string]m{}
		if fields, ok := mm["fields"].(l); ok {
			for _, f := range fields {
				types[f.(m)["name"].(string)] = f.(m)["type"].(m)
			}
		}
		for key, val := range old {
			if chance(0.1) {
				continue
			}
			if t, ok := types[key]; ok {
				out[key] = k.change(t, val)
			} else {
				out[key] = val
			}
		}
		return out
	}
	return v
}

// --- Running.

type same struct{}

func (same) Convert(v *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if version == "gone" {
		return nil, fmt.Errorf("gone")
	}
	return v, nil
}
func (same) IsMissingVersionError(err error) bool { return err != nil && err.Error() == "gone" }

func copyOf(v interface{}) interface{} {
	switch t := v.(type) {
	case m:
		out := m{}
		for k, x := range t {
			out[k] = copyOf(x)
		}
		return out
	case l:
		out := l{}
		for _, x := range t {
			out = append(out, copyOf(x))
		}
		return out
	}
	return v
}

func plain(v value.Value) interface{} {
	if v == nil {
		return nil
	}
	return v.Unstructured()
}

func setText(s *fieldpath.Set) json.RawMessage {
	b, err := s.ToJSON()
	if err != nil {
		panic(err)
	}
	return b
}

// Randomly turns granular into atomic and back.
func toggle(atom m) {
	if mm, ok := atom["map"].(m); ok {
		if chance(0.4) {
			if mm["elementRelationship"] == "atomic" {
				mm["elementRelationship"] = "separable"
			} else {
				mm["elementRelationship"] = "atomic"
			}
		}
		if fields, ok := mm["fields"].(l); ok {
			for _, f := range fields {
				toggle(f.(m)["type"].(m))
			}
		}
		if e, ok := mm["elementType"].(m); ok {
			toggle(e)
		}
	}
	if ll, ok := atom["list"].(m); ok {
		if ll["elementRelationship"] == "associative" && chance(0.3) {
			ll["elementRelationship"] = "atomic"
			delete(ll, "keys")
		}
		toggle(ll["elementType"].(m))
	}
}

func caseOf() m {
	schema := schemaOf()
	first := schema
	text, _ := json.Marshal(schema)
	parser, err := typed.NewParser(typed.YAMLObject(text))
	if err != nil {
		panic(err)
	}
	root := parser.Type("root")
	k := &maker{named: map[string]m{}}
	for _, t := range schema["types"].(l) {
		k.named[t.(m)["name"].(string)] = t.(m)
	}
	reset := ""
	builder := merge.UpdaterBuilder{Converter: same{}}
	if chance(0.2) {
		reset = pick("p", "q", "r", "s")
		filter := fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(reset)))
		builder.IgnoreFilter = map[fieldpath.APIVersion]fieldpath.Filter{"v1": filter}
	}
	updater := builder.BuildUpdater()
	live, err := root.FromUnstructured(nil)
	if err != nil {
		panic(err)
	}
	managers := fieldpath.ManagedFields{}
	var steps l
	for i := 2 + rnd.Intn(6); i > 0; i-- {
		if chance(0.08) {
			// The schema changes while sets are stored.
			changed := copyOf(schema).(m)
			for _, t := range changed["types"].(l) {
				if name := t.(m)["name"].(string); name != "root" && !strings.HasPrefix(name, "__") {
					toggle(t.(m))
				}
			}
			text, _ := json.Marshal(changed)
			other, err := typed.NewParser(typed.YAMLObject(text))
			if err != nil {
				panic(err)
			}
			retyped, err := other.Type("root").FromUnstructured(plain(live.AsValue()), typed.AllowDuplicates)
			if err == nil {
				schema, live, root = changed, retyped, other.Type("root")
				for _, t := range schema["types"].(l) {
					k.named[t.(m)["name"].(string)] = t.(m)
				}
				steps = append(steps, m{"op": "schema", "schema": copyOf(schema)})
			}
		}
		op := pick("apply", "apply", "force", "update")
		manager := pick("alice", "bob", "carol")
		version := pick("v1", "v1", "v1", "v2")
		k.duplicates = op == "update"
		k.wrong = 0
		if chance(0.1) {
			k.wrong = 0.1
		}
		var object interface{}
		if op == "update" && chance(0.6) && plain(live.AsValue()) != nil {
			object = k.change(m{"namedType": "root"}, copyOf(plain(live.AsValue())))
		} else {
			object = k.make(m{"namedType": "root"})
		}
		if object == nil {
			object = m{}
		}
		step := m{"op": op, "manager": manager, "version": version, "object": copyOf(object)}
		steps = append(steps, step)
		var opts []typed.ValidationOptions
		if op == "update" {
			opts = append(opts, typed.AllowDuplicates)
		}
		tv, err := root.FromUnstructured(object, opts...)
		if err != nil {
			step["invalid"] = err.Error()
			continue
		}
		step["set"] = func() json.RawMessage {
			s, err := tv.ToFieldSet()
			if err != nil {
				panic(err)
			}
			return setText(s)
		}()
		copied := managers.Copy()
		if op == "update" {
			id := manager + "-update-" + version
			next, after, err := updater.Update(live, tv, fieldpath.APIVersion(version), copied, id)
			if err != nil {
				step["error"] = err.Error()
				continue
			}
			live, managers = next, after
		} else {
			next, after, err := updater.Apply(live, tv, fieldpath.APIVersion(version), copied, manager, op == "force")
			if conflicts, ok := err.(merge.Conflicts); ok {
				var found []string
				for _, c := range conflicts {
					found = append(found, c.Manager+" "+c.Path.String())
				}
				sort.Strings(found)
				step["conflicts"] = found
				continue
			}
			if err != nil {
				step["error"] = err.Error()
				continue
			}
			step["changed"] = next != nil
			if next != nil {
				live = next
			}
			managers = after
		}
		step["live"] = copyOf(plain(live.AsValue()))
		owners := m{}
		extracts := m{}
		for name, vs := range managers {
			owners[name] = m{"set": setText(vs.Set()), "version": string(vs.APIVersion())}
			if vs.Applied() {
				extracts[name] = copyOf(plain(live.ExtractItems(vs.Set().Leaves()).AsValue()))
			}
		}
		step["owners"] = owners
		step["extracts"] = extracts
	}
	return m{"schema": first, "reset": reset, "steps": steps}
}

func main() {
	seed := flag.Int64("seed", 1, "")
	cases := flag.Int("cases", 1000, "")
	flag.Parse()
	rnd = rand.New(rand.NewSource(*seed))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for i := 0; i < *cases; i++ {
		if err := out.Encode(caseOf()); err != nil {
			panic(err)
		}
	}
}
