// Package apipath reads the paths of requests to the Kubernetes API.
package apipath

import "strings"

// Path names what a request is about. Name and Subresource may be empty.
type Path struct {
	Group, Version              string
	Resource, Name, Subresource string
	Watch                       bool // An old path, with watch/ before the resource.
}

// Document is the path of the OpenAPI document that describes the group and version.
func (p Path) Document() string { return Document(p.Group, p.Version) }

// Document is the path of the OpenAPI document that describes a group and version.
func Document(group, version string) string {
	if group == "" {
		return "/openapi/v3/api/" + version
	}
	return "/openapi/v3/apis/" + group + "/" + version
}

// Parse reads a URL path below the prefix of the server. ok is false unless it is that of an object or collection: discovery,
// streams to a pod and proxied requests are not.
func Parse(path, prefix string) (p Path, ok bool) {
	prefix = strings.TrimSuffix(prefix, "/")
	if !strings.HasPrefix(path, prefix+"/") {
		return p, false
	}
	parts := strings.FieldsFunc(path[len(prefix):], func(r rune) bool { return r == '/' })
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.Group, p.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return p, false
	}
	if parts[0] == "watch" {
		p.Watch, parts = true, parts[1:]
	}
	// Namespaces are themselves objects, with two subresources.
	if len(parts) > 2 && parts[0] == "namespaces" && !(len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")) {
		parts = parts[2:]
	}
	if len(parts) == 0 || len(parts) > 3 || parts[0] == "proxy" {
		return p, false
	}
	p.Resource = parts[0]
	if len(parts) > 1 {
		p.Name = parts[1]
	}
	if len(parts) > 2 {
		p.Subresource = parts[2]
	}
	switch p.Subresource {
	case "proxy", "log", "exec", "attach", "portforward":
		return p, false
	}
	return p, true
}
