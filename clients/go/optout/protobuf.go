package optout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// protobufScanner removes fields from the Protobuf of Kubernetes. All messages around a field are preceded by their length,
// that of a list by the length of everything: it could not be changed without holding everything back. So a dropped field
// stays where it is, but gets a number that its message does not have, which decoders skip, and its content becomes zeros.
type protobufScanner struct {
	types *types
	root  *node
	stack []protobufFrame
	skip  uint64 // Bytes of content still to come.
	clear bool   // Whether they become zeros.

	apiVersion, kind string
	broken           bool
}

type protobufFrame struct {
	form  protobufForm
	left  uint64
	open  bool // Up to the end of the stream, instead of `left`.
	place *place
}

type protobufForm int

const (
	formFrames   protobufForm = iota // Watch events, each with its length in four bytes before it.
	formEvent                        // meta/v1 WatchEvent: type #1, object #2.
	formRaw                          // RawExtension: raw #1.
	formMagic                        // "k8s\0" and an envelope.
	formEnvelope                     // runtime.Unknown: typeMeta #1, raw #2.
	formMessage                      // An object, or something in it.
)

var magic = [4]byte{'k', '8', 's', 0}

// What may be held back of a message before it is passed over: a type, or an entry of a map up to its key.
const maxHeld = 4 << 10

func newProtobufScanner(types *types, root *node, frames bool) *protobufScanner {
	s := &protobufScanner{types: types, root: root}
	form := formMagic
	if frames {
		form = formFrames
	}
	s.stack = append(s.stack, protobufFrame{form: form, open: true})
	return s
}

func (s *protobufScanner) scan(b []byte, _ int) (int, int, error) {
	r := 0
	for {
		if s.skip > 0 {
			n := min(s.skip, uint64(len(b)-r))
			if s.clear {
				clear(b[r : r+int(n)])
			}
			s.skip -= n
			r += int(n)
		}
		for len(s.stack) > 0 && s.skip == 0 && !s.stack[len(s.stack)-1].open && s.stack[len(s.stack)-1].left == 0 {
			s.stack = s.stack[:len(s.stack)-1]
		}
		if r == len(b) || s.broken || len(s.stack) == 0 {
			return len(b), len(b), nil
		}
		n, ok, err := s.step(b[r:])
		if err != nil {
			return r, len(b), err
		}
		if !ok && !s.broken {
			return r, r, nil
		}
		r += n
	}
}

// step reads the next field, or what precedes a message, at the front of b. It returns its length without the content that is
// to be skipped. ok is false if it is incomplete, or if the stream is not what it should be.
func (s *protobufScanner) step(b []byte) (n int, ok bool, err error) {
	frame := &s.stack[len(s.stack)-1]
	take := func(n uint64) {
		if !frame.open {
			frame.left -= n
		}
	}
	switch frame.form {
	case formFrames, formMagic:
		if frame.open || frame.left >= 4 {
			if len(b) < 4 {
				return 0, false, nil
			}
			if frame.form == formFrames {
				s.push(formEvent, uint64(binary.BigEndian.Uint32(b)), nil)
				return 4, true, nil
			}
			if [4]byte(b) == magic {
				take(4)
				frame.form, s.apiVersion, s.kind = formEnvelope, "", ""
				return 4, true, nil
			}
		}
		// Something else.
		s.broken = frame.open
		s.skip, s.clear, frame.left = frame.left, false, 0
		return 0, true, nil
	}

	number, wire, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return s.malformed(b, 10, tag)
	}
	content, header := uint64(0), tag
	switch wire {
	case protowire.VarintType:
		_, n := protowire.ConsumeVarint(b[tag:])
		if n < 0 {
			return s.malformed(b, 20, n)
		}
		header += n
	case protowire.Fixed64Type:
		content = 8
	case protowire.Fixed32Type:
		content = 4
	case protowire.BytesType:
		length, n := protowire.ConsumeVarint(b[tag:])
		if n < 0 {
			return s.malformed(b, 20, n)
		}
		content, header = length, header+n
	default:
		s.broken = true
		return 0, false, nil
	}
	if !frame.open && (content > frame.left || uint64(header) > frame.left-content) {
		s.broken = true
		return 0, false, nil
	}

	isMessage := wire == protowire.BytesType
	switch {
	case frame.form == formEvent && number == 2 && isMessage:
		take(uint64(header) + content)
		s.push(formRaw, content, nil)
	case frame.form == formRaw && number == 1 && isMessage:
		take(uint64(header) + content)
		s.push(formMagic, content, nil)
	case frame.form == formEnvelope && number == 1 && isMessage && content <= maxHeld:
		if uint64(len(b)-header) < content {
			return 0, false, nil
		}
		s.apiVersion, s.kind = typeMeta(b[header : header+int(content)])
		take(uint64(header) + content)
		s.skip, s.clear = content, false
	case frame.form == formEnvelope && number == 2 && isMessage:
		place, err := s.types.place(s.apiVersion, s.kind, s.root)
		if err != nil {
			return 0, false, err
		}
		take(uint64(header) + content)
		if place == nil {
			s.skip, s.clear = content, false
		} else {
			s.push(formMessage, content, place)
		}
	case frame.form == formMessage:
		child := frame.place.fields[number]
		if child != nil && child.keys != nil && isMessage {
			key, ok := mapKey(b[header:], content)
			if !ok {
				return 0, false, nil
			}
			child = child.keys[key]
		}
		if child != nil && child.drop && child.rename == 0 && content > 0 && len(b) == header {
			return 0, false, nil
		}
		take(uint64(header) + content)
		switch {
		case child == nil:
			s.skip, s.clear = content, false
		case child.drop && child.rename == 0:
			if content == 0 {
				return 0, false, fmt.Errorf("optout: cannot leave the empty field #%d out of %s %s in Protobuf; accept JSON or CBOR instead", number, s.apiVersion, s.kind)
			}
			pad(b[:header+1], content-1)
			header, content = header+1, content-1
			s.skip, s.clear = content, true
		case child.drop:
			rename(b[:header], tag, child.rename)
			s.skip, s.clear = content, true
		case isMessage:
			s.push(formMessage, content, child)
		default:
			s.skip, s.clear = content, false
		}
	default:
		take(uint64(header) + content)
		s.skip, s.clear = content, false
	}
	return header, true, nil
}

func (s *protobufScanner) push(form protobufForm, left uint64, place *place) {
	s.stack = append(s.stack, protobufFrame{form: form, left: left, place: place})
}

// malformed decides whether a field is incomplete or not Protobuf.
func (s *protobufScanner) malformed(b []byte, enough int, code int) (int, bool, error) {
	s.broken = len(b) >= enough || !errors.Is(protowire.ParseError(code), io.ErrUnexpectedEOF)
	return 0, false, nil
}

// typeMeta decodes apiVersion #1 and kind #2.
func typeMeta(b []byte) (apiVersion, kind string) {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeField(b)
		if n < 0 {
			return
		}
		if wire == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			value, _ := protowire.ConsumeBytes(b[tag:])
			switch number {
			case 1:
				apiVersion = string(value)
			case 2:
				kind = string(value)
			}
		}
		b = b[n:]
	}
	return
}

// mapKey reads the key #1 of an entry, which encoders write first. ok is false if more bytes are needed.
func mapKey(b []byte, content uint64) (key string, ok bool) {
	available := b[:min(uint64(len(b)), content)]
	complete := uint64(len(available)) == content
	number, wire, tag := protowire.ConsumeTag(available)
	if tag < 0 {
		return "", complete || len(available) >= 10
	}
	if number != 1 || wire != protowire.BytesType {
		return "", true
	}
	length, n := protowire.ConsumeVarint(available[tag:])
	if n < 0 {
		return "", complete || len(available) >= 20
	}
	if length > maxName {
		return "", true
	}
	if uint64(len(available)-tag-n) < length {
		return "", complete
	}
	return string(available[tag+n : tag+n+int(length)]), true
}

// rename gives a field another number, in as many bytes, and sets its value to zero if it is a varint.
func rename(header []byte, tag int, number protowire.Number) {
	wire := protowire.Type(header[0] & 7)
	value := protowire.EncodeTag(number, wire)
	for i := range tag {
		header[i] = byte(value&0x7f) | 0x80
		value >>= 7
	}
	header[tag-1] &= 0x7f
	if wire == protowire.VarintType {
		for i := tag; i < len(header); i++ {
			header[i] &= 0x80
		}
	}
}

// pad replaces the header of a field whose tag has one byte by one whose tag has two. It takes a byte of the content.
func pad(header []byte, content uint64) {
	copy(header, protowire.AppendTag(nil, hidden, protowire.BytesType))
	for i := 2; i < len(header); i++ {
		header[i] = byte(content&0x7f) | 0x80
		content >>= 7
	}
	header[len(header)-1] &= 0x7f
}

// hidden is the last number whose tag has two bytes. No message of Kubernetes has it.
const hidden protowire.Number = 2047

// place is a message with fields to drop, or such a field.
type place struct {
	fields map[protowire.Number]*place
	keys   map[string]*place // Of a map: its entries are messages.
	drop   bool
	rename protowire.Number // 0 if no number with a tag as short is free.
}

// unresolved says that a path has no field numbers.
func unresolved(path, apiVersion, kind, why string) error {
	return fmt.Errorf("optout: cannot leave %s out of %s %s in Protobuf: %s; accept JSON or CBOR instead", path, apiVersion, kind, why)
}
