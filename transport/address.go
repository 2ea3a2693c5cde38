package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

const (
	// nextAddress is how long one address of a machine may take before the next is tried beside it.
	nextAddress = 250 * time.Millisecond
	// nextAttempt is the pause between the tries that ConnectionAttempts allows, ssh's own.
	nextAttempt = time.Second
	// maxAddresses bounds how many addresses of one name are tried.
	maxAddresses = 16
)

// direct connects to the machine's own addresses, with as many tries as ConnectionAttempts allows.
func (a *attempt) direct(ctx context.Context) (net.Conn, error) {
	for n := 1; ; n++ {
		conn, err := a.directOnce(ctx)
		if err == nil || n >= a.s.ConnectAttempts || ctx.Err() != nil || errors.Is(err, ErrConfig) {
			return conn, err
		}
		a.o.logger().Info("no connection; trying again", "target", a.t.String(), "attempt", n, "error", display.Quote(err.Error()))
		select {
		case <-time.After(nextAttempt):
		case <-ctx.Done():
		}
	}
}

func (a *attempt) directOnce(ctx context.Context) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, a.dialTimeout())
	defer cancel()
	addrs, err := lookup(limited, a.s.AddressFamily, a.s.Host)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	var all []netip.AddrPort
	for _, addr := range addrs {
		all = append(all, netip.AddrPortFrom(addr, uint16(a.s.Port)))
	}
	from, err := a.from(limited)
	if err != nil {
		return nil, a.fail("resolve", ErrConfig, err)
	}
	conn, err := dialAny(limited, all, func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		var d net.Dialer
		if from != nil {
			local := from(to.Addr())
			if !local.IsValid() {
				return nil, errors.New("no address of BindAddress or BindInterface is of its family")
			}
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
		}
		return d.DialContext(ctx, "tcp", to.String())
	})
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	return conn, nil
}

// lookup returns the addresses of a machine, of the family that AddressFamily names.
func lookup(ctx context.Context, family, host string) ([]netip.Addr, error) {
	network := map[string]string{"inet": "ip4", "inet6": "ip6"}[family]
	if network == "" {
		network = "ip"
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// from returns what chooses the address to connect from for one to connect to, an invalid one where
// there is none, or nil where the configuration leaves it to the system.
func (a *attempt) from(ctx context.Context) (func(to netip.Addr) netip.Addr, error) {
	var own []netip.Addr
	switch {
	case a.s.BindAddress != "":
		addrs, err := lookup(ctx, a.s.AddressFamily, a.s.BindAddress)
		if err != nil {
			return nil, fmt.Errorf("BindAddress %s is not an address of this machine: %s", display.Quote(a.s.BindAddress), display.Said(err.Error()))
		}
		own = addrs
	case a.s.BindInterface != "":
		addrs, err := interfaceAddrs(a.s.BindInterface)
		if err != nil {
			return nil, fmt.Errorf("BindInterface %s: %w", display.Quote(a.s.BindInterface), err)
		}
		own = addrs
	default:
		return nil, nil
	}
	return func(to netip.Addr) netip.Addr {
		for _, o := range own {
			if o.Is4() == to.Is4() {
				return o
			}
		}
		return netip.Addr{}
	}, nil
}

// interfaceAddrs returns the addresses of a network interface, those that reach furthest first.
func interfaceAddrs(name string) ([]netip.Addr, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	list, err := ifi.Addrs()
	if err != nil {
		return nil, err
	}
	var far, near []netip.Addr
	for _, l := range list {
		p, err := netip.ParsePrefix(l.String())
		switch addr := p.Addr().Unmap(); {
		case err != nil:
		case addr.IsLinkLocalUnicast():
			near = append(near, addr.WithZone(name))
		default:
			far = append(far, addr)
		}
	}
	if len(far)+len(near) == 0 {
		return nil, errors.New("it has no address")
	}
	return append(far, near...), nil
}

// dialAny connects to the first of the addresses that answers. Each is tried when the one before it
// failed, or has had nextAddress to answer; a *triedError says what became of each.
func dialAny(ctx context.Context, addrs []netip.AddrPort, dial func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		i    int
		conn net.Conn
		err  error
	}
	results := make(chan result)
	failed := make([]error, len(addrs))
	next, running := 0, 0
	wait := time.NewTimer(0)
	defer wait.Stop()
	for next < len(addrs) || running > 0 {
		select {
		case <-wait.C:
			if next == len(addrs) {
				continue
			}
			go func(i int) {
				conn, err := dial(ctx, addrs[i])
				results <- result{i, conn, err}
			}(next)
			next, running = next+1, running+1
			wait.Reset(nextAddress)
		case r := <-results:
			running--
			if r.err == nil {
				cancel()
				for ; running > 0; running-- {
					if late := <-results; late.conn != nil {
						late.conn.Close()
					}
				}
				return r.conn, nil
			}
			failed[r.i] = r.err
			wait.Reset(0)
		}
	}
	return nil, &triedError{addrs, failed}
}

// triedError is a machine none of whose addresses answered.
type triedError struct {
	addrs []netip.AddrPort
	errs  []error // beside each address
}

func (t *triedError) Error() string {
	var parts []string
	for i, addr := range t.addrs {
		parts = append(parts, addr.String()+": "+shortly(t.errs[i]))
	}
	return strings.Join(parts, "; ")
}

func (t *triedError) Unwrap() []error { return t.errs }

// shortly says why no connection came about, without the address.
func shortly(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	return display.Said(err.Error())
}

func (a *attempt) dialTimeout() time.Duration {
	if a.o.DialTimeout != 0 {
		return a.o.DialTimeout
	}
	return orDefault(a.s.ConnectTimeout, 10*time.Second)
}

// unreachable says why no connection came about.
func (a *attempt) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.fail("dial", nil, proc.Ended(ctx))
	}
	var dns *net.DNSError
	var timeout net.Error
	tried, _ := errors.AsType[*triedError](err)
	e := a.fail("dial", ErrUnreachable, err)
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		e.Err = fault.Both(fmt.Errorf("the name %s was not resolved within %v", display.Quote(a.s.Host), a.dialTimeout()), ErrTimeout)
		e.Advice = "check the network, or give the machine an address with a Host block in the ssh configuration"
	case errors.As(err, &dns):
		e.Err = fmt.Errorf("the name %s was not found (%s)", display.Quote(a.s.Host), display.Said(dns.Err))
		e.Advice = "check the name, or give it an address with a Host block in the ssh configuration"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Err = fault.Both(fmt.Errorf("no answer within %v", a.dialTimeout()), ErrTimeout)
		e.Advice = "check that the machine is on and that no firewall is in between"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err = fault.Both(errors.New("connection refused"), err)
		e.Advice = fmt.Sprintf("check that an SSH server listens on port %d", a.s.Port)
	}
	if tried != nil && (len(tried.addrs) > 1 || e.Advice == "") {
		// Which address it was is known only from here.
		also := err
		if errors.Is(e.Err, ErrTimeout) {
			also = fault.Both(err, ErrTimeout)
		}
		e.Err = fault.Both(fmt.Errorf("tried %w", tried), also)
	}
	return e
}
