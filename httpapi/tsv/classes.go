package tsv

// What byteClass says about a byte.
const (
	classCheap = 1 << iota // counts as one byte in the estimate of the URL encoding
	classPlain             // is written unescaped in the URL encoding
)

// byteClass classifies every byte.
var byteClass = classify()

func classify() (t [256]byte) {
	for c := range t {
		if isAlphanumeric(byte(c)) {
			t[c] |= classCheap | classPlain
		}
	}
	for _, c := range []byte("-_.~") {
		t[c] |= classCheap | classPlain
	}
	for _, c := range []byte("!*'()") { // the estimate takes them for plain, the encoder does not
		t[c] |= classCheap
	}
	return t
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// notHex marks bytes that are no hexadecimal digits in hexDigit.
const notHex = 0xff

// hexDigit gives the value of a hexadecimal digit.
var hexDigit = hexDigits()

func hexDigits() (t [256]byte) {
	for i := range t {
		t[i] = notHex
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}

// notBase64 marks bytes outside the alphabet in base64Digit.
const notBase64 = 0xff

// base64Digit gives the value of a byte of the Base64 alphabet.
var base64Digit = base64Digits()

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func base64Digits() (t [256]byte) {
	for i := range t {
		t[i] = notBase64
	}
	for i := range len(base64Alphabet) {
		t[base64Alphabet[i]] = byte(i)
	}
	return t
}
