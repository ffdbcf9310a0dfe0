// Package member is the connection of one server of a cluster to another: who may open one, and for
// whom. It runs on the data port, so that a server has to know only the data address of another.
// Package frame draws the bytes of its handshake.
//
//	conn, err := member.Dial(ctx, addr, member.Options{Secrets: s, Kind: frame.MemberCluster, Name: "a"})
//
// The other server calls Accept when the first byte of a connection is 0xB5, and hands the
// connection on by its kind: to the handler of one of its ports, or to the cluster.
//
// # Who is a member
//
// A member can speak for any client (see below), and can vote. So whoever counts as a member may do
// everything, and nobody counts as one by address or by default:
//
//   - With a secret (-cluster-secret) both sides prove that they know the secret: HMAC-SHA256 over
//     the nonces of both, the kind, the name and the client. A certificate alone is not enough
//     then.
//   - Without a secret the connection must be TLS with a client certificate that the acceptor has
//     verified, and where there is an access file, the file must give this certificate the right
//     admin: certificates of ordinary clients often come from the same authority.
//   - A server with neither refuses all.
//
// The opener proves its knowledge first. If the acceptor did, anybody could fetch a proof and try
// words against it at home. What remains visible is a proof of the opener, to somebody who listens
// or sits at the address of a member: so a secret has at least 32 characters, and is random.
//
// The macs of the two sides have different labels, so that a proof cannot be sent back to its
// maker, and each side's nonce is fresh, so that a proof cannot be sent twice. The handshake does
// not encrypt what follows: between machines of an untrusted network a cluster speaks TLS.
//
// # For whom
//
// A connection of the kinds that serve clients says who the client is: its address, and the
// subjects of its verified certificate. It is part of what the opener's mac covers. The access
// rules of the acceptor then apply to that client (access.Client), as if it had come by itself. A
// client of this machine's loopback is one of the opener's machine: for the acceptor it has the
// opener's address, and it is never local because its address looks so.
//
// # What an opener that has proved nothing can do
//
// It gets a fixed answer of 35 bytes, and holds the read buffer that every connection has, for at
// most Limit. Whatever is wrong with its proof ends the connection without a word; the log of the
// acceptor has the reason, and the throttle for passwords counts the address.
package member
