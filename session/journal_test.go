package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
)

func newFiles(t testing.TB) *Files {
	t.Helper()
	s, err := NewFiles(filepath.Join(t.TempDir(), "state", "conversations"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testEvents is a history that loads twenty skills over and over.
func testEvents(n int) []*Event {
	events := []*Event{{ID: "start", Type: Started, Time: now(), Place: &Place{Environment: "machine:a", Target: Target{Host: "a"}, Dir: "/proj"}}}
	for i := 1; i < n; i++ {
		name := fmt.Sprintf("skill-%d", i%20)
		text := skillText(name, strings.Repeat("one line of \"instructions\"\\ <b>\t\n", 15))
		events = append(events, &Event{
			ID: fmt.Sprint("e", i), Parent: events[i-1].ID, Type: Loaded, Time: now(),
			Skill: &Snapshot{Name: name, Scope: "host", Source: "/host/" + name, OnHost: true, Environment: "machine:a", Digest: bundle.Digest{1, byte(i)},
				Directory: "/cache/" + name, Files: []string{"SKILL.md", "references/a.md"}, Instructions: text, SHA256: digestOf(text)},
		})
	}
	return events
}

func journal(t testing.TB, n int) *Files {
	t.Helper()
	s := newFiles(t)
	if err := s.Create(context.Background(), Header{ID: "talk", Profile: "berry", Created: now()}, testEvents(n)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTenThousandEventsOpenAtOnce(t *testing.T) {
	s := journal(t, 10_000)
	best := time.Hour
	for range 5 {
		start := time.Now()
		c, err := Open(context.Background(), Config{Storage: s}, "talk")
		if err != nil {
			t.Fatal(err)
		}
		state, err := c.State(context.Background(), "")
		if err != nil || len(state.Active) != 20 {
			t.Fatalf("%d active, %v", len(state.Active), err)
		}
		best = min(best, time.Since(start))
	}
	if best > 5*time.Second {
		t.Errorf("10,000 events open in %v", best)
	}
	t.Logf("10,000 events open in %v", best)
}

func TestWhatIsRecordedIsReadBackExactly(t *testing.T) {
	for _, text := range []string{"plain\n", "", "\"quotes\" \\back\\ /slash", "\t\r\n", "\x00\x1f\x7f", "\u2028 é 🍓 <>&", `","instructions":"`, `\u0041`, "ends in a backslash\\"} {
		want := testEvents(2)
		want[1].Skill.Instructions, want[1].Skill.SHA256 = text, digestOf(text)
		want = append(want, &Event{ID: "t", Type: Trusted, Time: now(), Trust: &Trust{"/w", "machine:a"}}, &Event{ID: "r", Type: Rewound, Time: now(), Head: "start"})
		data, err := encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := decodeFast(bytes.SplitAfter(data, []byte{'\n'})[1]); ok == strings.ContainsAny(text, "\x00\u2028") {
			t.Errorf("%q: read as it is written: %v", text, ok)
		}
		got, _, err := decode(data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: read back as %+v, %v", text, got[1].Skill, err)
		}
		// And as a harness may keep it, with the instructions where the API has them.
		for i, e := range want {
			own, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decodeLine(append(own, '\n')); err != nil || !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%q: a harness's event %d is read as %+v, %v", text, i, got, err)
			}
		}
	}
}

func TestATornLastLineIsIgnoredAndCutOff(t *testing.T) {
	ctx := context.Background()
	whole, err := os.ReadFile(journal(t, 5).Path("talk"))
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for _, cut := range []int{last + 1, last + 20, len(whole) - 1} {
		s := journal(t, 5)
		if err := os.WriteFile(s.Path("talk"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(ctx, Config{Storage: s}, "talk")
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if l, _ := c.Log(ctx); l.Head != "e3" {
			t.Errorf("cut at %d: the head is %s", cut, l.Head)
		}
		if err := c.Rewind(ctx, "e1"); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		again, err := Open(ctx, Config{Storage: s}, "talk")
		if err != nil {
			t.Fatalf("cut at %d, then added to: %v", cut, err)
		}
		if l, _ := again.Log(ctx); l.Head != "e1" || len(l.Events) != 5 {
			t.Errorf("cut at %d, then added to: %d events, head %s", cut, len(l.Events), l.Head)
		}
	}
}

func TestADamagedJournalIsNamedAndRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(lines [][]byte) [][]byte
		at     string
	}{
		"garbage": {func(l [][]byte) [][]byte { l[2] = []byte("garbage\n"); return l }, "talk.jsonl:3"},
		"an edit": {func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte("one line"), []byte("two line"), 1)
			return l
		}, "talk.jsonl:3"},
		"half a line":   {func(l [][]byte) [][]byte { l[3] = append(l[3][:40:40], '\n'); return l }, "talk.jsonl:4"},
		"an empty line": {func(l [][]byte) [][]byte { l[3] = []byte("\n"); return l }, "talk.jsonl:4"},
		"a lost line":   {func(l [][]byte) [][]byte { return append(l[:2], l[3:]...) }, "event 2"},
		"a second line": {func(l [][]byte) [][]byte { return append(l[:3:3], l[2:]...) }, "event 3"},
		"a new type":    {func(l [][]byte) [][]byte { l[2] = []byte(`{"id":"x","parent":"start","type":"sang"}` + "\n"); return l }, "event 2"},
		"no header":     {func(l [][]byte) [][]byte { return l[1:] }, "talk.jsonl:1"},
		"another's":     {func(l [][]byte) [][]byte { l[0] = bytes.Replace(l[0], []byte("talk"), []byte("walk"), 1); return l }, "talk.jsonl:1"},
		"nothing":       {func([][]byte) [][]byte { return nil }, "talk.jsonl:1"},
		"zeros":         {func(l [][]byte) [][]byte { clear(l[3][:len(l[3])-1]); return l }, "talk.jsonl:4"},
	} {
		s := journal(t, 6)
		data, err := os.ReadFile(s.Path("talk"))
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Join(c.change(bytes.SplitAfter(data, []byte{'\n'})), nil)
		if err := os.WriteFile(s.Path("talk"), changed, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(context.Background(), Config{Storage: s}, "talk")
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.at) {
			t.Errorf("%s: %v; want it to name %s", name, err, c.at)
		}
		if now, _ := os.ReadFile(s.Path("talk")); !bytes.Equal(now, changed) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestALaterVersionIsRefused(t *testing.T) {
	s := journal(t, 2)
	data, _ := os.ReadFile(s.Path("talk"))
	if err := os.WriteFile(s.Path("talk"), bytes.Replace(data, []byte(`"version":1`), []byte(`"version":2`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), Config{Storage: s}, "talk"); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

func TestTwoProcessesLoseNothing(t *testing.T) {
	ctx := context.Background()
	s := journal(t, 2)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for range writers {
		other, err := NewFiles(s.Dir()) // with a lock of its own, as another process
		if err != nil {
			t.Fatal(err)
		}
		c, err := Open(ctx, Config{Storage: other}, "talk")
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range each {
				if err := c.ChangeDir(ctx, "/elsewhere"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	c, err := Open(ctx, Config{Storage: s}, "talk")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := c.Log(ctx)
	if len(l.Events) != 2+writers*each {
		t.Errorf("%d events; want %d", len(l.Events), 2+writers*each)
	}
	if path := c.history.path(l.Head); len(path) != len(l.Events) {
		t.Errorf("%d events on the way to the head of %d", len(path), len(l.Events))
	}
}

func TestConversationsArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no modes to look at")
		return
	}
	s := journal(t, 2)
	c, err := Open(context.Background(), Config{Storage: s}, "talk")
	if err == nil {
		err = c.Rewind(context.Background(), "start")
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(s.Dir())
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(s.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
}

func TestStoragesAgree(t *testing.T) {
	ctx := context.Background()
	for name, s := range map[string]Storage{"memory": new(Memory), "files": newFiles(t)} {
		h := Header{ID: "talk", Profile: "p", Created: now(), Parent: &Origin{"other", "e", Forked}}
		events := testEvents(3)
		for _, id := range []string{"", "a/b", "UPPER", "..", strings.Repeat("x", 65), "ü"} {
			if err := s.Create(ctx, Header{ID: id}, events); !errors.Is(err, ErrBadID) {
				t.Errorf("%s: id %q: %v", name, id, err)
			}
		}
		if _, err := s.Header(ctx, "talk"); !errors.Is(err, ErrNoConversation) {
			t.Errorf("%s: header of none: %v", name, err)
		}
		if _, _, err := s.Read(ctx, "talk", 0); !errors.Is(err, ErrNoConversation) {
			t.Errorf("%s: read of none: %v", name, err)
		}
		if _, err := s.Append(ctx, "talk", 0, nil); !errors.Is(err, ErrNoConversation) {
			t.Errorf("%s: append to none: %v", name, err)
		}
		if err := errors.Join(s.Create(ctx, h, events), s.Create(ctx, Header{ID: strings.Repeat("x", 64)}, events)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Create(ctx, h, events); !errors.Is(err, ErrTaken) {
			t.Errorf("%s: a second of the id: %v", name, err)
		}
		if got, err := s.Header(ctx, "talk"); err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%s: header %+v, %v", name, got, err)
		}
		got, mark, err := s.Read(ctx, "talk", 0)
		if err != nil || !reflect.DeepEqual(got, events) {
			t.Errorf("%s: read %v, %v", name, got, err)
		}
		no := errors.New("no")
		if _, err := s.Append(ctx, "talk", mark, func(newer []*Event) ([]*Event, error) { return testEvents(1), no }); !errors.Is(err, no) {
			t.Errorf("%s: %v", name, err)
		}
		more := &Event{ID: "m", Type: Rewound, Time: now(), Head: "start"}
		next, err := s.Append(ctx, "talk", mark, func(newer []*Event) ([]*Event, error) {
			if len(newer) != 0 {
				t.Errorf("%s: newer events %v", name, newer)
			}
			return []*Event{more}, nil
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, end, err := s.Read(ctx, "talk", mark); err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], more) || end != next {
			t.Errorf("%s: read %v up to %d, %v; want one up to %d", name, got, end, err, next)
		}
		if ids, err := s.List(ctx); err != nil || len(ids) != 2 || ids[0] != "talk" {
			t.Errorf("%s: ids %v, %v", name, ids, err)
		}
		if err := s.Remove(ctx, "talk"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Remove(ctx, "talk"); !errors.Is(err, ErrNoConversation) {
			t.Errorf("%s: removed twice: %v", name, err)
		}
	}
}

// A journal is a file that anything may have happened to: the reader ends, and what it accepts can be
// added to and read again.
func FuzzJournal(f *testing.F) {
	s := journal(f, 4)
	whole, err := os.ReadFile(s.Path("talk"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-7])
	f.Add(bytes.Replace(whole, []byte(`"type":"loaded"`), []byte(`"type":"rewound","head":"start"`), 1))
	f.Add([]byte("{\"punnet\":\"conversation\",\"version\":1,\"id\":\"talk\"}\n{\"id\":\"a\",\"type\":\"started\",\"place\":{}}\n{\"torn"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Files{dir: "/x"}
		h, first, err := s.header(bytes.NewReader(data), "talk")
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if h.ID != "talk" || len(first) < 1 || !bytes.HasPrefix(data, first) {
			t.Fatalf("%+v of %q", h, first)
		}
		data = data[len(first):]
		data = data[:bytes.LastIndexByte(data, '\n')+1]
		was := bytes.Clone(data)
		events, bad, err := decode(data)
		if !bytes.Equal(data, was) {
			t.Fatal("reading changed the bytes")
		}
		if err != nil {
			if lines := bytes.Count(data, []byte{'\n'}); bad < 1 || bad > lines {
				t.Fatalf("line %d of %d is damaged", bad, lines)
			}
			return
		}
		for _, line := range bytes.SplitAfter(data, []byte{'\n'}) {
			fast, ok := decodeFast(line)
			slow := lineOf{Event: new(Event)}
			if err := json.Unmarshal(line, &slow); !ok {
				continue
			} else if err != nil {
				t.Fatalf("%q is read, and is no JSON: %v", line, err)
			}
			slow.Skill.Instructions = *slow.Text
			if !reflect.DeepEqual(fast, slow.Event) {
				t.Fatalf("%q is read as %+v, and is %+v", line, fast, slow.Event)
			}
		}
		history := newHistory()
		for _, e := range events {
			if history.add(e) != nil {
				return
			}
		}
		state := history.current().state()
		again, err := encode(events)
		if err != nil {
			t.Fatal(err)
		}
		events, _, err = decode(again)
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		other := newHistory()
		for _, e := range events {
			if err := other.add(e); err != nil {
				t.Fatal(err)
			}
		}
		if show(other.current().state()) != show(state) {
			t.Fatal("written and read again it is another history")
		}
	})
}
