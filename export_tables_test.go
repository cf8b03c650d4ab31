package s2n

// KindOf is for the table over all of s2n's codes.
func KindOf(code int32) Kind { return kindOf(code) }

// NamesInTables are s2n's names that errors.go has by heart.
func NamesInTables() []string {
	var names []string
	for name := range hints {
		names = append(names, name)
	}
	for name := range certificateCodes {
		names = append(names, name)
	}
	return names
}

// Standing is what FIPS says of a version that is not linked.
func Standing(version string) (certificate, words string) { return standing(version) }
