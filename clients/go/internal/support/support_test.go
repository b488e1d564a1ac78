package support

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	now, asked := time.Unix(0, 0), 0
	cache := Cache{now: func() time.Time { return now }}
	document, failure := `{}`, error(nil)
	of := func() (Known, error) {
		return cache.Of(context.Background(), "x", func(context.Context) ([]byte, bool, error) {
			asked++
			return []byte(document), true, failure
		})
	}
	failure = errors.New("down")
	if _, err := of(); err == nil {
		t.Fatal("an error is lost")
	}
	failure = nil
	for range 2 {
		if known, err := of(); err != nil || known.Unset || known.Options {
			t.Fatal(known, err)
		}
	}
	document = `{"a":{"x-kubernetes-unset-marker":{}}}`
	now = now.Add(maxAge)
	if known, _ := of(); !known.Unset || asked != 3 {
		t.Fatal(known, asked)
	}
}
