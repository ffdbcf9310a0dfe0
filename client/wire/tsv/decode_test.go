package tsv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/tsv"
)

func TestDecode(t *testing.T) {
	const plain = tsv.TypeTSV
	for _, tc := range []struct {
		name, contentType, body string
		want                    [][2]string
	}{
		{"plain rows", plain, "a\t1\nb\t2\n", [][2]string{{"a", "1"}, {"b", "2"}}},
		{"last line end is optional", plain, "a\t1", [][2]string{{"a", "1"}}},
		{"one carriage return before the line end goes", plain, "a\t1\r\r\nb\tx\ry\n", [][2]string{{"a", "1\r"}, {"b", "x\ry"}}},
		{"rows without a tab are ignored", plain, "flag\n\na\t1\n", [][2]string{{"a", "1"}}},
		{"further tabs belong to the value", plain, "a\t1\t2\n", [][2]string{{"a", "1\t2"}}},
		{"empty name and value", plain, "\tv\na\t\n", [][2]string{{"", "v"}, {"a", ""}}},
		{"media type by prefix in any case", "TEXT/tab-separated-valuesXYZ", "a\t1\n", [][2]string{{"a", "1"}}},
		{"other types are ignored", "application/json", "a\t1\n", nil},
		{"no type is ignored", "", "a\t1\n", nil},
		{"form", tsv.TypeForm + "; charset=UTF-8", "a=1&b=x+y;c", [][2]string{{"a", "1"}, {"b", "x y"}, {"c", ""}}},
		{"form ends at NUL", tsv.TypeForm, "a=1\x00&b=2", [][2]string{{"a", "1"}}},
		{"form fields lose leading blanks", tsv.TypeForm, "  a=1&\r\n b=2\r\n&&", [][2]string{{"a", "1"}, {"b", "2"}}},
		{"form without a name", tsv.TypeForm, "=v", [][2]string{{"", "v"}}},
		{"base64", plain + "; colenc=B", "aw==\tdg==\n", [][2]string{{"k", "v"}}},
		{"base64 in lower case", plain + ";colenc=b", "aw==\tdg==\n", [][2]string{{"k", "v"}}},
		{"url", plain + "; colenc=U", "%6b\t%4g%41+\n", [][2]string{{"k", "\x04A "}}},
		{"url in quotes", plain + `;colenc="U"`, "k\t%41\n", [][2]string{{"k", "A"}}},
		{"url after charset", plain + "; charset=UTF-8; colenc=URL", "k\t%41\n", [][2]string{{"k", "A"}}},
		{"quoted", plain + "; colenc=Q", "k\ta=0ab=\n", [][2]string{{"k", "a\nb"}}},
		{"unknown encoding", plain + "; colenc=X", "k\t%41\n", [][2]string{{"k", "%41"}}},
		{"blank before =", plain + ";colenc =U", "k\t%41\n", [][2]string{{"k", "%41"}}},
		{"blank after =", plain + ";colenc= U", "k\t%41\n", [][2]string{{"k", "%41"}}},
		{"attribute of another name", plain + ";xcolenc=U", "k\t%41\n", [][2]string{{"k", "%41"}}},
		{"8-bit bytes stay", plain + "; colenc=U", "k\xc3\xa4\t\xff\n", [][2]string{{"k\xc3\xa4", "\xff"}}},
		{"of equal names the last encoded one wins", plain + "; colenc=U", "a\t2\n%61\t1\n", [][2]string{{"a", "2"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r tsv.Rows
			tsv.Decode(&r, []byte(tc.body), tc.contentType)
			r.Sort()
			require.Equal(t, tc.want, pairs(&r))
		})
	}
}

// The original decodes the parameters of the query a second time.
func TestDecodeAppliesTheEncodingToEarlierRows(t *testing.T) {
	var r tsv.Rows
	tsv.DecodeForm(&r, []byte("p=%2541"))
	tsv.Decode(&r, []byte("k\tv\n"), []byte(tsv.URL.ContentType()))
	r.Sort()
	require.Equal(t, [][2]string{{"k", "v"}, {"p", "A"}}, pairs(&r))
}

func TestDecodeColumn(t *testing.T) {
	for _, tc := range []struct {
		name      string
		encoding  tsv.Encoding
		in, out   string
		following string // what lies behind the column in memory must not change
	}{
		{"url escapes", tsv.URL, "%e5%B9%b9", "\xe5\xb9\xb9", ""},
		{"url bad digits are passed over", tsv.URL, "%zz%4g%g4", "\x00\x04\x04", ""},
		{"url escape cut off", tsv.URL, "x%2", "x", ""},
		{"url percent at the end", tsv.URL, "x%", "x", ""},
		{"url blanks and control bytes are dropped", tsv.URL, " a\tb\x7f\r", "ab", ""},
		{"url ends at NUL", tsv.URL, "a\x00b", "a", ""},
		{"url 8-bit bytes stay", tsv.URL, "+\xc3\xa4", " \xc3\xa4", ""},
		{"quoted", tsv.Quoted, "a b=3D=\r\nc=\nd\x01", "a b=cd", ""},
		{"quoted cut off", tsv.Quoted, "a=3", "a", ""},
		{"base64 skips other bytes", tsv.Base64, "d*g==", "v", ""},
		{"base64 stops after padding", tsv.Base64, "dg==dg==", "v", ""},
		{"base64 without padding", tsv.Base64, "aw", "\x00\x06\xb0", "next"},
		{"base64 single letter", tsv.Base64, "plain", "\xa6\x56\xa2\x00\x00\x27", "next"},
		{"base64 ends at NUL", tsv.Base64, "dg==\x00", "v", ""},
		{"base64 only padding", tsv.Base64, "====", "", ""},
		{"raw", tsv.Raw, "%41", "%41", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			buf := []byte(tc.in + tc.following)
			require.Equal(t, tc.out, string(tsv.DecodeColumn(buf[:len(tc.in)], tc.encoding)))
			require.Equal(t, tc.following, string(buf[len(tc.in):]))
		})
	}
}
