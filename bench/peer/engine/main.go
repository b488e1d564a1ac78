// engine FOLDER SECONDS: the operations of ownership_bench with the Go merge engine (structured-merge-diff), on the same
// objects and schema. Prints "case/operation nanoseconds", one line each.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Objects are the same in every version.
type sameVersions struct{}

func (sameVersions) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}
func (sameVersions) IsMissingVersionError(error) bool { return false }

type state struct {
	updater *merge.Updater
	live    *typed.TypedValue
	managed fieldpath.ManagedFields
}

func (s *state) update(object *typed.TypedValue, version fieldpath.APIVersion, manager string) {
	live, managed, err := s.updater.Update(s.live, object, version, s.managed, manager)
	must(err)
	s.live, s.managed = live, managed
}

func (s *state) apply(config *typed.TypedValue, manager string) {
	live, managed, err := s.updater.Apply(s.live, config, "v1", s.managed, manager, false)
	must(err)
	if live != nil {
		s.live = live
	}
	s.managed = managed
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func read(path string) []byte {
	text, err := os.ReadFile(path)
	must(err)
	return text
}

// The mean over at least the given time.
func nanoseconds(limit time.Duration, work func()) float64 {
	work()
	count, start := 0, time.Now()
	for time.Since(start) < limit {
		work()
		count++
	}
	return float64(time.Since(start).Nanoseconds()) / float64(count)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: engine FOLDER SECONDS")
		os.Exit(2)
	}
	folder := os.Args[1]
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	must(err)
	limit := time.Duration(seconds * float64(time.Second))
	parser, err := typed.NewParser(typed.YAMLObject(read(filepath.Join(folder, "schema.yaml"))))
	must(err)

	cases := bufio.NewScanner(strings.NewReader(string(read(filepath.Join(folder, "cases")))))
	for cases.Scan() {
		name := cases.Text()
		text := typed.YAMLObject(read(filepath.Join(folder, name+".yaml")))
		// Parsed twice, for equal objects that share no memory.
		first, err := parser.Type(name).FromYAML(text)
		must(err)
		second, err := parser.Type(name).FromYAML(text)
		must(err)
		empty, err := parser.Type(name).FromYAML("{}")
		must(err)
		print := func(operation string, work func(s *state)) {
			ns := nanoseconds(limit, func() {
				builder := merge.UpdaterBuilder{Converter: sameVersions{}}
				work(&state{updater: builder.BuildUpdater(), live: empty, managed: fieldpath.ManagedFields{}})
			})
			fmt.Printf("%s/%s %.0f\n", name, operation, ns)
		}
		print("Create", func(s *state) { s.update(first, "v1", "controller") })
		print("Apply", func(s *state) { s.apply(first, "controller") })
		print("ApplyTwice", func(s *state) { s.apply(first, "controller"); s.apply(second, "other-controller") })
		print("Update", func(s *state) {
			s.update(first, "v1", "controller")
			s.update(second, "v1", "other-controller")
		})
		print("UpdateVersion", func(s *state) {
			s.update(first, "v1", "controller")
			s.update(second, "v2", "other-controller")
		})
	}
}
