package remote

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// stranger is a user that is neither root nor who runs the tests.
const stranger = 54321

// sftpUnsafe are ways in which others can change a cache.
var sftpUnsafe = []struct {
	name string
	root bool // it takes root to prepare
	hint string
	make func(home string) error
}{
	{"cache directory writable by everybody", false, "chmod go-w", func(home string) error {
		return os.Chmod(filepath.Join(home, ".cache"), 0o777)
	}},
	{"home writable by everybody", false, "chmod go-w", func(home string) error { return os.Chmod(home, 0o757) }},
	{"cache writable by everybody", false, "chmod go-w", func(home string) error {
		return os.Chmod(filepath.Join(home, ".cache", sftpDir), 0o777)
	}},
	{"writable by a group of several", true, "chmod go-w", func(home string) error {
		return errors.Join(os.Chown(filepath.Join(home, ".cache"), -1, stranger), os.Chmod(filepath.Join(home, ".cache"), 0o775))
	}},
	{"a directory of another user", true, "chown", func(home string) error {
		return os.Chown(filepath.Join(home, ".cache"), stranger, -1)
	}},
	{"a cache of another user", true, "chown", func(home string) error {
		return os.Chown(filepath.Join(home, ".cache", sftpDir), stranger, -1)
	}},
	{"a link of another user", true, "", func(home string) error {
		if err := os.Rename(filepath.Join(home, ".cache"), filepath.Join(home, "moved")); err != nil {
			return err
		}
		link := filepath.Join(home, ".cache")
		return errors.Join(os.Symlink("moved", link), os.Lchown(link, stranger, -1))
	}},
	{"a link into a directory writable by everybody", false, "chmod go-w", func(home string) error {
		if err := os.Mkdir(filepath.Join(home, "open"), 0o700); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(home, ".cache"), filepath.Join(home, "open", "cache")); err != nil {
			return err
		}
		return errors.Join(os.Symlink("open/cache", filepath.Join(home, ".cache")), os.Chmod(filepath.Join(home, "open"), 0o777))
	}},
}

func TestSFTPUnsafeCacheIsNotUsed(t *testing.T) {
	b, other := sftpSkill(t, "release", nil), sftpSkill(t, "other", nil)
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		for _, c := range sftpUnsafe {
			t.Run(c.name, func(t *testing.T) {
				if c.root && os.Geteuid() != 0 {
					testenv.Missing(t, "root, to give something to another user")
				}
				s.reset(t)
				mustPublish(t, s.way(), b)
				must(t, c.make(s.home))
				before := snapshot(t, s.home)
				_, pubErr := s.way().publish(t.Context(), []*bundle.Bundle{b, other})
				_, checkErr := s.way().check(t.Context(), []bundle.Digest{b.Manifest.Digest()})
				_, _, listErr := s.way().list(t.Context())
				_, pruneErr := s.way().prune(t.Context(), PruneOptions{})
				for call, err := range map[string]error{"publish": pubErr, "check": checkErr, "list": listErr, "prune": pruneErr} {
					if !errors.Is(err, ErrUnsafe) || !strings.Contains(transport.Hint(err), c.hint) || !strings.HasPrefix(err.Error(), call) {
						t.Errorf("%s: %v (hint %q)", call, err, transport.Hint(err))
					}
				}
				if after := snapshot(t, s.home); after != before {
					t.Errorf("the target was changed from\n%sto\n%s", before, after)
				}
			})
		}
	})
}

func TestSFTPSafeDirectoriesAreAccepted(t *testing.T) {
	prepared := map[string]func(home string) error{
		"sticky": func(home string) error { return os.Chmod(filepath.Join(home, ".cache"), 0o777|fs.ModeSticky) },
		"private group": func(home string) error {
			return errors.Join(os.Chown(filepath.Join(home, ".cache"), -1, os.Getuid()), os.Chmod(filepath.Join(home, ".cache"), 0o775))
		},
		"own link": func(home string) error {
			if err := os.Rename(filepath.Join(home, ".cache"), filepath.Join(home, "moved")); err != nil {
				return err
			}
			return os.Symlink("moved", filepath.Join(home, ".cache"))
		},
		"own absolute link": func(home string) error {
			if err := os.Rename(filepath.Join(home, ".cache"), filepath.Join(home, "moved")); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(home, "moved"), filepath.Join(home, ".cache"))
		},
	}
	b := sftpSkill(t, "release", releaseFiles())
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		for name, prepare := range prepared {
			t.Run(name, func(t *testing.T) {
				s.reset(t)
				must(t, os.Mkdir(filepath.Join(s.home, ".cache"), 0o755))
				if err := prepare(s.home); err != nil {
					testenv.Missing(t, "an account that can prepare it: "+err.Error())
				}
				info, err := os.Stat(filepath.Join(s.home, ".cache"))
				must(t, err)
				r := mustPublish(t, s.way(), b)
				if want := filepath.Join(s.copyOf(b.Manifest.Digest()), "release"); r.Path != want {
					t.Errorf("it is said to be at %s, want %s", r.Path, want)
				}
				sameAsBundle(t, s, b)
				if after, err := os.Stat(filepath.Join(s.home, ".cache")); err != nil || after.Mode() != info.Mode() {
					t.Errorf("the mode of .cache became %v, %v", after.Mode(), err)
				}
			})
		}
	})
}

func TestSFTPPathThatLeadsNowhereIsAnErrorAndMakesNothing(t *testing.T) {
	prepared := map[string]func(home string) error{
		"file":          func(home string) error { return os.WriteFile(filepath.Join(home, ".cache"), nil, 0o600) },
		"dangling link": func(home string) error { return os.Symlink("nowhere/deep", filepath.Join(home, ".cache")) },
		"cycle":         func(home string) error { return os.Symlink(".cache", filepath.Join(home, ".cache")) },
		"odd link":      func(home string) error { return os.Symlink("x/../y", filepath.Join(home, ".cache")) },
	}
	b := sftpSkill(t, "release", nil)
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		for name, prepare := range prepared {
			t.Run(name, func(t *testing.T) {
				s.reset(t)
				must(t, prepare(s.home))
				before := snapshot(t, s.home)
				r, err := s.way().publish(t.Context(), []*bundle.Bundle{b})
				if _, ok := errors.AsType[*Error](err); !ok || len(r) != 0 {
					t.Errorf("%v, %v", r, err)
				}
				if after := snapshot(t, s.home); after != before {
					t.Errorf("the target was changed from\n%sto\n%s", before, after)
				}
			})
		}
	})
}

func TestSFTPHomeThatCannotBeWrittenToIsSaidWithWhatMendsIt(t *testing.T) {
	testenv.AsOther(t, func(t *testing.T) {
		for name, s := range map[string]*sftpTarget{"local": localTarget(t), "in-process": inProcessTarget(t, transporttest.Faults{})} {
			must(t, os.Chmod(s.home, 0o555))
			t.Cleanup(func() { must(t, os.Chmod(s.home, 0o755)) })
			_, err := s.way().publish(t.Context(), []*bundle.Bundle{sftpSkill(t, "release", nil)})
			if !errors.Is(err, ErrReadOnly) || transport.Hint(err) == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
