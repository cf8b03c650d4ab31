package main

import (
	"encoding/binary"
	"errors"
)

// Hello is what a ClientHello tells of how fair a comparison is.
type Hello struct {
	Bytes  int      `json:"bytes"` // of its record
	Groups []string `json:"groups"`
	Shares []string `json:"shares"`
}

var errHello = errors.New("this is no ClientHello")

// reader takes from the front; once short, it gives zeros and stays bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.b, r.bad = nil, true
		return make([]byte, n)
	}
	t := r.b[:n]
	r.b = r.b[n:]
	return t
}

func (r *reader) u8() int  { return int(r.take(1)[0]) }
func (r *reader) u16() int { return int(binary.BigEndian.Uint16(r.take(2))) }

// sub is a part with its length before it, of size bytes.
func (r *reader) sub(size int) *reader {
	n := 0
	for _, b := range r.take(size) {
		n = n<<8 | int(b)
	}
	if n > len(r.b) {
		r.bad = true
		return &reader{bad: true}
	}
	return &reader{b: r.take(n)}
}

// parseHello reads a ClientHello in one record (RFC 8446, 4.1.2).
func parseHello(record []byte) (Hello, error) {
	h := Hello{Bytes: len(record)}
	r := &reader{b: record}
	if r.u8() != 22 { // handshake
		return h, errHello
	}
	r.u16() // the record's version
	body := r.sub(2)
	if body.u8() != 1 { // client_hello
		return h, errHello
	}
	msg := body.sub(3)
	msg.u16()    // legacy_version
	msg.take(32) // random
	msg.sub(1)   // session id
	msg.sub(2)   // cipher suites
	msg.sub(1)   // compression
	extensions := msg.sub(2)
	for _, part := range []*reader{r, body, msg, extensions} {
		if part.bad {
			return h, errHello
		}
	}
	for len(extensions.b) > 0 {
		id := extensions.u16()
		data := extensions.sub(2)
		switch id {
		case 10: // supported_groups
			for list := data.sub(2); len(list.b) > 0 && !list.bad; {
				h.Groups = append(h.Groups, groupName(uint16(list.u16())))
			}
		case 51: // key_share
			for list := data.sub(2); len(list.b) > 0 && !list.bad; {
				h.Shares = append(h.Shares, groupName(uint16(list.u16())))
				list.sub(2)
			}
		}
		if extensions.bad || data.bad {
			return h, errHello
		}
	}
	return h, nil
}
