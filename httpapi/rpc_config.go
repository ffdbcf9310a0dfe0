package httpapi

import "fmt"

// Procedures on the configuration.

// rpcConfigGet lists the options with their values.
func rpcConfigGet(c *call) error {
	if c.opts.Config == nil {
		return errNotImplemented
	}
	name, _ := c.in.Get("name")
	names, values, found := c.opts.Config.Rows(string(name))
	if !found {
		return fmt.Errorf("%w: there is no option %q", errInvalidParameters, name)
	}
	for i := range names {
		c.out.addText(names[i], values[i])
	}
	return nil
}

// rpcConfigSet changes an option while the server runs.
func rpcConfigSet(c *call) error {
	if c.opts.Config == nil {
		return errNotImplemented
	}
	name, err := c.in.need("name")
	if err != nil {
		return err
	}
	value, err := c.in.need("value")
	if err != nil {
		return err
	}
	who := c.conn.Client().Address
	if user := c.conn.Visitor.Name(); user != "" {
		who = user + " at " + who
	}
	lasts, err := c.opts.Config.Set(string(name), string(value), who)
	if err != nil {
		return fmt.Errorf("%w: %w", errInvalidParameters, err)
	}
	c.out.addText("lasts", lasts)
	return nil
}
