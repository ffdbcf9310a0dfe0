package httpapi

import (
	"fmt"
	"strconv"

	"gotycoon/db"
	"gotycoon/httpapi/jsonrows"
)

// Procedures on the server.

func rpcVoid(*call) error { return nil }

func rpcEcho(c *call) error {
	c.in.Sort()
	for row := range c.in.All() {
		c.out.rows.Add(row.Name, row.Value)
	}
	return nil
}

// rpcHelp lists the procedures, or the input of one of them, from their table. As JSON or text it
// gives the whole reference.
func rpcHelp(c *call) error {
	var p *procedure
	name, one := c.in.Get("name")
	if one {
		if p = c.table.byName[string(name)]; p == nil {
			return fmt.Errorf("%w: %s", errNotImplemented, name)
		}
	}
	if json := wantsJSON(&c.req); json || wantsText(&c.req) {
		c.document = document{plainText + "; charset=utf-8", c.table.help(p, json)}
		if json {
			c.document.kind = jsonrows.TypeJSON
		}
		return nil
	}
	if !one {
		for i := range c.table.rows {
			c.out.addText(c.table.rows[i].name, c.table.rows[i].help)
		}
		return nil
	}
	for _, row := range p.in {
		c.out.addText(row.name, row.help)
	}
	return nil
}

func rpcReport(c *call) error {
	rows := make(map[string]string)
	if c.opts.Report != nil {
		c.opts.Report(rows)
	}
	n := c.opts.Counts
	for name, count := range map[string]int64{
		"cnt_set": n.Set.Load(), "cnt_set_misses": n.SetMisses.Load(),
		"cnt_remove": n.Remove.Load(), "cnt_remove_misses": n.RemoveMisses.Load(),
		"cnt_get": n.Get.Load(), "cnt_get_misses": n.GetMisses.Load(),
		"cnt_script": n.Script.Load(), "cnt_misc": n.Misc.Load(),
	} {
		rows[name] = strconv.FormatInt(count, 10)
	}
	if err := c.reportDatabases(rows); err != nil {
		return err
	}
	c.out.addMap(rows)
	return nil
}

func (c *call) reportDatabases(rows map[string]string) error {
	var count, size int64
	for i := range c.opts.Catalog.Len() {
		d := c.opts.Catalog.DB(i)
		n, err := d.Count(new(db.Pending)) // a figure for an observer does not wait for the log
		if err != nil && d.Info().Shared { // the report says what is wrong with the engine
			n, err = max(0, d.Measure().Records), nil
		}
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
