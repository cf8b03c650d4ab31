// Package aead gives AES-GCM from AWS-LC's FIPS module as a [cipher.AEAD].
//
// # Which of the two
//
// [NewAESGCMRandomNonce] is the approved service: the module makes the nonce of
// each message itself, and puts it before the ciphertext. It is what data at rest,
// tokens and the like want.
//
// [NewAESGCM] takes the caller's nonces, for protocols that prescribe them. Its
// Open is an approved service and its Seal is not, since FIPS 140-3 (IG C.H)
// approves AES-GCM encryption only where the module makes the nonce, or where a
// protocol such as TLS rules it. The cipher and its result are the same.
//
// # Behaviour
//
// Both behave as crypto/cipher's NewGCM and NewGCMWithRandomNonce do, and what one
// seals the other opens:
//
//   - Seal and Open append to dst and return the whole. With room in dst's array
//     they allocate nothing; else once, at any size.
//   - dst may be plaintext[:0], or ciphertext[:0] for Open, to work in place. Any
//     other overlap of the output with an input panics.
//   - A nonce of a wrong size panics, and so does a plaintext above
//     (2³²−2)·16 bytes. Open returns an error for a ciphertext above that.
//   - All failures of Open are one error, which tells nothing. The output's bytes
//     are zero then: no plaintext that was not authentic is left. Nothing outside
//     of the output is written, ever.
//   - Any number of goroutines may use one AEAD. The key schedule is made once.
//   - The key lives in C memory only, and is overwritten there once the AEAD is
//     unreachable and the garbage collector has noticed. The key slice is not kept
//     and may be cleared at once.
//
// Each call is one call into C, which alone takes some 30 ns, and holds an OS thread
// while it runs. Short messages take 1.3 to 1.8 times what crypto/cipher takes, long
// ones no more: docs/AEAD.md has figures. Whatever a
// [cipher.AEAD] does for messages, its caller counts them: a key is good for 2³²
// messages with random nonces, and a nonce must never be used twice.
package aead
