// Random FieldsV1 texts, valid and invalid, with the results of Kubernetes' reader and writer: one JSON line each with
// the text in base64, and either "out" (also base64) or "bad": true. See fields_v1_test.cc.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var rnd *rand.Rand

func pick(s ...string) string { return s[rnd.Intn(len(s))] }

func str() string {
	out := ""
	for i := rnd.Intn(4); i > 0; i-- {
		out += pick("a", "b", "spec", "é", "<", "&", "\"", "\\", "\n", "\t", "\b", "\u2028", "😀", ":", ".", "/", " ", "\x7f", "0")
	}
	return out
}

func number() string {
	return pick("0", "1", "-1", "80", "80.0", "1.5", "-0", "-0.0", "1e3", "1E+2", "1e-7", "0.000001", "1e20", "1e21", "123456789012345678", "9007199254740993", "1.7976931348623157e308", "5e-324", "01", "1.", ".5", "+1", "-", "1e400", "0x1", "1e", "12a")
}

func val(depth int) string {
	switch rnd.Intn(9) {
	case 0, 1, 2:
		b, _ := json.Marshal(str())
		return string(b)
	case 3, 4:
		return number()
	case 5:
		return pick("true", "false", "null", "tru", "nul")
	case 6:
		if depth > 0 {
			return "[" + val(depth-1) + pick(",", ", ") + val(depth-1) + "]"
		}
	case 7:
		if depth > 0 {
			b, _ := json.Marshal(str())
			return "{" + string(b) + ":" + val(depth-1) + "}"
		}
	}
	b, _ := json.Marshal(str())
	return string(b)
}

func element() string {
	switch rnd.Intn(12) {
	case 0, 1, 2, 3, 4:
		return "f:" + str()
	case 5, 6, 7:
		var parts []string
		for i := rnd.Intn(3); i >= 0; i-- {
			b, _ := json.Marshal(str())
			parts = append(parts, string(b)+pick(":", " : ")+val(1))
		}
		return "k:{" + strings.Join(parts, ",") + "}" + pick("", "", "", " ", "x")
	case 8, 9:
		return "v:" + val(2) + pick("", "", "", " ", ",1")
	case 10:
		return "i:" + pick("0", "1", "10", "-3", "+5", "x", "", "1.0", " 1", "99999999999999999999")
	default:
		return pick("x:y", "f", "", "ff", "fx:", "z:", "k:", "v:", "k:null", "k:[]", ".")
	}
}

func level(depth int) string {
	var parts []string
	for i := rnd.Intn(4); i > 0; i-- {
		name := element()
		if rnd.Intn(5) == 0 {
			name = "."
		}
		b, _ := json.Marshal(name)
		if rnd.Intn(2) == 0 {
			var buf bytes.Buffer
			e := json.NewEncoder(&buf)
			e.SetEscapeHTML(false)
			e.Encode(name)
			b = bytes.TrimSpace(buf.Bytes())
		}
		child := pick("{}", "{}", "{}", "null", "{ }", "1", "[]", "\"x\"")
		if rnd.Intn(3) != 0 {
			child = "{}"
		}
		if depth > 0 && rnd.Intn(2) == 0 {
			child = level(depth - 1)
		}
		parts = append(parts, string(b)+pick(":", ": ", " :")+child)
	}
	return "{" + pick("", " ") + strings.Join(parts, pick(",", " , ")) + "}"
}

func main() {
	seed := flag.Int64("seed", 1, "")
	cases := flag.Int("cases", 1000, "")
	flag.Parse()
	rnd = rand.New(rand.NewSource(*seed))
	for i := 0; i < *cases; i++ {
		text := level(3)
		switch rnd.Intn(12) {
		case 0:
			text = text[:rnd.Intn(len(text)+1)]
		case 1:
			at := rnd.Intn(len(text))
			text = text[:at] + pick("{", "}", "\"", ":", ",", "\\", "x", "\x01", "\xff", "n") + text[at+1:]
		case 2:
			text += pick(" ", "x", "{}", "\n", "null")
		}
		s := fieldpath.NewSet()
		err := s.FromJSON(strings.NewReader(text))
		in := base64.StdEncoding.EncodeToString([]byte(text))
		if err != nil {
			fmt.Fprintf(os.Stdout, "{\"in\":%q,\"bad\":true}\n", in)
			continue
		}
		out, err := s.ToJSON()
		if err != nil {
			continue
		}
		fmt.Fprintf(os.Stdout, "{\"in\":%q,\"out\":%q}\n", in, base64.StdEncoding.EncodeToString(out))
	}
}
