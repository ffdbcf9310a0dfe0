package httpapi

import (
	"fmt"
	"strconv"

	"gotycoon/db"
)

// Procedures on the server.

func rpcVoid(*Session) error { return nil }

func rpcEcho(s *Session) error {
	s.in.Sort()
	for row := range s.in.All() {
		s.out.rows.Add(row.Name, row.Value)
	}
	return nil
}

// rpcHelp lists the procedures, or the input of one of them, from their table.
func rpcHelp(s *Session) error {
	name, one := s.in.Get("name")
	if !one {
		for i := range s.h.table {
			s.out.addText(s.h.table[i].name, s.h.table[i].help)
		}
		return nil
	}
	p := s.h.procedures[string(name)]
	if p == nil {
		return fmt.Errorf("%w: %s", errNotImplemented, name)
	}
	for _, row := range p.in {
		s.out.addText(row.name, row.help)
	}
	return nil
}

func rpcReport(s *Session) error {
	rows := make(map[string]string)
	if s.h.opts.Report != nil {
		s.h.opts.Report(rows)
	}
	c := s.h.opts.Counts
	for name, n := range map[string]int64{
		"cnt_set": c.Set.Load(), "cnt_set_misses": c.SetMisses.Load(),
		"cnt_remove": c.Remove.Load(), "cnt_remove_misses": c.RemoveMisses.Load(),
		"cnt_get": c.Get.Load(), "cnt_get_misses": c.GetMisses.Load(),
		"cnt_script": c.Script.Load(), "cnt_misc": c.Misc.Load(),
	} {
		rows[name] = strconv.FormatInt(n, 10)
	}
	if err := s.h.reportDatabases(rows); err != nil {
		return err
	}
	s.out.addMap(rows)
	return nil
}

func (h *Handler) reportDatabases(rows map[string]string) error {
	var count, size int64
	for i := range h.opts.Catalog.Len() {
		d := h.opts.Catalog.DB(i)
		n, err := d.Count(new(db.Pending)) // a figure for an observer does not wait for the log
		if err != nil {
			return err
		}
		rows[fmt.Sprintf("db_%d", i)] = fmt.Sprintf("count=%d size=%d path=%s", n, d.Size(), d.Info().Path)
		count += n
		size += d.Size()
	}
	rows["db_total_count"] = strconv.FormatInt(count, 10)
	rows["db_total_size"] = strconv.FormatInt(size, 10)
	return nil
}
