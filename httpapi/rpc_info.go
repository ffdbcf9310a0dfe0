package httpapi

import (
	"fmt"
	"strconv"

	"gotycoon/db"
)

// rpcVoid does nothing.
func rpcVoid(*Session) error { return nil }

// rpcEcho returns its inputs.
func rpcEcho(s *Session) error {
	s.in.Sort()
	for row := range s.in.All() {
		s.out.Add(row.Name, row.Value)
	}
	return nil
}

// rpcStatus tells about one database.
func rpcStatus(s *Session) error {
	rows, err := s.call.db.Status(&s.c.Owed)
	if err != nil {
		return err
	}
	s.outMap(rows)
	return nil
}

// rpcReport tells about the server.
func rpcReport(s *Session) error {
	rows := make(map[string]string)
	if s.h.opts.Report != nil {
		s.h.opts.Report(rows)
	}
	s.h.reportCounts(rows)
	if err := s.h.reportDatabases(rows); err != nil {
		return err
	}
	s.outMap(rows)
	return nil
}

func (h *Handler) reportCounts(rows map[string]string) {
	c := h.opts.Counts
	for name, n := range map[string]int64{
		"cnt_set": c.Set.Load(), "cnt_set_misses": c.SetMisses.Load(),
		"cnt_remove": c.Remove.Load(), "cnt_remove_misses": c.RemoveMisses.Load(),
		"cnt_get": c.Get.Load(), "cnt_get_misses": c.GetMisses.Load(),
		"cnt_script": c.Script.Load(), "cnt_misc": c.Misc.Load(),
	} {
		rows[name] = strconv.FormatInt(n, 10)
	}
}

func (h *Handler) reportDatabases(rows map[string]string) error {
	var count, size int64
	for i := range h.opts.Catalog.Len() {
		d := h.opts.Catalog.DB(i)
		n, err := d.Count(new(db.Pending)) // figures for those who watch the server do not wait for its log
		if err != nil {
			return err
		}
		rows[fmt.Sprintf("db_%d", i)] = fmt.Sprintf("count=%d size=%d path=%s", n, d.Size(), d.Path())
		count += n
		size += d.Size()
	}
	rows["db_total_count"] = strconv.FormatInt(count, 10)
	rows["db_total_size"] = strconv.FormatInt(size, 10)
	return nil
}
