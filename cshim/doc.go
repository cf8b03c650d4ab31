// Package cshim is the one package that speaks C. It gives the functions of
// s2nshim.h as thin Go calls: no policy, no names of its own, no errors built,
// no goroutine and no lock. Package s2n owns all of that.
//
// Lifetime. A [Conn] counts the calls inside it: Acquire before a call and
// Release after it; Close lets the C object go when the last call is out. What
// is immutable ([Cert], [Store], [Config]) is freed when Go no longer reaches it;
// in C each connection keeps what it uses by references of its own.
//
// Errors. s2n's errno and AWS-LC's error queue belong to the OS thread, and a
// goroutine changes threads. So each C call returns what went wrong by value, in
// a [Result], and nothing is asked afterwards.
package cshim
