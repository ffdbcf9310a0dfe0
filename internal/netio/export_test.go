package netio

// MoveTime is moveTime.
var MoveTime = moveTime

// Parked reports whether the connection rests in a loop.
func (c *Conn) Parked() bool { return c.state.Load() == parked }
