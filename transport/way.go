package transport

// Way is how a connection to a machine is made.
type Way string

// The ways. Options.Way takes WayAuto, WayNative and WaySystem; Conn.Way returns the others.
const (
	// WayAuto shares the connection of a live control socket where the configuration names one, and
	// else connects natively, or by the system's ssh where the configuration needs it.
	WayAuto Way = ""
	// WayLocal is this machine: there is no connection.
	WayLocal Way = "local"
	// WayControl is the connection of an OpenSSH master that its user started, shared.
	WayControl Way = "control"
	// WayNative is an SSH connection of this package's own.
	WayNative Way = "native"
	// WaySystem is a master that the user's own ssh program holds for this package: it can use keys on
	// hardware, GSSAPI, and whatever else that program can.
	WaySystem Way = "system"
	// WayGiven is a client that the caller made, see NewConn.
	WayGiven Way = "given"
)
