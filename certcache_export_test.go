package s2n

// ParsedCertKept tells tests whether a certificate is in the table of parsed ones.
func ParsedCertKept(der []byte) bool {
	_, ok := parsedCerts.Load(string(der))
	return ok
}
