package netio

// MoveTime is moveTime.
var MoveTime = moveTime
