package optout

import (
	"bufio"
	"compress/gzip"
	"io"
)

// scanner removes fields from a stream in place.
type scanner interface {
	// scan is given the next bytes of the stream, of which the first `held` were held back before. It moves what remains to
	// the front and returns its length. Bytes from `hold` on are undecided: they are given again, before further bytes.
	scan(b []byte, held int) (out, hold int, err error)
}

// body is the body of a response without the dropped fields.
type body struct {
	source  io.Reader
	closer  io.Closer
	scanner scanner
	held    []byte // Undecided bytes.
	scratch []byte // Used where the caller's buffer is too small to scan in.
	ready   []byte // The scanned part of scratch.
	err     error
}

const (
	// A buffer must have room for so many bytes after the undecided ones to be worth scanning in.
	minRead     = 512
	scratchSize = 8 << 10
)

func (b *body) Close() error { return b.closer.Close() }

func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if len(b.ready) > 0 {
			n := copy(p, b.ready)
			b.ready = b.ready[n:]
			return n, nil
		}
		if b.err != nil {
			return 0, b.err
		}
		into := p
		if len(p) < len(b.held)+minRead {
			if need := max(scratchSize, 2*len(b.held)); len(b.scratch) < need {
				b.scratch = make([]byte, need)
			}
			into = b.scratch
		}
		held := copy(into, b.held)
		n, err := b.source.Read(into[held:])
		got := into[:held+n]
		out, hold, scanErr := b.scanner.scan(got, held)
		if scanErr != nil {
			b.err = scanErr
			return 0, scanErr
		}
		if err != nil {
			// Truncated: the reader is to find out by itself.
			out += copy(got[out:], got[hold:])
			hold = len(got)
			b.err = err
		}
		b.held = append(b.held[:0], got[hold:]...)
		if &into[0] != &p[0] {
			b.ready = into[:out]
		} else if out > 0 {
			return out, nil
		}
	}
}

// gunzip reads members of a gzip stream. A watch has one for each flush; unlike gzip.Reader's own multistream mode, this does
// not wait for the next one before it returns what it has.
type gunzip struct {
	source *bufio.Reader
	reader *gzip.Reader
}

func newGunzip(source io.Reader) *gunzip { return &gunzip{source: bufio.NewReader(source)} }

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		if g.reader == nil {
			if _, err := g.source.Peek(1); err != nil {
				return 0, err
			}
			reader, err := gzip.NewReader(g.source)
			if err != nil {
				return 0, err
			}
			reader.Multistream(false)
			g.reader = reader
		}
		n, err := g.reader.Read(p)
		if err == io.EOF {
			err, g.reader = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}
