package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/ulog"
)

// Procedures on who needs the files of the update log.

const standardHold = 24 * 60 * 60 // seconds that a hold lasts if the call does not say it

// rpcUlogHold keeps the files of the update log that may have updates newer than ts, for ttl
// seconds, under a name. gap is 1 where some of these updates are gone already, or may be: the hold
// is in place all the same, and keeps what is left.
func rpcUlogHold(c *call) error {
	log := c.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	name, err := c.in.need("name")
	if err != nil {
		return err
	}
	from, err := c.holdFrom()
	if err != nil {
		return err
	}
	ttl, err := c.holdTime()
	if err != nil {
		return err
	}
	hold, err := log.Pin(string(name), from, ttl)
	if err != nil {
		return wrongHold(err)
	}
	c.opts.Logger.Info(fmt.Sprintf("the update log is kept for %s from ts=%d on, until %s", hold.What, hold.From, hold.Until.UTC().Format(time.RFC3339)))
	// Opened behind the hold, so what it finds stays.
	r, err := log.NewReader(hold.From)
	if err != nil {
		return err
	}
	defer r.Close()
	gap := int64(0)
	if r.Lost() != nil {
		gap = 1
	}
	c.out.addInt("gap", gap)
	c.out.addText("ts", strconv.FormatUint(uint64(hold.From), 10))
	return nil
}

// wrongHold says that a call asks for a hold that cannot be.
func wrongHold(err error) error {
	if err == ulog.ErrPinName || err == ulog.ErrPinTime {
		return fmt.Errorf("%w: %w", errInvalidParameters, err)
	}
	return err
}

// holdFrom returns the stamp of the call, nil where it does not say one. Other than elsewhere, a
// text that is no number is refused: read as 0, it would keep all of the log.
func (c *call) holdFrom() (*ulog.Stamp, error) {
	text, ok := c.in.Get("ts")
	switch {
	case !ok:
		return nil, nil
	case string(text) == "now":
		return new(ulog.StampAt(c.opts.Now())), nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: ts must be a time stamp", errInvalidParameters)
	}
	return new(ulog.Stamp(n)), nil
}

// holdTime returns how long a hold is to last.
func (c *call) holdTime() (time.Duration, error) {
	text, ok := c.in.Get("ttl")
	if !ok {
		return standardHold * time.Second, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 || n > int64(ulog.LongestPin/time.Second) {
		return 0, wrongHold(ulog.ErrPinTime)
	}
	return time.Duration(n) * time.Second, nil
}

// rpcUlogRelease ends a hold before its time.
func rpcUlogRelease(c *call) error {
	log := c.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	name, err := c.in.need("name")
	if err != nil {
		return err
	}
	found, err := log.Unpin(string(name))
	if err == nil && !found {
		return dberr.ErrNoRecord
	}
	if err == nil {
		c.opts.Logger.Info(fmt.Sprintf("the update log is not kept any more for the hold %s", name))
	}
	return err
}

// rpcUlogHolds lists who needs files of the update log, the one that is furthest behind first.
func rpcUlogHolds(c *call) error {
	log := c.opts.Catalog.Log()
	if log == nil {
		return errNoLog
	}
	files, err := log.Files()
	if err != nil {
		return err
	}
	for i, h := range log.Holds(files) {
		row := fmt.Sprintf("kind=%s from=%d files=%d bytes=%d since=%d", h.Kind, h.From, h.Files, h.Bytes, h.Since.Unix())
		if !h.Until.IsZero() {
			row += fmt.Sprintf(" until=%d", h.Until.Unix())
		}
		if h.Key != "" {
			row += " name=" + h.Key
		}
		c.out.addText(strconv.Itoa(i+1), row+" what="+h.What)
	}
	return nil
}
