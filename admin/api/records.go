package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"gotycoon/db"
	"gotycoon/db/pages"
	"gotycoon/db/record"
)

const (
	maxPage    = 500     // records of a page
	maxExamine = 20_000  // records that one page may examine
	preview    = 160     // bytes of each value in a page
	maxShown   = 1 << 20 // bytes of a value that are shown
	maxBody    = 24 << 20
)

// recordRow is a record. JSON has bytes in base64.
type recordRow struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"` // the whole value, or its beginning
	Size  int    `json:"size"`  // of the whole value
	XT    *int64 `json:"xt"`    // when it expires, in UNIX seconds; null: never
}

func newRow(key, value []byte, size int, xt int64) recordRow {
	row := recordRow{Key: key, Value: value, Size: size}
	if row.Value == nil {
		row.Value = []byte{}
	}
	if xt != record.MaxXT {
		row.XT = &xt
	}
	return row
}

// bytesOf returns a parameter, decoded from base64; nil if it is missing.
func bytesOf(r *http.Request, name string) ([]byte, error) {
	if !r.URL.Query().Has(name) {
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(r.URL.Query().Get(name))
	if err != nil {
		return nil, refused(http.StatusBadRequest, "%s is not base64", name)
	}
	return b, nil
}

// records answers with a page of records.
func (a *API) records(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, err := database(r, s)
	if err != nil {
		return nil, err
	}
	prefix, err := bytesOf(r, "prefix")
	if err != nil {
		return nil, err
	}
	after, err := bytesOf(r, "after")
	if err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 100
	}
	page, err := pages.Of(d, nil, pages.Options{
		Prefix: prefix, After: after, Records: max(1, min(limit, maxPage)), Examine: maxExamine, Value: preview,
	})
	if err != nil {
		return nil, err
	}
	rows := []recordRow{}
	for _, rec := range page.Records {
		rows = append(rows, newRow(rec.Key, rec.Value, rec.Size, rec.XT))
	}
	return map[string]any{"records": rows, "next": page.Next, "examined": page.Examined}, nil
}

// keyed returns the database and the key that a request names.
func keyed(r *http.Request, s *Sources) (*db.DB, []byte, error) {
	d, err := database(r, s)
	if err != nil {
		return nil, nil, err
	}
	key, err := bytesOf(r, "key")
	if err == nil && key == nil {
		err = refused(http.StatusBadRequest, "the key is missing")
	}
	return d, key, err
}

// record answers with one record.
func (a *API) record(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, key, err := keyed(r, s)
	if err != nil {
		return nil, err
	}
	value, xt, err := get(r, d, key)
	if err != nil {
		return nil, err
	}
	return newRow(key, value[:min(len(value), maxShown)], len(value), xt), nil
}

// value answers with a value as a file to download.
func (a *API) value(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, key, err := keyed(r, s)
	if err != nil {
		return nil, err
	}
	value, _, err := get(r, d, key)
	if err != nil {
		return nil, err
	}
	attach(w, "value.bin")
	w.Header().Set("Content-Length", strconv.Itoa(len(value)))
	_, _ = w.Write(value) // the client may be gone
	return nil, nil
}

// attach makes the answer a download, which no browser shows as a page.
func attach(w http.ResponseWriter, name string) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// newRecord is the body of a request to store a record.
type newRecord struct {
	Key   []byte  `json:"key"`
	Value []byte  `json:"value"`
	XT    *int64  `json:"xt"`  // UNIX seconds; null: never
	Old   *[]byte `json:"old"` // value that is replaced; null: there must be no such record
}

// setRecord stores a record, unless somebody has changed it since the console showed it.
func (a *API) setRecord(w http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, err := changeable(r, s)
	if err != nil {
		return nil, err
	}
	n, err := readRecord(w, r)
	if err != nil {
		return nil, err
	}
	xt := record.Never
	if n.XT != nil {
		if *n.XT <= 0 {
			return nil, refused(http.StatusBadRequest, "a record cannot expire before 1970")
		}
		xt = record.XT(-*n.XT)
	}
	if n.Value == nil {
		n.Value = []byte{}
	}
	verb := "changed"
	if n.Old == nil {
		verb, err = "created", d.Add(nil, n.Key, n.Value, xt)
	} else {
		err = d.CAS(nil, n.Key, filled(*n.Old), n.Value, xt)
	}
	if err != nil {
		return nil, err
	}
	a.note(r, fmt.Sprintf("record %s of database %d %s", shown(n.Key), d.Index(), verb))
	return map[string]bool{"done": true}, nil
}

// readRecord reads the body of a request to store a record.
func readRecord(w http.ResponseWriter, r *http.Request) (n newRecord, err error) {
	const large = "the record has more than %d MiB in JSON: store it with another protocol"
	if r.ContentLength > maxBody {
		return n, refused(http.StatusRequestEntityTooLarge, large, maxBody>>20)
	}
	err = json.NewDecoder(&weighed{http.MaxBytesReader(w, r.Body, maxBody), purseOf(r)}).Decode(&n)
	if err == nil {
		return n, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return n, refused(http.StatusRequestEntityTooLarge, large, maxBody>>20)
	}
	if lack, ok := errors.AsType[*problem](err); ok {
		return n, lack
	}
	return n, refused(http.StatusBadRequest, "the record cannot be read: %v", err)
}

// filled returns value, which must not be nil for CAS: nil would mean that there is no record.
func filled(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// removeRecord removes a record.
func (a *API) removeRecord(_ http.ResponseWriter, r *http.Request, s *Sources) (any, error) {
	d, err := changeable(r, s)
	if err != nil {
		return nil, err
	}
	_, key, err := keyed(r, s)
	if err != nil {
		return nil, err
	}
	if err := d.Remove(nil, key); err != nil {
		return nil, err
	}
	a.note(r, fmt.Sprintf("record %s of database %d removed", shown(key), d.Index()))
	return map[string]bool{"done": true}, nil
}

// changeable returns the database that a request names, if its records may be changed here.
func changeable(r *http.Request, s *Sources) (*db.DB, error) {
	d, err := database(r, s)
	if err != nil {
		return nil, err
	}
	if why := readOnly(d, s.Catalog); why != "" {
		return nil, refused(http.StatusForbidden, "the records of this database cannot be changed here: %s", why)
	}
	return d, nil
}

// shown returns a key as the log shows it.
func shown(key []byte) string {
	const most = 64
	if len(key) <= most {
		return strconv.QuoteToASCII(string(key))
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(key[cut]) {
		cut--
	}
	return strconv.QuoteToASCII(string(key[:cut])) + "..."
}
