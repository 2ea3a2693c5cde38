package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
)

func TestAFullJournalTakesNothingMore(t *testing.T) {
	s := journal(t, 3)
	ctx := context.Background()
	_, mark, err := s.Read(ctx, "talk", 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path("talk"))
	if err != nil {
		t.Fatal(err)
	}
	room := maxJournalBytes - info.Size()
	if err := os.Truncate(s.Path("talk"), maxJournalBytes); err != nil {
		testenv.Missing(t, "a file system with sparse files: "+err.Error())
	}
	_, err = s.Append(ctx, "talk", mark+Mark(room), func([]*Event) ([]*Event, error) {
		return []*Event{{ID: "more", Type: Rewound, Head: "start", Time: now()}}, nil
	})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if now, err := os.Stat(s.Path("talk")); err != nil || now.Size() != maxJournalBytes {
		t.Errorf("it has %d bytes, %v", now.Size(), err)
	}
}

func TestAJournalThatBecameShorterIsDamaged(t *testing.T) {
	s := journal(t, 3)
	ctx := context.Background()
	_, mark, err := s.Read(ctx, "talk", 0)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.Path("talk"))
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	if err := os.Truncate(s.Path("talk"), int64(cut)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(ctx, "talk", mark); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoJournalIsNoConversation(t *testing.T) {
	for _, head := range []string{`{"punnet":"store","version":1,"id":"talk"}`, `{"version":1,"id":"talk"}`, `{"punnet":"conversation","version":0,"id":"talk"}`, `{"punnet":"conversation","id":"talk"}`} {
		s := journal(t, 1)
		if err := os.WriteFile(s.Path("talk"), []byte(head+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Header(context.Background(), "talk"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", head, err)
		}
	}
}

func TestALineThatWasNotFinishedIsGoneOnceAnotherFollows(t *testing.T) {
	s := journal(t, 3)
	ctx := context.Background()
	f, err := os.OpenFile(s.Path("talk"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("torn", 1000)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := s.Append(ctx, "talk", 0, func([]*Event) ([]*Event, error) {
		return []*Event{{ID: "more", Type: Rewound, Head: "start", Time: now()}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(s.Path("talk")); err != nil || bytes.Contains(data, []byte("torn")) || !bytes.HasSuffix(data, []byte("\n")) {
		t.Errorf("it is there yet, or %v", err)
	}
}

func TestALineIsBounded(t *testing.T) {
	line, err := encode([]*Event{{ID: "more", Type: Rewound, Head: "start", Time: now()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeLine(line); err != nil {
		t.Fatal(err)
	}
	wide := append(bytes.Repeat([]byte{' '}, maxLineBytes+1-len(line)), line...)
	if _, err := decodeLine(wide); err == nil {
		t.Error("a line of more than is written was read")
	}
	big := strings.Repeat("x", maxLineBytes)
	if _, err := encode([]*Event{{ID: "big", Type: Loaded, Skill: &Snapshot{Instructions: big}}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line of more than is read: %v", err)
	}
}

func TestAnIDLeadsOutOfTheDirectoryNowhere(t *testing.T) {
	s := journal(t, 1)
	ctx := context.Background()
	data, err := os.ReadFile(s.Path("talk"))
	if err != nil {
		t.Fatal(err)
	}
	const id = "../talk"
	if err := os.WriteFile(s.Path(id), bytes.Replace(data, []byte(`"talk"`), []byte(`"../talk"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Header(ctx, id); !errors.Is(err, ErrBadID) {
		t.Errorf("header: %v", err)
	}
	if _, _, err := s.Read(ctx, id, 0); !errors.Is(err, ErrBadID) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.Append(ctx, id, 0, func([]*Event) ([]*Event, error) { return nil, nil }); !errors.Is(err, ErrBadID) {
		t.Errorf("append: %v", err)
	}
	if err := s.Create(ctx, Header{ID: "../new"}, nil); !errors.Is(err, ErrBadID) {
		t.Errorf("create: %v", err)
	}
	if err := s.Remove(ctx, id); !errors.Is(err, ErrBadID) {
		t.Errorf("remove: %v", err)
	}
	if _, err := os.Stat(s.Path(id)); err != nil {
		t.Errorf("another's file: %v", err)
	}
}

func TestARemovedConversationLeavesNothing(t *testing.T) {
	s := journal(t, 1)
	ctx := context.Background()
	if err := s.Remove(ctx, "talk"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, "talk", 0, func([]*Event) ([]*Event, error) { return nil, nil }); !errors.Is(err, ErrNoConversation) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(s.Dir()); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAJournalIsAFile(t *testing.T) {
	s := journal(t, 1)
	if err := os.Mkdir(s.Path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Header(context.Background(), "dir"); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}
