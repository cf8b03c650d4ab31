module github.com/s2n-go/s2n

go 1.25.0
