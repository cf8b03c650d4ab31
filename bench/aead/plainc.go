//go:build s2n_plainc

package main

// The same AWS-LC without Go: a loop in C over EVP_AEAD_CTX_seal and _open. It is a
// second copy of the library in this program; ours keeps its symbols to itself.

// #include <openssl/aead.h>
// #include <stdlib.h>
//
// static EVP_AEAD_CTX *start(const uint8_t *key, size_t len)
// {
//     return EVP_AEAD_CTX_new(len == 16 ? EVP_aead_aes_128_gcm() : EVP_aead_aes_256_gcm(), key, len, 16);
// }
//
// static int loop(EVP_AEAD_CTX *ctx, int seal, int n, uint8_t *dst, size_t room, const uint8_t *nonce, const uint8_t *in, size_t len, const uint8_t *ad, size_t ad_len)
// {
//     int ok = 1;
//     for (int i = 0; i < n; i++) {
//         size_t out_len;
//         uint8_t *out = dst != NULL ? dst : malloc(room);
//         ok &= seal ? EVP_AEAD_CTX_seal(ctx, out, &out_len, room, nonce, 12, in, len, ad, ad_len)
//                    : EVP_AEAD_CTX_open(ctx, out, &out_len, room, nonce, 12, in, len, ad, ad_len);
//         if (dst == NULL) {
//             free(out);
//         }
//     }
//     return ok;
// }
import "C"

import "unsafe"

func init() {
	plainC = func(m *message) side {
		ptr := func(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }
		ctx := C.start(ptr(m.key), C.size_t(len(m.key)))
		var dst []byte
		if !m.fresh {
			dst = make([]byte, len(m.ciphertext))
		}
		return side{"plain C", func(op string, n int) {
			seal, in, room := C.int(0), m.ciphertext, len(m.plaintext)
			if op == "seal" {
				seal, in, room = 1, m.plaintext, len(m.ciphertext)
			}
			if C.loop(ctx, seal, C.int(n), ptr(dst), C.size_t(room), ptr(m.nonce), ptr(in), C.size_t(len(in)), ptr(m.ad), C.size_t(len(m.ad))) != 1 {
				panic("plain C failed")
			}
		}}
	}
}
