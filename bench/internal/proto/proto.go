// Package proto is how the driver talks with a side: lines of words, each
// key=value without a space in it, so that a side in C needs no parser worth the
// name.
//
//	side:   ready library=s2n-tls_0.3.47,AWS-LC_FIPS_3.6.0
//	driver: run kind=handshake version=772 group=4588 cert=ecdsa-p256 mutual=0 transport=mem … n=100
//	side:   ok ops=100 user_ns=… sys_ns=… wall_ns=… version=772 group=4588 suite=4865
//	driver: hello kind=handshake …
//	side:   ok hello=160301…
//
// Instead of ok, "unsupported" says that a side does not have a case, and "error"
// that it failed; the rest of the line is why. A side ends when its input does.
package proto

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Spec is what is to be done. The zero value of a field means that the kind has no use for it.
type Spec struct {
	Kind      string `wire:"kind" json:"kind"`             // handshake, storm, bulk, pingpong, write, parallel, newconn, aead
	Version   uint16 `wire:"version" json:"version"`       // of TLS
	Group     uint16 `wire:"group" json:"group"`           // IANA's number
	Cert      string `wire:"cert" json:"cert"`             // ecdsa-p256, rsa-2048: the server's and the client's
	Mutual    bool   `wire:"mutual" json:"mutual"`         // the client has a certificate
	Transport string `wire:"transport" json:"transport"`   // tcp, mem
	Both      bool   `wire:"both" json:"both,omitempty"`   // bulk: both ways at once
	Size      int    `wire:"size" json:"size,omitempty"`   // bytes of a write or a message
	Conns     int    `wire:"conns" json:"conns,omitempty"` // connections at once
	Key       int    `wire:"key" json:"key,omitempty"`     // aead: bytes of the key
	Op        string `wire:"op" json:"op,omitempty"`       // aead: seal, open
}

// Request is one line to a side.
type Request struct {
	Verb string // run, hello
	Spec Spec
	N    int // operations
}

// Result is what a side measured: all of a batch, nothing of what comes before it.
// A side that cannot tell leaves a field out, and it is -1.
type Result struct {
	Ops        int64 `wire:"ops" json:"ops"`
	UserNS     int64 `wire:"user_ns" json:"user_ns"` // getrusage of the process
	SysNS      int64 `wire:"sys_ns" json:"sys_ns"`
	WallNS     int64 `wire:"wall_ns" json:"wall_ns"`
	Bytes      int64 `wire:"bytes" json:"bytes"`             // of application data that arrived
	Allocs     int64 `wire:"allocs" json:"allocs"`           // on Go's heap
	AllocBytes int64 `wire:"alloc_bytes" json:"alloc_bytes"` // the same, bytes
	Crossings  int64 `wire:"crossings" json:"crossings"`     // calls from Go into C
	Faults     int64 `wire:"faults" json:"faults"`           // page faults without I/O
	Switches   int64 `wire:"switches" json:"switches"`       // of context, of both kinds
	P50NS      int64 `wire:"p50_ns" json:"p50_ns"`           // storm: time to a finished handshake
	P99NS      int64 `wire:"p99_ns" json:"p99_ns"`

	Version int64 `wire:"version" json:"version"` // what was negotiated, on all connections of the batch
	Group   int64 `wire:"group" json:"group"`
	Suite   int64 `wire:"suite" json:"suite"`
	Mutual  int64 `wire:"mutual" json:"mutual"` // 1: the client's certificate was verified
}

// Answer is one line from a side.
type Answer struct {
	Result Result
	Hello  []byte // the ClientHello, as it left
}

// UnsupportedError says that a side does not have a case, and why.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return "unsupported: " + e.Reason }

// Unsupported makes an UnsupportedError.
func Unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// String is the line of a request, without its end.
func (r Request) String() string {
	return r.Verb + " " + encode(r.Spec) + " n=" + strconv.Itoa(r.N)
}

// ParseRequest reads what String wrote.
func ParseRequest(line string) (Request, error) {
	var r Request
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if verb != "run" && verb != "hello" {
		return r, fmt.Errorf("no such verb: %q", verb)
	}
	r.Verb = verb
	words, err := split(rest)
	if err != nil {
		return r, err
	}
	if r.N, err = strconv.Atoi(words["n"]); err != nil {
		return r, fmt.Errorf("n: %w", err)
	}
	delete(words, "n")
	return r, decode(words, &r.Spec)
}

// Line is the line of an answer or of an error, without its end.
func Line(a *Answer, err error) string {
	if err != nil {
		verb := "error"
		if u, ok := errors.AsType[*UnsupportedError](err); ok {
			verb, err = "unsupported", errors.New(u.Reason)
		}
		return verb + " " + strings.Join(strings.Fields(err.Error()), " ")
	}
	line := "ok " + encode(a.Result)
	if a.Hello != nil {
		line += " hello=" + hex.EncodeToString(a.Hello)
	}
	return line
}

// ParseAnswer reads a side's line; what it could not do is the error.
func ParseAnswer(line string) (*Answer, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "ok":
	case "unsupported":
		return nil, Unsupported("%s", rest)
	case "error":
		return nil, errors.New(rest)
	default:
		return nil, fmt.Errorf("no answer of a side: %q", line)
	}
	words, err := split(rest)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	if h, ok := words["hello"]; ok {
		if a.Hello, err = hex.DecodeString(h); err != nil {
			return nil, fmt.Errorf("hello: %w", err)
		}
		delete(words, "hello")
	}
	a.Result = NewResult()
	return a, decode(words, &a.Result)
}

// NewResult is a result of which nothing is known.
func NewResult() Result {
	var r Result
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(-1)
	}
	return r
}

// ParseReady reads a side's first line.
func ParseReady(line string) (map[string]string, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if !ok {
		return nil, fmt.Errorf("not ready: %q", line)
	}
	return split(rest)
}

func split(s string) (map[string]string, error) {
	words := map[string]string{}
	for w := range strings.FieldsSeq(s) {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("no key=value: %q", w)
		}
		if _, twice := words[k]; twice {
			return nil, fmt.Errorf("%s is there twice", k)
		}
		words[k] = v
	}
	return words, nil
}

func encode(from any) string {
	v := reflect.ValueOf(from)
	var words []string
	for i := range v.NumField() {
		var s string
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			s = f.String()
		case reflect.Bool:
			s = "0"
			if f.Bool() {
				s = "1"
			}
		case reflect.Uint16:
			s = strconv.FormatUint(f.Uint(), 10)
		default:
			s = strconv.FormatInt(f.Int(), 10)
		}
		words = append(words, v.Type().Field(i).Tag.Get("wire")+"="+s)
	}
	return strings.Join(words, " ")
}

// decode fills to with words; a word that to does not have is an error, so that a
// misspelt one never goes unnoticed.
func decode(words map[string]string, to any) error {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("wire")
		s, ok := words[key]
		if !ok {
			continue
		}
		delete(words, key)
		var err error
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(s)
		case reflect.Bool:
			f.SetBool(s == "1")
			if s != "0" && s != "1" {
				err = fmt.Errorf("%q is neither 0 nor 1", s)
			}
		case reflect.Uint16:
			var n uint64
			n, err = strconv.ParseUint(s, 10, 16)
			f.SetUint(n)
		default:
			var n int64
			n, err = strconv.ParseInt(s, 10, 64)
			f.SetInt(n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	for key := range words {
		return fmt.Errorf("unknown word %q", key)
	}
	return nil
}
