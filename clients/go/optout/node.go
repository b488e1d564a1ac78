package optout

import "strings"

// node is a place in a response: what is dropped below it. Lists are transparent: their elements have the node of the list.
type node struct {
	children map[string]*node
	drop     bool
	// Set where an object of the API starts whose kind decides what is dropped: Status has fields of its own.
	whole bool
	// The rows of a Table, if one was asked for. Any other kind may have a field of this name.
	rows *node
}

// add marks a dotted path as dropped.
func (n *node) add(path string) {
	for _, name := range strings.Split(path, ".") {
		child := n.children[name]
		if child == nil {
			child = &node{children: map[string]*node{}}
			n.children[name] = child
		}
		n = child
	}
	n.drop = true
}

func objectNode(fields []string, table bool) *node {
	n := &node{children: map[string]*node{}}
	for _, field := range fields {
		n.add(field)
	}
	if table {
		n.rows = &node{children: map[string]*node{"object": objectNode(fields, false)}}
	}
	n.whole = table || n.drops()
	return n
}

// drops says whether a member of this map is dropped, rather than something further down.
func (n *node) drops() bool {
	for _, child := range n.children {
		if child.drop {
			return true
		}
	}
	return false
}

// child returns what to do with a member, or nil to leave it as it is. The kind and apiVersion are those seen so far, which
// is enough: encoders write them before the fields that depend on them, except in CBOR, where the whole map is known.
func (n *node) child(key []byte, kind, apiVersion string) *node {
	if !n.whole {
		return n.children[string(key)]
	}
	if isStatus(kind, apiVersion) {
		return nil
	}
	if n.rows != nil && (kind == "" || isTable(kind, apiVersion)) {
		if string(key) == "rows" {
			return n.rows
		}
		if kind != "" {
			return nil
		}
	}
	return n.children[string(key)]
}

func isStatus(kind, apiVersion string) bool {
	return kind == "Status" && (apiVersion == "v1" || apiVersion == "")
}

func isTable(kind, apiVersion string) bool {
	return kind == "Table" && (apiVersion == "" || strings.HasPrefix(apiVersion, "meta.k8s.io/"))
}
