// Nanoseconds that Kubernetes' CEL takes to compile and to evaluate an expression: cel OBJECT.json EXPRESSION SECONDS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func perCall(seconds float64, work func()) float64 {
	work()
	best := 0.0
	for round := 0; round < 5; round++ {
		calls, start := 0, time.Now()
		for time.Since(start).Seconds() < seconds/5 {
			for i := 0; i < 16; i++ {
				work()
			}
			calls += 16
		}
		if ns := float64(time.Since(start).Nanoseconds()) / float64(calls); best == 0 || ns < best {
			best = ns
		}
	}
	return best
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var object map[string]any
	check(json.Unmarshal(text, &object))
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	check(err)
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	check(err)
	env, err := base.Extend(cel.Variable("object", cel.DynType))
	check(err)
	var program cel.Program
	compile := func() {
		ast, issues := env.Compile(os.Args[2])
		check(issues.Err())
		program, err = env.Program(ast, cel.CostTracking(&library.CostEstimator{}), cel.CostLimit(celconfig.PerCallLimit), cel.EvalOptions(cel.OptTrackCost))
		check(err)
	}
	fmt.Printf("compile %.0f\n", perCall(seconds, compile))
	vars := map[string]any{"object": object}
	fmt.Printf("evaluate %.0f\n", perCall(seconds, func() {
		_, _, err := program.Eval(vars)
		check(err)
	}))
}
