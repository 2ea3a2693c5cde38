package remote

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/punnet/punnet/bundle"
)

// raceSFTP lets publishers publish at once and returns their results. Meanwhile a reader looks at
// the copy, and seen counts what it saw.
func raceSFTP(t *testing.T, s *sftpTarget, b *bundle.Bundle, publishers int) (results []Result, lostWhole int64) {
	t.Helper()
	var done atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		w, whole := s.way(), false
		for !done.Load() {
			k, err := w.check(t.Context(), []bundle.Digest{b.Manifest.Digest()})
			if err != nil {
				t.Errorf("reader: %v", err)
				return
			}
			if whole && k[0].State != Whole {
				lostWhole++
			}
			whole = k[0].State == Whole
		}
	})
	results = make([]Result, publishers)
	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() {
			r, err := s.way().publish(t.Context(), []*bundle.Bundle{b})
			if err != nil || len(r) != 1 {
				t.Errorf("publisher %d: %v, %v", i, r, err)
				return
			}
			results[i] = r[0]
		})
	}
	wg.Wait()
	done.Store(true)
	reader.Wait()
	return results, lostWhole
}

func TestSFTPOneOfManyPublishersWinsAndTheOthersFindItsCopy(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		for round := range 10 {
			must(t, os.RemoveAll(s.cache()))
			results, lost := raceSFTP(t, s, b, 8)
			won := 0
			for _, r := range results {
				switch {
				case r.Err != nil:
					t.Errorf("round %d: %v", round, r.Err)
				case r.Outcome == Published:
					won++
				case r.Outcome != Present:
					t.Errorf("round %d: %v", round, r.Outcome)
				}
			}
			if won != 1 || lost != 0 {
				t.Errorf("round %d: %d won, and a whole copy vanished %d times", round, won, lost)
			}
			sameAsBundle(t, s, b)
			nothingBeside(t, s, b.Manifest.Digest().String())
		}
	})
}

func TestSFTPManyRepairsOfOneCopyNeverTakeAWholeOneAway(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		for round := range 10 {
			must(t, os.RemoveAll(s.cache()))
			mustPublish(t, s.way(), b)
			dir := filepath.Join(s.copyOf(b.Manifest.Digest()), "release")
			must(t, os.Mkdir(filepath.Join(dir, "scripts", "__pycache__"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("evil"), 0o600))
			results, lost := raceSFTP(t, s, b, 8)
			for _, r := range results {
				if r.Err != nil {
					t.Errorf("round %d: %+v", round, r)
				}
			}
			if lost != 0 {
				t.Errorf("round %d: a whole copy vanished %d times", round, lost)
			}
			sameAsBundle(t, s, b)
			nothingBeside(t, s, b.Manifest.Digest().String())
		}
	})
}
