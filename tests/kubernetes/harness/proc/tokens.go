package proc

import (
	"fmt"
	"reflect"
	"strings"
)

// TokensOf returns the tokens in an authenticator that a test has created, as lines of --token-auth-file.
func TokensOf(authenticator interface{}) []string {
	var lines []string
	seen := map[uintptr]bool{}
	var walk func(v reflect.Value, depth int)
	walk = func(v reflect.Value, depth int) {
		if depth > 16 {
			return
		}
		switch v.Kind() {
		case reflect.Interface:
			walk(v.Elem(), depth+1)
		case reflect.Pointer:
			if v.IsNil() || seen[v.Pointer()] {
				return
			}
			seen[v.Pointer()] = true
			walk(v.Elem(), depth+1)
		case reflect.Slice:
			for i := 0; i < v.Len(); i++ {
				walk(v.Index(i), depth+1)
			}
		case reflect.Struct:
			if !strings.HasPrefix(v.Type().PkgPath(), "k8s.io/apiserver/pkg/authentication") {
				return
			}
			if v.Type().Name() == "TokenAuthenticator" && v.Kind() == reflect.Struct && v.FieldByName("tokens").IsValid() {
				for it := v.FieldByName("tokens").MapRange(); it.Next(); {
					user := it.Value().Elem()
					var groups []string
					for i := 0; i < user.FieldByName("Groups").Len(); i++ {
						groups = append(groups, user.FieldByName("Groups").Index(i).String())
					}
					lines = append(lines, fmt.Sprintf("%q,%q,%q,%q", it.Key().String(), user.FieldByName("Name").String(), user.FieldByName("UID").String(), strings.Join(groups, ",")))
				}
				return
			}
			for i := 0; i < v.NumField(); i++ {
				walk(v.Field(i), depth+1)
			}
		}
	}
	walk(reflect.ValueOf(authenticator), 0)
	return lines
}
