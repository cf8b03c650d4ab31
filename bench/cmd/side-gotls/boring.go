//go:build boringcrypto

package main

import b "crypto/boring"

func boring() bool { return b.Enabled() }
