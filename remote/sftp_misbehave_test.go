package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// shortFS is a target that stores less than it was sent and says that all is well.
type shortFS struct{ transport.FS }

func (s shortFS) Create(name string, perm fs.FileMode) (transport.FileWriter, error) {
	w, err := s.FS.Create(name, perm)
	return shortWriter{w}, err
}

type shortWriter struct{ transport.FileWriter }

func (w shortWriter) Write(p []byte) (int, error) {
	if _, err := w.FileWriter.Write(p[:len(p)-1]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// wrapConn is a connection whose files are wrapped.
type wrapConn struct {
	transport.Conn
	wrap func(transport.FS) transport.FS
}

func (c wrapConn) Files(ctx context.Context) (transport.FS, error) {
	files, err := c.Conn.Files(ctx)
	if err != nil {
		return nil, err
	}
	return c.wrap(files), nil
}

func wrappedWay(s *sftpTarget, wrap func(transport.FS) transport.FS) *sftpWay {
	return newSFTPWay(wrapConn{s.conn, wrap}, Options{Dir: sftpDir})
}

func TestSFTPShortWriteIsFoundAndNotPublished(t *testing.T) {
	s := localTarget(t)
	b, other := sftpSkill(t, "release", releaseFiles()), sftpSkill(t, "other", nil)
	w := wrappedWay(s, func(f transport.FS) transport.FS { return shortFS{f} })
	r, err := w.publish(t.Context(), []*bundle.Bundle{b, other})
	must(t, err)
	for _, one := range r {
		if _, ok := errors.AsType[*DamagedError](one.Err); !ok || one.Outcome != Failed {
			t.Errorf("%+v", one)
		}
	}
	nothingBeside(t, s)
}

// crampedFS lets so many files and listings be open at once.
type crampedFS struct {
	transport.FS
	max  int64
	open *atomic.Int64
}

func (c crampedFS) hold() error {
	if c.open.Add(1) > c.max {
		c.open.Add(-1)
		return errors.New("failure")
	}
	time.Sleep(100 * time.Microsecond)
	return nil
}

func (c crampedFS) Create(name string, perm fs.FileMode) (transport.FileWriter, error) {
	if err := c.hold(); err != nil {
		return nil, err
	}
	w, err := c.FS.Create(name, perm)
	return crampedWriter{w, c.open}, err
}

type crampedWriter struct {
	transport.FileWriter
	open *atomic.Int64
}

func (w crampedWriter) Close() error {
	defer w.open.Add(-1)
	return w.FileWriter.Close()
}

func (c crampedFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	if err := c.hold(); err != nil {
		return nil, err
	}
	defer c.open.Add(-1)
	return c.FS.ReadDir(name, max)
}

func TestSFTPServerWithFewOpenFilesIsServedWithFewer(t *testing.T) {
	for _, max := range []int64{1, 3, 20} {
		s := localTarget(t)
		files := releaseFiles()
		for i := range 200 {
			files[fmt.Sprintf("many/%d/%d", i%20, i)] = fmt.Sprint(i)
		}
		b := sftpSkill(t, "release", files)
		way := func() *sftpWay {
			return wrappedWay(s, func(f transport.FS) transport.FS { return crampedFS{f, max, new(atomic.Int64)} })
		}
		if r := mustPublish(t, way(), b); r.Outcome != Published {
			t.Errorf("%d at once: %v", max, r.Outcome)
		}
		sameAsBundle(t, s, b)
		if r := mustPublish(t, way(), b); r.Outcome != Present {
			t.Errorf("%d at once, again: %v", max, r.Outcome)
		}
	}
}

type fullFS struct{ transport.FS }

func (fullFS) FreeSpace(string) (uint64, error) { return 10, nil }

func TestSFTPFullDiskIsSaidBeforeAnythingIsSent(t *testing.T) {
	s := localTarget(t)
	b := sftpSkill(t, "release", releaseFiles())
	r, err := wrappedWay(s, func(f transport.FS) transport.FS { return fullFS{f} }).publish(t.Context(), []*bundle.Bundle{b})
	must(t, err)
	if !errors.Is(r[0].Err, ErrNoSpace) || r[0].Sent != 0 || transport.Hint(r[0].Err) == "" {
		t.Errorf("%+v", r[0])
	}
	nothingBeside(t, s)
}

func TestSFTPDamageInTheHostsStoreFailsThatBundleAlone(t *testing.T) {
	s := localTarget(t)
	b, other := sftpSkill(t, "release", releaseFiles()), sftpSkill(t, "other", nil)
	w := s.way()
	want, err := newWanted(b)
	must(t, err)
	for i := range want.manifest.Entries() {
		want.manifest.Entries()[i].SHA256[0] ^= 1 // as if the store held something else
	}
	w.known[b.Manifest.Digest()] = want
	r, err := w.publish(t.Context(), []*bundle.Bundle{b, other})
	must(t, err)
	if _, ok := errors.AsType[*bundle.DamagedError](r[0].Err); !ok || r[1].Outcome != Published {
		t.Errorf("%+v", r)
	}
	nothingBeside(t, s, other.Manifest.Digest().String())
}

func TestSFTPRoundTripsDoNotGrowWithTheFiles(t *testing.T) {
	const rtt = 60 * time.Millisecond
	s := inProcessTarget(t, transporttest.Faults{Delay: rtt / 2})
	files := releaseFiles()
	for i := range 150 {
		files[fmt.Sprintf("many/%d/%d", i%10, i)] = fmt.Sprint(i)
	}
	b := sftpSkill(t, "release", files)
	for _, want := range []Outcome{Published, Present} {
		start := time.Now()
		if r := mustPublish(t, s.way(), b); r.Outcome != want {
			t.Errorf("%v, want %v", r.Outcome, want)
		}
		// One trip for each of the 150 files would take 9 s.
		if took := time.Since(start); took > 60*rtt {
			t.Errorf("%s took %v, %d round trips", want, took, took/rtt)
		}
	}
}
