package optout

// cborScanner removes members from a sequence of CBOR items. A map is preceded by the number of its members, so a map that
// may lose some is held back until it is complete: metadata if managedFields are dropped.
type cborScanner struct {
	root  *node
	stack []cborLevel
	skip  uint64 // Bytes of a string still to come.

	// What is held back starts at the front of the buffer. Its items before `resume` have been walked over.
	resume     int
	collecting int // Number of levels around the map that is held back, plus 1; 0 if there is none.
	collected  *node
	broken     bool
}

// cborLevel is an open map, list, or string in chunks.
type cborLevel struct {
	node       *node
	child      *node // Of the value after the key that was read.
	left       uint64
	indefinite bool
	isMap      bool
	wantsKey   bool
}

// A head, its major type, argument and length. ok is false if it is incomplete, bad if it is not CBOR.
type cborHead struct {
	major      byte
	argument   uint64
	length     int
	indefinite bool
}

func readCBORHead(b []byte) (head cborHead, ok, bad bool) {
	if len(b) == 0 {
		return head, false, false
	}
	head.major = b[0] >> 5
	info := b[0] & 31
	switch {
	case info < 24:
		head.argument, head.length = uint64(info), 1
		return head, true, false
	case info == 31:
		head.indefinite, head.length = true, 1
		return head, true, head.major == 0 || head.major == 1 || head.major == 6
	case info > 27:
		return head, true, true
	}
	width := 1 << (info - 24)
	if len(b) < 1+width {
		return head, false, false
	}
	for _, c := range b[1 : 1+width] {
		head.argument = head.argument<<8 | uint64(c)
	}
	head.length = 1 + width
	return head, true, false
}

func (s *cborScanner) scan(b []byte, held int) (int, int, error) {
	w, from := 0, 0
	flush := func(to int) {
		if to > from {
			if w != from {
				copy(b[w:], b[from:to])
			}
			w += to - from
		}
		from = to
	}
	r, hold := s.resume, 0 // Where a map that is held back starts.
	s.resume = 0
	for r < len(b) && !s.broken {
		if s.skip > 0 {
			n := min(s.skip, uint64(len(b)-r))
			s.skip -= n
			r += int(n)
			if s.skip == 0 {
				s.complete(b, r, hold, &from, flush)
			}
			continue
		}
		head, ok, bad := readCBORHead(b[r:])
		if bad {
			s.broken = true
			break
		}
		if !ok {
			if s.collecting == 0 {
				hold = r
				flush(hold)
				return w, hold, nil
			}
			break
		}
		level := &cborLevel{node: s.root, child: s.root}
		if len(s.stack) > 0 {
			level = &s.stack[len(s.stack)-1]
		}
		// Of this item, if it is not a key.
		current := level.node
		if level.isMap {
			current = level.child
		}
		if s.collecting != 0 {
			current = nil
		}
		switch head.major {
		case 2, 3:
			if head.indefinite {
				r += head.length
				s.stack = append(s.stack, cborLevel{indefinite: true})
				continue
			}
			if level.isMap && level.wantsKey && s.collecting == 0 && level.node != nil && head.argument <= maxName {
				end := r + head.length + int(head.argument)
				if end > len(b) {
					hold = r
					flush(hold)
					return w, hold, nil
				}
				level.child = level.node.child(b[r+head.length:end], "", "")
				r = end
				s.complete(b, r, hold, &from, flush)
				continue
			}
			if level.isMap && level.wantsKey {
				level.child = nil
			}
			r += head.length
			if s.skip = head.argument; s.skip == 0 {
				s.complete(b, r, hold, &from, flush)
			}
		case 4, 5:
			if current != nil && head.major == 5 && current.drops() {
				s.collecting, s.collected = len(s.stack)+1, current
				hold = r
				flush(hold)
				current = nil
			}
			if level.isMap && level.wantsKey {
				current, level.child = nil, nil
			}
			r += head.length
			s.stack = append(s.stack, cborLevel{node: current, left: head.argument, indefinite: head.indefinite, isMap: head.major == 5, wantsKey: head.major == 5})
			if !head.indefinite && head.argument == 0 {
				s.stack = s.stack[:len(s.stack)-1]
				s.complete(b, r, hold, &from, flush)
			}
		case 6:
			r += head.length // The item that it marks follows.
		case 7:
			r += head.length
			if head.indefinite {
				if len(s.stack) == 0 || !level.indefinite || (level.isMap && !level.wantsKey) {
					s.broken = true
					break
				}
				s.stack = s.stack[:len(s.stack)-1]
			} else if level.isMap && level.wantsKey {
				level.child = nil
			}
			s.complete(b, r, hold, &from, flush)
		default:
			r += head.length
			if level.isMap && level.wantsKey {
				level.child = nil
			}
			s.complete(b, r, hold, &from, flush)
		}
	}
	if s.broken {
		s.collecting = 0
		flush(len(b))
		return w, len(b), nil
	}
	if s.collecting != 0 {
		s.resume = r - hold
		return w, hold, nil
	}
	flush(len(b))
	return w, len(b), nil
}

// complete notes that an item has ended before b[r], and with it perhaps those around it.
func (s *cborScanner) complete(b []byte, r, hold int, from *int, flush func(int)) {
	for {
		if s.collecting == len(s.stack)+1 {
			s.collecting = 0
			cut := cborCut{b: b[hold:r]}
			if n, ok := cut.strip(s.collected); ok {
				flush(hold + n)
				*from = r
			}
		}
		if len(s.stack) == 0 {
			return
		}
		level := &s.stack[len(s.stack)-1]
		if level.isMap && level.wantsKey {
			level.wantsKey = false
			return
		}
		level.wantsKey = level.isMap
		if level.indefinite {
			return
		}
		if level.left--; level.left > 0 {
			return
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
}

// cborCut removes members from a complete item in place.
type cborCut struct {
	b       []byte
	w, from int
	bad     bool
}

// strip returns the new length of the item. It changes nothing if the item is not CBOR.
func (c *cborCut) strip(n *node) (int, bool) {
	if end := c.skip(0); c.bad || end != len(c.b) {
		return 0, false
	}
	c.flush(c.value(0, n))
	return c.w, true
}

func (c *cborCut) flush(to int) {
	if to > c.from {
		if c.w != c.from {
			copy(c.b[c.w:], c.b[c.from:to])
		}
		c.w += to - c.from
	}
	c.from = to
}

func (c *cborCut) head(r int) (cborHead, int) {
	if r > len(c.b) {
		c.bad = true
		return cborHead{}, r
	}
	head, ok, bad := readCBORHead(c.b[r:])
	if !ok || bad {
		c.bad = true
	}
	return head, r + head.length
}

func (c *cborCut) isBreak(r int) bool { return r < len(c.b) && c.b[r] == 0xff }

// skip returns the end of the item at r.
func (c *cborCut) skip(r int) int {
	head, r := c.head(r)
	if c.bad {
		return r
	}
	items := head.argument
	switch head.major {
	case 0, 1, 7:
		if head.indefinite {
			c.bad = true // A break without anything to end.
		}
		return r
	case 2, 3:
		if !head.indefinite {
			if head.argument > uint64(len(c.b)-r) {
				c.bad = true
				return r
			}
			return r + int(head.argument)
		}
	case 5:
		if items > uint64(len(c.b)) {
			c.bad = true
			return r
		}
		items *= 2
	case 6:
		return c.skip(r)
	}
	for i := uint64(0); !c.bad && (head.indefinite || i < items); i++ {
		if head.indefinite && c.isBreak(r) {
			return r + 1
		}
		r = c.skip(r)
	}
	return r
}

// text returns the string at r, or nothing for anything else, and where it ends.
func (c *cborCut) text(r int) ([]byte, int) {
	end := c.skip(r)
	if head, start := c.head(r); (head.major == 2 || head.major == 3) && !head.indefinite {
		return c.b[start:end], end
	}
	return nil, end
}

// value drops members of the item at r and returns its end. The item is known to be complete.
func (c *cborCut) value(r int, n *node) int {
	head, start := c.head(r)
	switch {
	case n == nil || head.major < 4 || head.major == 7:
		return c.skip(r)
	case head.major == 6:
		return c.value(start, n)
	}
	each := func(do func(r int) int) int {
		r := start
		for i := uint64(0); head.indefinite || i < head.argument; i++ {
			if head.indefinite && c.isBreak(r) {
				return r + 1
			}
			r = do(r)
		}
		return r
	}
	if head.major == 4 {
		return each(func(r int) int { return c.value(r, n) })
	}
	var kind, apiVersion string
	if n.whole {
		// Members come in any order.
		each(func(r int) int {
			key, r := c.text(r)
			value, _ := c.text(r)
			switch string(key) {
			case "kind":
				kind = string(value)
			case "apiVersion":
				apiVersion = string(value)
			}
			return c.skip(r)
		})
	}
	c.flush(start)
	count := c.w - (start - r)
	removed := uint64(0)
	end := each(func(r int) int {
		key, at := c.text(r)
		child := n.child(key, kind, apiVersion)
		if child == nil {
			return c.skip(at)
		}
		if !child.drop {
			return c.value(at, child)
		}
		c.flush(r)
		removed++
		c.from = c.skip(at)
		return c.from
	})
	if removed > 0 && !head.indefinite {
		left := head.argument - removed
		if start-r == 1 {
			c.b[count] = 5<<5 | byte(left)
		} else {
			for i := start - r - 1; i > 0; i-- {
				c.b[count+i] = byte(left)
				left >>= 8
			}
		}
	}
	return end
}
