module github.com/s2n-go/s2n/conformance

go 1.26.0

require (
	github.com/s2n-go/s2n v0.0.0
	golang.org/x/net v0.62.0
)

replace github.com/s2n-go/s2n => ../
