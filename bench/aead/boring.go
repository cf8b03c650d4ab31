//go:build boringcrypto

package main

import b "crypto/boring"

var boring = b.Enabled()
