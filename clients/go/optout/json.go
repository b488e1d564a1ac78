package optout

import (
	"bytes"
	"encoding/json"
)

// jsonScanner removes members from a sequence of JSON values. Each byte is looked at once; only a member's name, with the
// comma before it, is held back until it is known whether the member stays.
type jsonScanner struct {
	root  *node
	stack []jsonFrame
	state jsonState
	next  *node // Of the value that follows.

	// Of a value that is passed on or dropped as a whole.
	dropping bool
	depth    int
	inString bool
	escaped  bool // The last byte was a backslash.
	capture  *string

	nameAt int // Offset of the name's quote from the start of what is held back.
}

// jsonFrame is an open object or list with members of interest.
type jsonFrame struct {
	node             *node
	array            bool
	emitted          bool // A member was passed on, so that the next one needs its comma.
	kind, apiVersion string
}

type jsonState int

const (
	jsonValue     jsonState = iota // Before a value.
	jsonRaw                        // In a value without anything of interest.
	jsonAfter                      // After a value.
	jsonFirst                      // After {.
	jsonBeforeKey                  // After a comma in an object; held back from the comma on.
	jsonName                       // In a name; held back.
	jsonLongName                   // In a name that is too long to be of interest.
	jsonColon                      // After a name.
	jsonBroken                     // Not JSON: everything is passed on, for the decoder to complain about.
)

const (
	maxName    = 1 << 10 // Longer names are not of interest, even if every character is escaped.
	maxSpace   = 1 << 10 // More white space than this before a name is left out.
	maxCapture = 256
)

func (s *jsonScanner) top() *jsonFrame { return &s.stack[len(s.stack)-1] }

func (s *jsonScanner) scan(b []byte, r int) (int, int, error) {
	w, from := 0, 0 // b[:w] is done; b[from:r] is to be passed on.
	hold := -1
	if r > 0 {
		hold = 0
	}
	flush := func(to int) {
		if to > from {
			if w != from {
				copy(b[w:], b[from:to])
			}
			w += to - from
		}
		from = to
	}
	for r < len(b) {
		c := b[r]
		space := c == ' ' || c == '\n' || c == '\t' || c == '\r'
		switch s.state {
		case jsonValue:
			switch {
			case space:
				r++
			case c == '{' && s.next != nil && !s.dropping:
				s.stack = append(s.stack, jsonFrame{node: s.next})
				s.state = jsonFirst
				r++
			case c == '[' && s.next != nil && !s.dropping:
				s.stack = append(s.stack, jsonFrame{node: s.next, array: true})
				r++
			case c == ']' && len(s.stack) > 0 && s.top().array:
				s.stack = s.stack[:len(s.stack)-1]
				s.state = jsonAfter
				r++
			case c == '}' || c == ']' || c == ',' || c == ':':
				s.state = jsonBroken
			default:
				s.state, s.depth = jsonRaw, 0
			}
		case jsonRaw:
			var done bool
			if r, done = s.raw(b, r); done {
				if s.dropping {
					s.dropping = false
					from = r
				}
				s.capture = nil
				s.state = jsonAfter
			}
		case jsonAfter:
			switch {
			case space:
				r++
			case len(s.stack) == 0:
				s.state, s.next = jsonValue, s.root
			case c == ',' && s.top().array:
				s.state, s.next = jsonValue, s.top().node
				r++
			case c == ',':
				hold = r
				s.state = jsonBeforeKey
				r++
			case c == ']' && s.top().array, c == '}' && !s.top().array:
				s.stack = s.stack[:len(s.stack)-1]
				r++
			default:
				s.state = jsonBroken
			}
		case jsonFirst:
			switch {
			case space:
				r++
			case c == '"':
				hold = r
				s.nameAt = 0
				s.state = jsonName
				r++
			case c == '}':
				s.stack = s.stack[:len(s.stack)-1]
				s.state = jsonAfter
				r++
			default:
				s.state = jsonBroken
			}
		case jsonBeforeKey:
			switch {
			case space:
				r++
				if r-hold > maxSpace {
					flush(hold)
					b[r-1] = ','
					hold, from = r-1, r-1
				}
			case c == '"':
				s.nameAt = r - hold
				s.state = jsonName
				r++
			default:
				s.state = jsonBroken
			}
		case jsonName:
			for r < len(b) {
				c := b[r]
				r++
				if s.escaped {
					s.escaped = false
				} else if c == '\\' {
					s.escaped = true
				} else if c == '"' {
					frame := s.top()
					child := frame.member(b[hold+s.nameAt : r])
					if child != nil && child.drop {
						flush(hold)
						s.dropping, s.next = true, nil
					} else {
						s.next = child
						s.keep(b, hold, &from, flush)
						s.captureKind(b[hold+s.nameAt : r])
					}
					hold = -1
					s.state = jsonColon
					break
				}
			}
			if s.state == jsonName && r-hold > maxName+maxSpace {
				s.next = nil
				s.keep(b, hold, &from, flush)
				hold = -1
				s.state = jsonLongName
			}
		case jsonLongName:
			r++
			if s.escaped {
				s.escaped = false
			} else if c == '\\' {
				s.escaped = true
			} else if c == '"' {
				s.state = jsonColon
			}
		case jsonColon:
			switch {
			case space:
				r++
			case c == ':':
				s.state = jsonValue
				r++
			default:
				s.state = jsonBroken
			}
		case jsonBroken:
			if s.dropping {
				s.dropping = false
				from = r // The dropped member may have been in earlier pieces.
			}
			hold = -1
			r = len(b)
		}
	}
	if s.state == jsonBroken {
		hold, s.dropping = -1, false
	}
	switch {
	case hold >= 0:
		flush(hold)
		return w, hold, nil
	case s.dropping:
		return w, len(b), nil
	}
	flush(len(b))
	return w, len(b), nil
}

// keep passes the held back member on, without its comma if it is the first one that stays.
func (s *jsonScanner) keep(b []byte, hold int, from *int, flush func(int)) {
	frame := s.top()
	if b[hold] == ',' && !frame.emitted {
		flush(hold)
		*from = hold + 1
	}
	frame.emitted = true
}

// member returns the node of a member by its quoted name.
func (f *jsonFrame) member(quoted []byte) *node {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var decoded string
		if json.Unmarshal(quoted, &decoded) != nil {
			return nil
		}
		return f.node.child([]byte(decoded), f.kind, f.apiVersion)
	}
	return f.node.child(name, f.kind, f.apiVersion)
}

// captureKind records the value that follows if it says what the object is.
func (s *jsonScanner) captureKind(quoted []byte) {
	frame := s.top()
	if !frame.node.whole {
		return
	}
	switch string(quoted) {
	case `"kind"`:
		frame.kind = ""
		s.capture = &frame.kind
	case `"apiVersion"`:
		frame.apiVersion = ""
		s.capture = &frame.apiVersion
	}
}

// Bytes that end a run of uninteresting ones outside of strings.
var jsonSpecial = func() (special [256]bool) {
	for _, c := range []byte("\"{}[], \n\t\r:") {
		special[c] = true
	}
	return special
}()

// raw reads on in a value, and says whether it has ended before b[r].
func (s *jsonScanner) raw(b []byte, r int) (int, bool) {
	for r < len(b) {
		if s.inString {
			start := r
			for r < len(b) {
				c := b[r]
				r++
				if s.escaped {
					s.escaped = false
				} else if c == '\\' {
					s.escaped = true
				} else if c == '"' {
					s.inString = false
					break
				}
			}
			if s.capture != nil && s.depth == 0 {
				end := r
				if !s.inString {
					end--
				}
				if len(*s.capture)+end-start <= maxCapture {
					*s.capture += string(b[start:end])
				}
			}
			if !s.inString && s.depth == 0 {
				return r, true
			}
			continue
		}
		c := b[r]
		if !jsonSpecial[c] {
			r++
			continue
		}
		switch c {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth == 0 {
				return r, true // A number or literal ended before its parent.
			}
			s.depth--
			if s.depth == 0 {
				return r + 1, true
			}
		default:
			if s.depth == 0 {
				return r, true
			}
		}
		r++
	}
	return r, false
}
