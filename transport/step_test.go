package transport

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/punnet/punnet/transport/transporttest"
)

// tracer keeps the steps that it is told.
type tracer struct {
	mu    sync.Mutex
	steps []Step
}

func (r *tracer) add(s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// of returns the step of a name about a machine, or nil.
func (r *tracer) of(host, name string) *Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.steps {
		if r.steps[i].Target.Host == host && r.steps[i].Name == name {
			return &r.steps[i]
		}
	}
	return nil
}

func TestEachStepIsToldAsItIsDone(t *testing.T) {
	d := startSSHD(t)
	o, r := d.options(), &tracer{}
	o.Trace = r.add
	dial(t, d.alias, o)
	for name, parts := range map[string][]string{
		StepConfiguration: {"host 127.0.0.1", "port ", "user "},
		StepAddress:       {"127.0.0.1:", "directly"},
		StepHostKey:       {"ssh-ed25519 SHA256:", "known from " + d.dir + "/known_hosts:1"},
		StepServer:        {"SSH-2.0-OpenSSH"},
	} {
		s := r.of(d.alias, name)
		if s == nil || s.Err != nil {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(s.Value, p) {
				t.Errorf("%s: %q lacks %q", name, s.Value, p)
			}
		}
	}
	// The order in which they came is the one in which a machine is reached.
	at := make(map[string]int)
	for i, s := range r.steps {
		at[s.Name] = i
	}
	if at[StepConfiguration] > at[StepAddress] || at[StepAddress] > at[StepHostKey] || at[StepHostKey] > at[StepServer] {
		t.Errorf("got %+v", r.steps)
	}
}

func TestTheStepThatFailsCarriesTheError(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	stalled := startServer(t, transporttest.Options{Faults: transporttest.Faults{StallSent: -1}})
	silent := startServer(t, transporttest.Options{Faults: transporttest.Faults{StallAuth: true}})
	for name, c := range map[string]struct {
		s       *transporttest.Server
		options []string
		step    string
		after   string // a step that must not have been told
	}{
		"configuration": {s, []string{"NoSuchOption=1"}, StepConfiguration, StepAddress},
		"address":       {s, []string{"HostName=nosuch.invalid"}, StepAddress, StepHostKey},
		"command":       {s, []string{"ProxyCommand=/nonexistent/program"}, StepServer, StepHostKey},
		"host key":      {s, []string{"UserKnownHostsFile=/dev/null"}, StepHostKey, StepServer},
		"revoked":       {s, []string{"RevokedHostKeys=/nonexistent"}, StepHostKey, StepAddress},
		"server":        {stalled, nil, StepServer, StepHostKey},
		"login":         {silent, nil, StepLogin, StepServer},
	} {
		r := &tracer{}
		o := short(needSSH(t, c.s))
		o.Options, o.Trace = c.options, r.add
		_, err := Dial(t.Context(), Target{Host: "user"}, o)
		told := r.of("user", c.step)
		if err == nil || told == nil || told.Err == nil || Hint(told.Err) != Hint(err) || told.Value != "" {
			t.Errorf("%s: %v, told %+v", name, err, told)
		}
		if later := r.of("user", c.after); later != nil {
			t.Errorf("%s: and then %+v", name, later)
		}
	}
}

func TestMachinesOnTheWayHaveStepsOfTheirOwn(t *testing.T) {
	d := startSSHD(t)
	s := startServer(t, transporttest.Options{})
	real, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(tempDir(t), "config")
	write(t, both, string(real)+strings.ReplaceAll(s.Config(), "Host user\n", "Host user\n  ProxyJump real\n"))
	r := &tracer{}
	o := needSSH(t, s)
	o.ConfigFile, o.Trace = both, r.add
	dial(t, "user", o)
	hop, far := r.of("real", StepHostKey), r.of("user", StepHostKey)
	if hop == nil || far == nil || hop.Value == far.Value {
		t.Errorf("got %+v and %+v", hop, far)
	}
	if a := r.of("user", StepAddress); a == nil || !strings.HasSuffix(a.Value, ", through real") {
		t.Errorf("got %+v", a)
	}
	// Where one of them fails, its step says so, and the target's address was not reached.
	write(t, both, strings.Replace(string(real), "UserKnownHostsFile ", "UserKnownHostsFile /nonexistent", 1)+
		strings.ReplaceAll(s.Config(), "Host user\n", "Host user\n  ProxyJump real\n"))
	*r = tracer{}
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrHostKey) {
		t.Fatalf("got %v", err)
	}
	if hop := r.of("real", StepHostKey); hop == nil || !errors.Is(hop.Err, ErrHostKey) {
		t.Errorf("got %+v", hop)
	}
	if a := r.of("user", StepAddress); a == nil || a.Err == nil {
		t.Errorf("got %+v", a)
	}
}
